"""Kuzushiji: scanned pages of a zip split into two zips, scored by F1 over characters that are hit by a point."""

import pandas as pd

from mlebench_console.competitions.kit import archives, placing, tables
from mlebench_console.competitions.kit.checks import detections
from mlebench_console.competitions.kit.metrics import matching
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation, PublicData
from mlebench_console.foundation.problems import DataProblem

PAGES = "train_images.zip"
POINTS = detections.ObjectSyntax(("code", "x", "y"), name=0, single_blanks=True, missing_ok=True)
BOXES = detections.ObjectSyntax(
    ("code", "x", "y", "width", "height"), name=0, single_blanks=True, missing_ok=True
)
DUMMY = "U+003F 1 1 U+FF2F 2 2"


def prepare(job: Preparation) -> None:
    """Split the pages; the points of the gold submission lie just inside each character's box."""
    table = labelled_table.read(job, "train.csv", needs=["image_id", "labels"])
    train, test = labelled_table.divided(job, table)
    tables.write_csv(train, job.public / "train.csv")
    gold = [
        _points(id_, labels) for id_, labels in zip(test["image_id"], test["labels"].fillna(""), strict=True)
    ]
    tables.write_csv(test.assign(labels=gold), job.private / "gold_submission.csv")
    labelled_table.write_answers(job, test, test[["image_id"]].assign(labels=DUMMY))
    translation = "unicode_translation.csv"
    placing.copy_file(job, job.source(translation), job.public / translation)
    for part, name in ((train, PAGES), (test, "test_images.zip")):
        archives.repack(job, job.source(PAGES), job.public / name, [f"{id_}.jpg" for id_ in part["image_id"]])


def _points(page: str, labels: str) -> str:
    tokens = labels.split()
    try:
        boxes = zip(tokens[::5], tokens[1::5], tokens[2::5], tokens[3::5], tokens[4::5], strict=True)
        return " ".join(f"{code} {int(x) + 1} {int(y) + 1}" for code, x, y, _, _ in boxes)
    except ValueError as error:
        raise DataProblem(f"train.csv: the labels of page {page} cannot be read", str(error)) from error


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the pages to predict, without a character."""
    return data.sample().assign(labels=None)


def grade(case: Grading) -> float:
    """Return F1 over all pages; a true box is matched with the first free point of its character inside it."""
    points, boxes = detections.predicted_and_true_masks(case, "image_id", "labels", POINTS, true_form=BOXES)
    point_x, point_y = points.numbers.T
    left, top, width, height = boxes.numbers.T
    right, bottom = left + width, top + height
    box_group, point_group = matching.codes((boxes.row, boxes.names), (points.row, points.names))

    def inside(pair: matching.Pairs) -> matching.Pairs:
        box, point = pair
        x, y = point_x[point], point_y[point]
        hit = (left[box] < x) & (x < right[box]) & (top[box] < y) & (y < bottom[box])
        return box[hit], point[hit]

    candidates = map(inside, matching.pairs(box_group, point_group))
    hits = int((matching.greedy(candidates, len(left), len(point_x)) >= 0).sum())
    return 2 * hits / (len(left) + len(point_x)) if hits else 0.0
