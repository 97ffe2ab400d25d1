"""iWildCam 2020: a split of camera-trap photos by camera, with their JSON records, scored by accuracy."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import placing, splits
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.raw import read_as
from mlebench_console.competitions.task import Grading, Preparation

TRAIN = "iwildcam2020_train_annotations.json"
TEST = "iwildcam2020_test_information.json"
DETECTIONS = "iwildcam2020_megadetector_results.json"
ANSWERS = {"Id": "image_id", "Category": "category_id"}
DUMMIES = 676


def prepare(job: Preparation) -> None:
    """Hold out whole cameras; give all records of a list the same fields."""
    labelled = _read(job, TRAIN, ["annotations", "images", "categories", "info"])
    unlabelled = _read(job, TEST, ["images", "categories", "info"])
    images, annotations = labelled["images"], labelled["annotations"]
    try:
        ids, cameras = [each["id"] for each in images], pd.Series([each["location"] for each in images])
        answers = pd.DataFrame({name: [each[key] for each in annotations] for name, key in ANSWERS.items()})
    except KeyError as error:
        raise job.unexpected(job.source(TRAIN), f"a record has no {error}") from error
    held_out = _held_out(job, cameras)
    in_train, in_test = (
        {id_ for id_, chosen in zip(ids, held_out, strict=True) if chosen == part} for part in (False, True)
    )
    labelled["annotations"] = [each for each in annotations if each["image_id"] in in_train]
    for document, part in ((labelled, in_train), (unlabelled, in_test)):
        document["images"] = [each for each in images if each["id"] in part]
    json_files.write_json(job.public / TRAIN, labelled)
    json_files.write_json(job.public / TEST, unlabelled)
    placing.copy_file(job, job.source(DETECTIONS), job.public / DETECTIONS)
    answers = answers[answers["Id"].isin(in_test)]
    dummies = np.random.RandomState(job.integer("seed")).randint(0, DUMMIES, size=len(answers))
    labelled_table.write_answers(job, answers, answers.assign(Category=dummies))
    for name, part in (("train", in_train), ("test", in_test)):
        names = [f"{id_}.jpg" for id_ in ids if id_ in part]
        placing.place_named(job, names, job.source("train"), job.public / name)


def _read(job: Preparation, name: str, fields: list[str]) -> dict[str, Any]:
    path = job.source(name)
    with read_as("records", path, ValueError, KeyError, TypeError, AttributeError):
        document = json_files.read_json(path)
        lists = {field: _uniform(document[field]) for field in fields if field != "info"}
        return lists | {"info": document["info"]}


def _uniform(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records as pandas would give them: absent fields are NaN, which turns integers into floats."""
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name for record in listed for name in record):
        cells = [record.get(name, math.nan) for record in listed]
        kinds = set(map(type, cells))
        if kinds <= {int, float, type(None)} and kinds not in ({int}, {type(None)}):
            cells = [math.nan if cell is None else float(cell) for cell in cells]
        columns[name] = cells
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _held_out(job: Preparation, cameras: pd.Series) -> npt.NDArray[np.bool_]:
    """Flag the photos of test cameras, which are drawn and then moved until their share is just below `test_size`."""
    codes, names = pd.factorize(cameras, use_na_sentinel=False)
    aim = job.number("test_size")
    split = splits.shuffled(len(names), aim, job.integer("seed"))
    train, test = split.train.tolist(), split.test.tolist()
    sizes: list[int] = np.bincount(codes, minlength=len(names)).tolist()
    held_out: int = sum(sizes[camera] for camera in test)

    def share() -> float:
        return held_out / (len(codes) + held_out)  # MLE-bench counts the held-out photos twice here

    while share() < aim:
        held_out += sizes[train[-1]]
        test.append(train.pop())
    while share() > aim:
        held_out -= sizes[test[-1]]
        train.append(test.pop())
    return np.isin(codes, test)


def grade(case: Grading) -> float:
    """Return the share of right predictions; edition corrected also accepts the column name Predicted."""
    table = case.submission
    if case.corrected and "Category" not in table.columns:
        case = replace(case, submission=table.rename(columns={"Predicted": "Category"}))
    return graders.accuracy(case, id_column="Id", target="Category")
