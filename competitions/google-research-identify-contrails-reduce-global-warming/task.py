"""Contrails: a split of records of satellite bands, scored by one Dice coefficient over all pixels."""

import random

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import placing, splits
from mlebench_console.competitions.kit.formats import json_files, npy, run_lengths
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

BANDS = [f"band_{number:02d}.npy" for number in range(8, 17)]
TRUTH = "human_pixel_masks.npy"
MASKS = ["human_individual_masks.npy", TRUTH]
EMPTY = "-"
DUMMIES = ["1 3 10 5", EMPTY]


def prepare(job: Preparation) -> None:
    """Hold out as many records as Kaggle's validation set has, and encode their masks."""
    known = json_files.read_records(job.source("train_metadata.json"))
    validation = job.source("validation_metadata.json")
    validated = json_files.read_records(validation)
    split = splits.shuffled(len(known), len(validated), job.integer("seed"))
    train, test = ([known[i] for i in part] for part in (split.train, split.test))
    names = [record["record_id"] for record in test]
    answers = pd.DataFrame([_answer(job, name) for name in names])
    dice = random.Random(job.integer("seed"))  # noqa: S311 as in MLE-bench: the sample must be the same
    dummies = [dice.choice(DUMMIES) for _ in names]
    labelled_table.write_answers(job, answers, answers.assign(encoded_pixels=dummies))
    json_files.write_json(job.public / "train_metadata.json", train)
    placing.copy_file(job, validation, job.public / "validation_metadata.json")
    raw = job.raw / "train"
    files = [(f"train/{record['record_id']}/{name}") for record in train for name in [*BANDS, *MASKS]]
    files += [f"test/{record}/{name}" for record in names for name in BANDS]
    pairs = ((raw / path.partition("/")[2], job.public / path) for path in files)
    placing.place(job, pairs, "records")
    raw = job.raw / "validation"
    placing.expect(
        job, (raw / record["record_id"] / name for record in validated for name in [*BANDS, TRUTH])
    )
    placing.place_tree(job, raw, job.public / "validation", "validation")


def _answer(job: Preparation, name: str) -> dict[str, str | int]:
    folder = job.raw / "train" / name
    height, width = npy.read_npy(folder / BANDS[0]).shape[:2]
    mask = npy.read_npy(folder / TRUTH) == 1
    code = run_lengths.encode(mask.ravel(order="F"))
    return {"record_id": name, "encoded_pixels": code or EMPTY, "height": height, "width": width}


def grade(case: Grading) -> np.float64:
    """Return the Dice score of all predicted and all true pixels together; NaN when there are neither."""
    sizes = case.answers["height"] * case.answers["width"]
    column = "encoded_pixels"
    predicted, truth = run_lengths.predicted_and_true_masks(
        case, "record_id", predicted=column, true=column, sizes=sizes, empty=EMPTY
    )
    total = int(truth.areas().sum() + predicted.areas().sum())
    return np.float64(
        2 * int(run_lengths.overlaps(truth, predicted).sum()) / total if total else float("nan")
    )
