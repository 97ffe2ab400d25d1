"""Statoil Iceberg Classifier: a row split of radar patches in JSON, scored by binary log loss."""

import io
import json
from typing import Any

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, splits, tables
from mlebench_console.competitions.kit.archives import sevenzip
from mlebench_console.competitions.kit.splits import Split
from mlebench_console.competitions.raw import RawDataProblem, RawPath, read_as
from mlebench_console.competitions.task import Grading, Preparation, PublicData

UNKNOWN = "na"  # the word for an angle that was not recorded
SAMPLE = "sample_submission.csv"
HEAD = 1 << 22  # bytes, of which a patch takes 150,000

Record = dict[str, Any]


def prepare(job: Preparation) -> None:
    """Split the labelled patches; those for test keep the fields of Kaggle's own test patches."""
    patches = _read(job.source("train.json.7z"), "train.json")
    fields = _fields(job.source("test.json.7z"), "test.json")
    if job.corrected:
        split = _by_angle(job, [each["inc_angle"] for each in patches])
    else:
        split = splits.by_row(job, len(patches))
    train, test = ([patches[place] for place in part] for part in (split.train, split.test))
    answers = pd.DataFrame({name: [each[name] for each in test] for name in ("id", "is_iceberg")})
    sample = answers.assign(is_iceberg=0.5)
    tables.write_csv(answers, job.private / "test.csv")
    tables.write_csv(sample, job.private / SAMPLE)
    _pack(job, "train.json", json.dumps(train).encode())
    _pack(job, "test.json", json.dumps([{field: each[field] for field in fields} for each in test]).encode())
    table = io.BytesIO()
    tables.write_csv(sample, table)
    _pack(job, SAMPLE, table.getvalue())


def _pack(job: Preparation, name: str, content: bytes) -> None:
    sevenzip.pack(job, job.public / f"{name}.7z", {name: content})


def _by_angle(job: Preparation, angles: list[Any]) -> Split:
    """Split by angle: patches of equal angle often show the same object; on Kaggle none of unknown angle was test."""
    known = np.flatnonzero([angle != UNKNOWN for angle in angles])
    groups = [str(angles[place]) for place in known]
    split = splits.by_group(job, groups)
    test = known[split.test]
    return Split(np.setdiff1d(np.arange(len(angles)), test), test)


def _read(path: RawPath, name: str) -> list[Record]:
    with read_as("JSON", name, ValueError, TypeError, AttributeError):
        patches: list[Record] = json.loads(sevenzip.read(path, name).decode())
        if all({"id", "inc_angle", "is_iceberg", "band_1", "band_2"} <= patch.keys() for patch in patches):
            return patches
    raise RawDataProblem(f"{name} is not in the expected form", "a patch lacks a field")


def _fields(path: RawPath, name: str) -> list[str]:
    """Return the fields of the first patch, without reading the gigabyte after it into memory."""
    with read_as("JSON", name, ValueError):
        head = sevenzip.read(path, name, most=HEAD).decode("utf-8", "ignore")  # its last character may be cut
        first, _ = json.JSONDecoder().raw_decode(head, head.index("{"))
        return list(first)


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the sample submission, which agents are given in an archive."""
    return tables.read_csv(io.BytesIO(sevenzip.read(data.public / f"{SAMPLE}.7z", SAMPLE)))


def grade(case: Grading) -> float:
    """Return the mean log loss of the probability of an iceberg."""
    rows = checks.paired_rows(case, "id", "is_iceberg")
    given = checks.numbers(case.submission, "is_iceberg", low=0, high=1)[rows]
    return float(metrics.log_losses(case.answers["is_iceberg"].to_numpy(), given).mean())
