"""Humpback Whale Identification: photos of flukes split whale by whale, scored by MAP@5."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing, splits
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

NEW = "new_whale"
GUESSES = 5
TRAIN_SHARE = 0.9  # of whales with a single photo
SAMPLE = "new_whale w_1287fbc w_98baff9 w_7554f44 w_1eafe46"


def prepare(job: Preparation) -> None:
    """Split the photos; whales without a photo in train become `new_whale` in the answers."""
    table = labelled_table.read(job, "train.csv", needs=["Image", "Id"], text=["Image", "Id"])
    in_test = _in_test(job, table["Id"])
    train, test = table[~in_test], table[in_test]
    test = test.assign(Id=test["Id"].where(test["Id"].isin(train["Id"]), NEW))
    labelled_table.write_labels(job, train, test, sample=test[["Image"]].assign(Id=SAMPLE))
    for part, folder in ((train, "train"), (test, "test")):
        placing.place_named(job, part["Image"], job.source("train"), job.public / folder)


def _in_test(job: Preparation, whales: pd.Series) -> npt.NDArray[np.bool_]:
    """Return the test rows: whales with several photos get one in each part, single photos are seldom test."""
    seed = job.integer("seed")
    codes = pd.factorize(whales)[0]
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    firsts = np.cumsum(sizes) - sizes
    single = order[firsts[sizes == 1]]
    several = sizes > 1
    drawn = {size: np.random.RandomState(seed).permutation(size)[:2] for size in set(sizes[several].tolist())}
    pairs = [drawn[size] for size in sizes[several].tolist()]
    chosen = order[firsts[several][:, None] + np.array(pairs, dtype=np.intp).reshape(-1, 2)]
    rest = np.setdiff1d(np.arange(len(codes)), np.concatenate([single, chosen.ravel()]))
    late = rest[splits.by_row(job, len(rest)).test]
    in_test = np.zeros(len(codes), dtype=bool)
    in_test[single] = np.random.default_rng(seed).random(len(single)) >= TRAIN_SHARE
    in_test[chosen[:, 1]] = True
    in_test[late] = True
    return in_test


def grade(case: Grading) -> np.float64:
    """Return MAP@5 over photos; in edition v1 each single blank separates two guesses."""
    check = checks.columns_present if case.corrected else checks.columns_exactly
    check(case.submission, ["Image", "Id"])
    rows = checks.matched_rows(case.submission, case.answers, "Image")
    cells = case.submission["Id"].to_numpy(dtype=object)[rows]
    blank = None if case.corrected else " "
    guesses = [cell.split(blank) if isinstance(cell, str) else [] for cell in cells]
    return np.float64(metrics.map_at_k([{whale} for whale in case.answers["Id"]], guesses, GUESSES))
