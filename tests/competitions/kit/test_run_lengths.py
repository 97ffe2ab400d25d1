"""Masks read as runs are the masks that painting them pixel by pixel gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.formats import run_lengths
from mlebench_console.competitions.task import InvalidSubmission

SIZE = 40

pictures = st.lists(st.lists(st.booleans(), min_size=SIZE, max_size=SIZE), min_size=1, max_size=6)


def painted(masks: run_lengths.Masks, size: int = SIZE) -> np.ndarray:
    picture = np.zeros((masks.rows, size), dtype=bool)
    for row, start, stop in zip(masks.row, masks.start, masks.stop, strict=True):
        assert not picture[row, start:stop].any()
        picture[row, start:stop] = True
    return picture


def parse(*cells: object, strict: bool = False) -> run_lengths.Masks:
    return run_lengths.parse(cells, SIZE, column="mask", strict=strict)


@given(pictures)
def test_what_is_encoded_is_read_back(rows: list[list[bool]]) -> None:
    picture = np.array(rows)
    masks = parse(*[run_lengths.encode(row) for row in picture], strict=True)
    assert (painted(masks) == picture).all()
    assert masks.areas().tolist() == picture.sum(axis=1).tolist()


@given(pictures, st.randoms(use_true_random=False))
def test_overlaps_count_the_common_pixels(rows: list[list[bool]], random: object) -> None:
    picture = np.array(rows)
    other = np.roll(picture, 3, axis=1) ^ np.roll(picture, 1, axis=0)
    first, second = (parse(*map(run_lengths.encode, side)) for side in (picture, other))
    assert run_lengths.overlaps(first, second).tolist() == (picture & other).sum(axis=1).tolist()
    total = picture.sum(axis=1) + other.sum(axis=1)
    expected = [2 * (a & b).sum() / n if n else np.nan for a, b, n in zip(picture, other, total, strict=True)]
    assert np.array_equal(run_lengths.dice(first, second), expected, equal_nan=True)


def test_runs_are_cut_at_the_end_of_the_picture_and_dropped_beyond_it() -> None:
    masks = parse("39 10", "41 3 41 3", f"{10**30} 5", f"1 {10**30}")
    assert masks.areas().tolist() == [2, 0, 0, SIZE]


def test_blanks_of_all_kinds_separate_numbers() -> None:
    masks = parse("  1\t2\n5  1 ", "", " \x1c ", "\u00a03\u00a04", "+1 1_0", "\u0661 2")
    assert masks.areas().tolist() == [3, 0, 0, 4, 10, 2]


def test_odd_numbers_are_read_as_mle_bench_reads_them() -> None:
    masks = parse("7", "1 3 10", "", "5 2", "2 2 9", "8")
    assert masks.areas().tolist() == [0, 6, 0, 2, 4, 0]
    assert painted(masks)[1].nonzero()[0].tolist() == [0, 1, 2, 9, 10, 11]


def test_the_first_masks_can_be_taken_alone() -> None:
    masks = parse("1 2", "", "3 4 9 1", "5 6").head(3)
    assert masks.rows == 3
    assert masks.areas().tolist() == [2, 0, 5]


def test_touching_runs_are_no_overlap() -> None:
    assert parse("1 2 3 2", strict=True).areas().tolist() == [4]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("5 2 1 2", "ascend"),
        ("1 5 3 1", "overlap"),
        ("1 5 1 1", "overlap"),
        ("0 5", "below 1"),
        ("3 0", "below 1"),
        ("-3 4", "count from 1"),
        ("0", "below 1"),
        ("1 2 3 4 5", "without a length"),
        ("1 4 2", "overlap"),
        ("1.0 2", "'1.0'"),
        ("1 2 x", "'x'"),
        (float("nan"), "is empty"),
        (5, "not text"),
    ],
)
def test_a_malformed_cell_is_named_by_its_row(cell: object, why: str) -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 2: mask ") as caught:
        parse("1 1", cell, "2 2")
    assert why in str(caught.value)


def test_a_missing_cell_is_an_empty_mask_only_where_that_is_asked_for() -> None:
    cells = pd.Series(["1 2", None, float("nan")])
    masks = run_lengths.parse(cells, SIZE, column="mask", strict=False, missing_ok=True)
    assert masks.areas().tolist() == [2, 0, 0]
    with pytest.raises(InvalidSubmission, match=r"^Row 2: "):
        run_lengths.parse(cells, SIZE, column="mask", strict=False)
    with pytest.raises(InvalidSubmission, match=r"^Row 1: .* not text"):
        run_lengths.parse(pd.Series([5.0, None]), SIZE, column="mask", strict=False, missing_ok=True)


@pytest.mark.parametrize("cell", ["7", "1 3 10", "39 10", "41 1"])
def test_strict_reading_refuses_odd_numbers_and_pixels_beyond_the_picture(cell: str) -> None:
    assert parse(cell).rows == 1
    with pytest.raises(InvalidSubmission, match="Row 1"):
        parse(cell, strict=True)


def test_rows_are_named_as_they_stand_in_the_submission() -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 8: "):
        run_lengths.parse(["1 1", "x"], SIZE, column="mask", strict=False, row_numbers=[3, 7])
