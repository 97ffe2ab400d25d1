"""Vesuvius: the third of three labelled papyrus fragments is held out, scored by F0.5 over its pixels."""

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, tables
from mlebench_console.competitions.kit.formats import run_lengths
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawPath, read_as
from mlebench_console.competitions.task import Grading, Preparation, PublicData
from mlebench_console.foundation.problems import DataProblem

LABELS = "inklabels_rle.csv"
HIDDEN = {"inklabels.png", LABELS, "ir.png"}
KINDS = {".png", ".csv", ".tif"}
COLUMNS = ["Id", "Predicted"]
TEST = "a"
MASK = "mask.png"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
BETA_SQUARED = 0.25


def prepare(job: Preparation) -> None:
    """Publish fragments 1 and 2 with all their labels, and fragment 3 without."""
    held_out = job.source("train/3")
    files = [path for path in held_out.rglob("*") if not path.is_dir()]
    strange = [path for path in files if path.suffix not in KINDS]
    if strange:
        raise DataProblem(f"{strange[0]} was not expected", f"fragments hold {', '.join(sorted(KINDS))} only")
    width, height = _size(held_out / "ir.png")
    answers = labelled_table.read(job, f"train/3/{LABELS}", needs=COLUMNS).assign(Id=TEST)
    tables.write_csv(answers.assign(width=width, height=height), job.private / LABELS)
    tables.write_csv(answers, job.private / "gold_submission.csv")
    sample = pd.DataFrame({"Id": [TEST], "Predicted": ["1 1 5 1"]})
    tables.write_csv(sample, job.public / "sample_submission.csv")
    labelled = [(job.raw / "train" / name, job.public / "train" / name) for name in ("1", "2")]
    placing.place_trees(job, labelled, "fragments")
    shown = [path.relative_to(held_out) for path in files if path.name not in HIDDEN]
    target = job.public / "test" / TEST
    placing.place(job, [(held_out / path, target / path) for path in shown], "test fragment")


def _size(path: RawPath) -> tuple[int, int]:
    """Width and height of a PNG picture."""
    with read_as("a PNG picture", path, OSError, ValueError):
        with path.open("rb") as stream:
            head = stream.read(24)
        if len(head) < 24 or not head.startswith(PNG):
            raise ValueError("it does not begin like one")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:], "big")


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the fragment to predict with its size, and without ink."""
    width, height = _size(data.public / "test" / TEST / MASK)
    return data.sample().assign(Predicted="", width=width, height=height)


def grade(case: Grading) -> np.float64:
    """F0.5 of the inked pixels; rows are paired by position."""
    checks.columns_exactly(case.submission, COLUMNS)
    checks.row_count(case.submission, case.answers, "Id")
    differing = (
        case.submission["Id"].astype(object).to_numpy() != case.answers["Id"].astype(object).to_numpy()
    )
    if differing.any():
        row = int(np.argmax(differing))
        fault, wanted = "is not the one asked for there", checks.quoted(case.answers["Id"].iloc[row])
        raise checks.InvalidCell(row, "Id", case.submission["Id"].iloc[row], fault, wanted)
    sizes = case.answers["width"] * case.answers["height"]
    with checks.reading_answers():
        truth = run_lengths.parse(case.answers["Predicted"], sizes, column="Predicted", strict=False)
    predicted = run_lengths.parse(case.submission["Predicted"], sizes, column="Predicted", strict=False)
    hits = run_lengths.overlaps(truth, predicted)
    weighted = (1 + BETA_SQUARED) * hits
    below = BETA_SQUARED * truth.areas() + predicted.areas()  # equals weighted + 0.25 misses + false alarms
    return np.float64(np.divide(weighted, below, out=np.zeros(len(below)), where=below > 0).mean())
