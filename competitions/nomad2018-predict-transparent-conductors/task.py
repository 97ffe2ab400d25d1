"""Nomad2018: a row split with renumbered ids and a geometry file per material, scored by mean RMSLE."""

import numpy as np

from mlebench_console.competitions.kit import archives, checks, metrics
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

TARGETS = ["formation_energy_ev_natom", "bandgap_energy_ev"]


def prepare(job: Preparation) -> None:
    """Split the materials and number each part from 1; the geometry folders get the new ids."""
    table = labelled_table.read(job, "train.csv.zip", member="train.csv", needs=["id", *TARGETS])
    geometry = {}
    parts = {}
    for name, rows in zip(("train", "test"), labelled_table.divided(job, table), strict=True):
        parts[name] = rows.assign(id=np.arange(1, len(rows) + 1))
        for old, new in zip(rows["id"], parts[name]["id"], strict=True):
            geometry[f"train/{old}/geometry.xyz"] = job.public / name / str(new) / "geometry.xyz"
    sample = parts["test"][["id"]].assign(formation_energy_ev_natom=0.1779, bandgap_energy_ev=1.8892)
    labelled_table.write_parts(job, parts["train"], parts["test"], hidden=TARGETS, sample=sample)
    archives.extract_as(job, job.source("train.zip"), geometry)


def grade(case: Grading) -> float:
    """Return the mean of both targets' RMSLE; edition v1 pairs rows by position and ignores ids."""
    checks.columns_present(case.submission, ["id", *TARGETS] if case.corrected else TARGETS)
    checks.row_count(case.submission, case.answers, "id")
    # ln(1 + p) must be defined
    predicted = checks.numbers(case.submission, TARGETS, above=-1.0, spelt="python")
    if case.corrected:
        predicted = predicted[checks.matched_rows(case.submission, case.answers, "id")]
    truth = checks.numbers(case.answers, TARGETS)
    return float(np.mean([metrics.rmsle(truth[:, i], predicted[:, i]) for i in range(len(TARGETS))]))
