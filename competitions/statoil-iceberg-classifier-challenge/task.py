"""Statoil Iceberg Classifier: a row split of radar patches in JSON, scored by binary log loss."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from competitions.kit import checks, metrics, records, sevenzip, splits, tables
from competitions.kit.splits import Split
from competitions.task import Grading, Preparation
from foundation.problems import DataProblem

UNKNOWN = "na"  # what stands for an angle that was not recorded
HEAD = 1 << 22  # characters, of which a patch takes 150,000

Record = dict[str, Any]


def prepare(job: Preparation) -> None:
    """Split the labelled patches; those for test have the fields of Kaggle's own."""
    patches = _read(sevenzip.extracted_file(job, job.source("train.json.7z"), "train.json"))
    fields = _fields(sevenzip.extracted_file(job, job.source("test.json.7z"), "test.json"))
    if job.corrected:
        split = _by_angle(job, [each["inc_angle"] for each in patches])
    else:
        split = splits.shuffled(len(patches), job.number("test_size"), job.integer("seed"))
    train, test = ([patches[place] for place in part] for part in (split.train, split.test))
    answers = pd.DataFrame({name: [each[name] for each in test] for name in ("id", "is_iceberg")})
    sample = answers.assign(is_iceberg=0.5)
    tables.write_csv(answers, job.private / "test.csv")
    tables.write_csv(sample, job.private / "sample_submission.csv")
    made = {name: job.scratch / name for name in ("train.json", "test.json", "sample_submission.csv")}
    records.write_json(made["train.json"], train)
    records.write_json(made["test.json"], [{field: each[field] for field in fields} for each in test])
    tables.write_csv(sample, made["sample_submission.csv"])
    for name, content in made.items():
        sevenzip.pack(job, job.public / f"{name}.7z", {name: content})


def _by_angle(job: Preparation, angles: list[Any]) -> Split:
    """Patches of equal angles often show the same object, and those of unknown angle were no test on Kaggle."""
    known = np.flatnonzero([angle != UNKNOWN for angle in angles])
    groups = [str(angles[place]) for place in known]
    split = splits.shuffled_groups(groups, job.number("test_size"), job.integer("seed"))
    test = known[split.test]
    return Split(np.setdiff1d(np.arange(len(angles)), test), test)


def _read(path: Path) -> list[Record]:
    try:
        patches: list[Record] = records.read_json(path)
        if all({"id", "inc_angle", "is_iceberg", "band_1", "band_2"} <= patch.keys() for patch in patches):
            return patches
    except (ValueError, TypeError, AttributeError) as error:
        raise DataProblem(f"{path.name} cannot be read as JSON", str(error), "Download it again.") from error
    raise DataProblem(f"{path.name} is not as known", "a patch lacks a field", "Download it again.")


def _fields(path: Path) -> list[str]:
    """The fields of the first patch, without reading the gigabyte behind it."""
    with path.open(encoding="utf-8") as stream:
        head = stream.read(HEAD)
    try:
        first, _ = json.JSONDecoder().raw_decode(head, head.index("{"))
        return list(first)
    except ValueError as error:
        raise DataProblem(f"{path.name} cannot be read as JSON", str(error), "Download it again.") from error


def grade(case: Grading) -> float:
    """The mean of -ln of the probability given to what each patch shows."""
    checks.columns_present(case.submission, ["id", "is_iceberg"])
    rows = checks.matched_rows(case.submission, case.answers, "id")
    given = checks.numbers(case.submission, "is_iceberg", low=0, high=1)[rows]
    return float(metrics.log_losses(case.answers["is_iceberg"].to_numpy(), given).mean())
