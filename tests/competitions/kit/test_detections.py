"""Objects written into one cell are read with their rows, and what is malformed is named by its row."""

from __future__ import annotations

import pandas as pd
import pytest

from competitions.kit import detections
from competitions.task import InvalidSubmission


def parse(*cells: object, single_blanks: bool = True, missing_ok: bool = True) -> detections.Detections:
    return detections.parse(
        pd.Series(cells, dtype=object),
        3,
        column="boxes",
        single_blanks=single_blanks,
        missing_ok=missing_ok,
        row_numbers=range(10, 10 + len(cells)),
    )


def test_objects_keep_their_row_and_order() -> None:
    found = parse("a 1 2 b 3 4", None, "c 5 nan")
    assert found.row.tolist() == [0, 0, 2]
    assert found.fields[0] == ["a", "b", "c"]
    assert found.numbers(1).tolist() == [1.0, 3.0, 5.0]
    assert str(found.numbers(2)[2]) == "nan"


def test_blanks_of_any_number_are_taken_where_that_is_asked_for() -> None:
    assert parse("  a 1\t 2 ", "   ", single_blanks=False).fields[2] == ["2"]


def test_a_cell_of_blanks_is_empty_where_that_is_asked_for() -> None:
    found = detections.parse(
        ["   ", "a b"], 2, column="boxes", single_blanks=True, missing_ok=False, blank_ok=True
    )
    assert found.row.tolist() == [1]


@pytest.mark.parametrize("cell", ["a 1 2 ", " a 1 2", "a  1 2", "a 1", "   a", "", 5, 2.5])
def test_a_cell_that_holds_no_whole_objects_is_named(cell: object) -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 12: boxes "):
        parse("a 1 2", cell)


def test_a_missing_cell_is_named_where_it_is_not_taken() -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 11: boxes is missing"):
        parse(float("nan"), missing_ok=False)


def test_a_token_that_is_no_number_is_named() -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 12: boxes holds 'ten'"):
        parse("a 1 2", "a 1 2 b ten 2").numbers(1)
