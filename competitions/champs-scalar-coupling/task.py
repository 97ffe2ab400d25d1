"""Predicting Molecular Properties: a split of whole molecules, scored by the mean log error per coupling type."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, splits, tables
from mlebench_console.competitions.kit.metrics.regression import mean_log_error
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation, PublicData
from mlebench_console.foundation.problems import DataProblem

MOLECULE, TARGET = "molecule_name", "scalar_coupling_constant"
STRUCTURES = "structures.csv"
TRAIN_ONLY = [
    *("dipole_moments.csv", "magnetic_shielding_tensors.csv", "mulliken_charges.csv"),
    *("potential_energy.csv", "scalar_coupling_contributions.csv"),
]
FLOOR = 1e-9


def prepare(job: Preparation) -> None:
    """Split the molecules; edition corrected publishes the test molecules' structures too."""
    pairs = labelled_table.read(job, "train.csv", needs=["id", MOLECULE, "type", TARGET])
    split = splits.by_listed_group(job, pairs[MOLECULE])
    train, test = split.of(pairs)
    labelled_table.write_parts(job, train, test, hidden=[TARGET], sample=test[["id"]].assign(**{TARGET: 0}))
    known = train[MOLECULE].drop_duplicates()
    shown = pairs[MOLECULE].drop_duplicates() if job.corrected else known
    for name in TRAIN_ONLY:
        _write_rows_of(job, name, known)
    _write_rows_of(job, STRUCTURES, shown)
    folder = job.source("structures")
    placing.place_named(job, [f"{molecule}.xyz" for molecule in shown], folder, job.public / "structures")


def _write_rows_of(job: Preparation, name: str, molecules: pd.Series) -> None:
    rows = labelled_table.read(job, name, needs=[MOLECULE])
    rows = rows[rows[MOLECULE].isin(molecules)]
    if rows[MOLECULE].nunique() != len(molecules):
        raise DataProblem(f"{job.source(name)} is incomplete", "it lacks some molecules of train.csv")
    tables.write_csv(rows, job.public / name)


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return every pair of atoms with its type, which is public."""
    return data.table("test.csv", columns=("id", "type")).assign(**{TARGET: 0.0})


def grade(case: Grading) -> np.float64:
    """Return the mean log error over types; edition v1 counts repeated ids again and has no floor."""
    checks.columns_present(case.submission, ["id", TARGET])
    answers = case.read_answers(columns=("id", "type", TARGET))
    if case.corrected:
        rows = np.arange(len(answers))
        given = checks.matched_rows(case.submission, answers, "id")
    else:
        rows = checks.rows_asked_for(case.submission, answers, "id")
        given = np.arange(len(rows))
    predicted = checks.numbers(case.submission, TARGET, spelt="python")[given]
    errors = np.abs(checks.numbers(answers, TARGET)[rows] - predicted)
    types = pd.factorize(answers["type"])[0][rows]
    return np.float64(mean_log_error(errors, types, floor=FLOOR if case.corrected else 0.0))
