"""ALASKA2: held-out photos, each published as it was or with a hidden message, scored by a weighted ROC AUC."""

import hashlib
import random
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, splits
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.competitions.task import Grading, Preparation

COVER, HIDING = "Cover", ["JMiPOD", "JUNIWARD", "UERD"]


def prepare(job: Preparation) -> None:
    """Renumber the train photos in all four folders; publish one version of each test photo."""
    covers = sorted(job.source(COVER).glob("*.jpg"))
    _check_covers(job, {cover.name for cover in covers})
    split = splits.by_row(job, len(covers))
    pairs = [
        (job.raw / folder / covers[position].name, job.public / folder / f"{number:05d}.jpg")
        for number, position in enumerate(split.train, start=1)
        for folder in (COVER, *HIDING)
    ]
    test = [covers[position] for position in split.test]
    rng = random.Random(_secret(job, test) if job.corrected else 0)  # noqa: S311 the answers of v1 are fixed
    rng.shuffle(test)
    rows, shown = [], []
    for number, cover in enumerate(test, start=1):
        plain = rng.choice([True, False])
        folder = COVER if plain else rng.choice(HIDING)
        name = f"{number:04d}.jpg"
        shown.append((job.raw / folder / cover.name, job.public / "Test" / name))
        rows.append((name, int(not plain)))
    placing.place(job, pairs, "photos")
    placing.place(job, shown, "Test", anew=True)
    answers = pd.DataFrame(rows, columns=["Id", "Label"])
    labelled_table.write_answers(job, answers, answers.assign(Label=0))


def _check_covers(job: Preparation, covers: set[str]) -> None:
    """Refuse data with a cover missing, since that would shift the whole split."""
    for folder in HIDING:
        without = sorted({photo.name for photo in job.source(folder).glob("*.jpg")} - covers)
        if without:
            raise RawDataProblem(
                f"{job.source(COVER) / without[0]} is missing", f"there is a photo of that name in {folder}"
            )


def _secret(job: Preparation, covers: Sequence[RawPath]) -> bytes:
    """Return a seed that is the same wherever these data are prepared, and cannot be computed from the public part.

    It depends on every held-out photo without a message, and about half of them are published with one only.
    """
    digest = hashlib.blake2b()
    for done, cover in enumerate(covers, start=1):
        digest.update(hashlib.blake2b(cover.read_bytes()).digest())
        job.progress("drawing the labels", done, len(covers))
    return digest.digest()


def grade(case: Grading) -> np.float64:
    """Return the ROC AUC with the part up to a true positive rate of 0.4 counted twice."""
    rows = checks.paired_rows(case, "Id", "Label")
    scores = checks.numbers(case.submission, "Label", spelt="python")[rows]
    truth = case.answers["Label"].to_numpy()
    return np.float64(metrics.banded_auc(truth, scores, edges=(0, 0.4, 1), weights=(2, 1)))
