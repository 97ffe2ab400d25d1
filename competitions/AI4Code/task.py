"""AI4Code: order the cells of notebooks; split by origin, scored by Kendall's tau."""

import math
from bisect import bisect

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, tables
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawDataProblem, read_as
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

LARGEST_SHARE = 0.15  # of all notebooks; the 20,000 of the real data are fewer


def prepare(job: Preparation) -> None:
    """Hold out whole families of forked notebooks."""
    orders = labelled_table.read(
        job, "train_orders.csv", needs=["id", "cell_order"], text=["id", "cell_order"]
    )
    columns = ["id", "ancestor_id", "parent_id"]
    family = labelled_table.read(job, "train_ancestors.csv", needs=columns, words=columns)
    _check_same_notebooks(job, orders["id"], family["id"])
    family = family.iloc[np.random.RandomState(job.integer("seed")).permutation(len(family))]
    in_test = _in_test(job, family["ancestor_id"])
    held_out = orders["id"].isin(family["id"][in_test])
    parts = {"train": orders[~held_out], "test": orders[held_out]}
    tables.write_csv(parts["train"], job.public / "train_orders.csv")
    tables.write_csv(family[~in_test], job.public / "train_ancestors.csv")
    raw = job.source("train")
    for name, part in parts.items():
        placing.place_named(job, part["id"] + ".json", raw, job.public / name)
    given = [_cells_as_given(job, id_) for id_ in parts["test"]["id"]]
    labelled_table.write_answers(job, parts["test"], parts["test"].assign(cell_order=given))


def _check_same_notebooks(job: Preparation, ordered: pd.Series, related: pd.Series) -> None:
    """Refuse tables of different notebooks: one that is cut short looks complete, but would change the split."""
    lacking = {
        "train_orders.csv": related[~related.isin(ordered)],
        "train_ancestors.csv": ordered[~ordered.isin(related)],
    }
    name, notebooks = max(lacking.items(), key=lambda each: len(each[1]))
    if len(notebooks):
        raise RawDataProblem(
            f"{job.source(name)} is incomplete",
            f"it lacks {len(notebooks)} notebooks of the other table, such as {notebooks.iloc[0]}",
        )


def _in_test(job: Preparation, ancestors: pd.Series) -> npt.NDArray[np.bool_]:
    """Return the test rows: families in order of appearance, as long as they fit."""
    test_size = job.integer("test_size")
    if job.corrected:
        test_size = min(test_size, math.ceil(LARGEST_SHARE * len(ancestors)))
    codes, names = pd.factorize(ancestors, use_na_sentinel=False)
    chosen, taken = np.zeros(len(names), dtype=bool), 0
    for family, size in enumerate(np.bincount(codes).tolist()):
        if taken + size <= test_size:
            chosen[family] = True
            taken += size
    if taken != test_size and not job.corrected:
        raise job.unexpected(
            "train_ancestors.csv", f"its families add up to {taken} test notebooks, expected {test_size}"
        )
    return chosen[codes]


def _cells_as_given(job: Preparation, notebook: str) -> str:
    path = job.source(f"train/{notebook}.json")
    with read_as("a notebook", path, ValueError, KeyError, TypeError):
        return " ".join(json_files.read_json(path)["cell_type"])


def grade(case: Grading) -> float:
    """Return Kendall's tau over all notebooks: 1 in the right order, -1 in the reversed one."""
    rows = checks.paired_rows(case, "id", "cell_order")
    wanted, given = (
        [[] if pd.isna(cell) else str(cell).split() for cell in cells.tolist()]
        for cells in (case.answers["cell_order"], case.submission["cell_order"].iloc[rows])
    )
    wrong = sum(inversions(*each) for each in zip(rows, wanted, given, strict=True))
    pairs = sum(len(names) * (len(names) - 1) for names in wanted)
    if not pairs:
        raise InvalidSubmission("No notebook has two cells, so there is no order to compare.")
    return 1.0 - 4.0 * wrong / pairs


def inversions(row: int, wanted: list[str], given: list[str]) -> int:
    """Return how many pairs of names are in the wrong order; `row` is for the messages."""
    if len(wanted) != len(given):
        raise InvalidSubmission(
            f"Row {row + 1}: cell_order holds {len(given)} name{'s' * (len(given) != 1)}, but the notebook has "
            f"{len(wanted)} cells; expected the name of each."
        )
    ranks = {name: rank for rank, name in enumerate(wanted)}
    if ranks.keys() != set(given):
        strange = next((name for name in given if name not in ranks), None)
        lacking = next(name for name in ranks if name not in given)
        instead = (
            "a name twice"
            if strange is None
            else f"{checks.quoted(strange)}, which is no cell of the notebook,"
        )
        raise InvalidSubmission(
            f"Row {row + 1}: cell_order must hold the name of every cell of the notebook exactly once; "
            f"it holds {instead} and lacks {checks.quoted(lacking)}."
        )
    found = 0
    before: list[int] = []  # the ranks of the names passed, sorted
    for passed, rank in enumerate(map(ranks.__getitem__, given)):
        lower = bisect(before, rank)
        found += passed - lower
        before.insert(lower, rank)
    return found
