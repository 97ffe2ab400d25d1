"""RSNA 2022 Cervical Spine: a split of CT studies with eight answers each, scored by a weighted log loss."""

import random
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, splits, tables
from mlebench_console.competitions.kit.placing import pseudonyms
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawDataProblem
from mlebench_console.competitions.task import Grading, Preparation, PublicData

TARGETS = ["patient_overall", *(f"C{number}" for number in range(1, 8))]
CLIP = 1e-15


@dataclass(frozen=True)
class Studies:
    """The studies to train on, and those of them whose boxes and segmentations are published."""

    train: set[str]
    boxed: set[str]
    segmented: set[str]


def prepare(job: Preparation) -> None:
    """Split the studies and publish boxes and segmentations of train studies."""
    uid = ["StudyInstanceUID"]
    table = labelled_table.read(job, "train.csv", needs=uid + TARGETS, text=uid)
    boxes = labelled_table.read(job, "train_bounding_boxes.csv", needs=uid, text=uid)
    volumes = job.source("segmentations")
    segmented = sorted(path.stem for path in volumes.glob("*.nii"))
    uids = table["StudyInstanceUID"].tolist()
    choose = _choose_test if job.corrected else _choose_train
    chosen = choose(job, uids, sorted(set(boxes["StudyInstanceUID"])), segmented)
    in_train = table["StudyInstanceUID"].isin(chosen.train)
    train, test = table[in_train], table[~in_train]
    _place_scans(job, train, "train_images")
    if job.corrected:
        test = _place_renamed(job, test, "test_images")
    else:
        _place_scans(job, test, "test_images")
    tables.write_csv(train, job.public / "train.csv")
    shown = boxes[boxes["StudyInstanceUID"].isin(chosen.boxed)]
    tables.write_csv(shown, job.public / "train_bounding_boxes.csv")
    answers = test.melt("StudyInstanceUID", TARGETS, "prediction_type", "fractured")
    answers["row_id"] = answers["StudyInstanceUID"] + "_" + answers["prediction_type"]
    tables.write_csv(answers.drop(columns="fractured"), job.public / "test.csv")
    sample = answers[["row_id"]].assign(fractured=0.5)
    labelled_table.write_answers(job, answers, sample)
    names = [f"{uid}.nii" for uid in segmented if uid in chosen.segmented]
    placing.place_named(job, names, volumes, job.public / "segmentations")


def _place_scans(job: Preparation, part: pd.DataFrame, name: str) -> None:
    scans, folder = job.source("train_images"), job.public / name
    placing.place_trees(job, [(scans / uid, folder / uid) for uid in part["StudyInstanceUID"]], name)


def _place_renamed(job: Preparation, part: pd.DataFrame, name: str) -> pd.DataFrame:
    """Place scans under new names that cannot be looked up, and return the table with these names, sorted."""
    renamed = pseudonyms.uids(part["StudyInstanceUID"], part.to_csv(index=False).encode())
    pseudonyms.place_renamed(job, job.source("train_images"), job.public / name, renamed)
    part = part.assign(StudyInstanceUID=part["StudyInstanceUID"].map(renamed))
    return part.sort_values("StudyInstanceUID", kind="stable")


def _choose_train(job: Preparation, uids: list[str], boxed: list[str], segmented: list[str]) -> Studies:
    """Draw the train studies as MLE-bench does, which uses the share intended for test as that of train."""
    rng = random.Random(job.integer("seed"))  # noqa: S311 the draw is part of edition v1
    share = job.number("train_size")
    both = [uid for uid in boxed if uid in set(segmented)]
    counts = [round(len(names) * share) for names in (both, segmented, boxed, uids)]
    if counts[0] > min(counts[1:3]) or counts[3] < counts[1] + counts[2] - counts[0]:
        raise RawDataProblem(
            f"{job.source('train.csv')} does not match train_bounding_boxes.csv and segmentations",
            f"of {len(uids)} studies {len(boxed)} have boxes, {len(segmented)} segmentations, {len(both)} both",
        )
    first = rng.sample(both, counts[0])
    only_segmented = rng.sample(_without(segmented, both), counts[1] - counts[0])
    only_boxed = rng.sample(_without(boxed, both), counts[2] - counts[0])
    taken = [*first, *only_segmented, *only_boxed]
    rest = rng.sample(_without(uids, taken), counts[3] - len(taken))
    return Studies({*taken, *rest}, {*first, *only_boxed}, {*first, *only_segmented})


def _choose_test(job: Preparation, uids: list[str], boxed: list[str], segmented: list[str]) -> Studies:
    """Draw the test studies at random; all boxes and segmentations of the others are published."""
    split = splits.by_row(job, len(uids))
    train = {uids[position] for position in split.train}
    return Studies(train, train & set(boxed), train & set(segmented))


def _without(names: list[str], left_out: list[str]) -> list[str]:
    unwanted = set(left_out)
    return [name for name in names if name not in unwanted]


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the rows to predict, without a fracture."""
    return data.sample().assign(fractured=0)


def grade(case: Grading) -> np.float64:
    """Return the weighted log loss: the mean over studies in edition v1, over all rows in edition corrected."""
    rows = checks.paired_rows(case, "row_id", "fractured")
    predicted = checks.numbers(case.submission, "fractured", low=0, high=1)[rows]
    truth = checks.whole_numbers(case.answers, "fractured")
    parts = case.answers["row_id"].str.partition("_")
    weights = np.where(parts[2] == "patient_overall", 7, 1) * np.where(truth == 1, 2, 1)
    losses = weights * metrics.log_losses(truth, predicted, clip=CLIP)
    if case.corrected:
        return np.float64(losses.sum() / weights.sum())
    study = pd.factorize(parts[0])[0]
    return np.float64((np.bincount(study, losses) / np.bincount(study, weights)).mean())
