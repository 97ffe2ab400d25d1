"""Dogs vs. Cats Redux: a split of photos, published as folders and as zips, scored by log loss."""

from collections import Counter

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import archives, checks, metrics, splits
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the photos; each kind of the train part is numbered from 0, the test part from 1.

    In edition v1 the numbers of test photos follow their order among all photos, where cats come before dogs.
    """
    source = job.source("train.zip")
    photos = sorted(name for name in archives.files_in(source) if name.endswith(".jpg"))
    split = splits.by_row(job, len(photos))
    train: dict[str, str] = {}
    numbers: Counter[str] = Counter()
    for name in (photos[position] for position in split.train):
        kind = _kind(name)
        train[name] = f"{kind}.{numbers[kind]}.jpg"
        numbers[kind] += 1
    held_out = [photos[position] for position in split.test]
    if job.corrected:
        held_out = archives.ordered_by_checksum(source, held_out)
    test = {name: f"{number}.jpg" for number, name in enumerate(held_out, start=1)}
    for part, names in (("train", train), ("test", test)):
        archives.repack(job, source, job.public / f"{part}.zip", names)
        archives.extract_as(job, source, {old: job.public / part / new for old, new in names.items()})
    answers = pd.DataFrame(
        {"id": np.arange(1, len(test) + 1), "label": [int(_kind(name) == "dog") for name in test]}
    )
    labelled_table.write_answers(job, answers, answers.assign(label=0.5))


def _kind(name: str) -> str:
    return "cat" if "cat" in name.rpartition("/")[2] else "dog"


def grade(case: Grading) -> float:
    """Return the mean log loss of the probability of a dog."""
    rows = checks.paired_rows(case, "id", "label")
    predicted = checks.numbers(case.submission, "label", low=0, high=1)[rows]
    return float(metrics.log_losses(case.answers["label"].to_numpy(), predicted).mean())
