"""Objects written into one cell are read with their rows, and what is malformed is named by its row."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.checks import detections
from mlebench_console.competitions.task import InvalidSubmission

STRICT = detections.ObjectSyntax(("name", "x", "y"), name=0, single_blanks=True, missing_ok=True)
LOOSE = detections.ObjectSyntax(("name", "x", "y"), name=0, single_blanks=False, missing_ok=False)
NAMELESS = detections.ObjectSyntax(("x", "y"), name=None, single_blanks=True, missing_ok=False, blank_ok=True)


def parse(*cells: object, form: detections.ObjectSyntax = STRICT) -> detections.Detections:
    return detections.parse(
        pd.Series(cells, dtype=object), form, column="boxes", row_numbers=range(10, 10 + len(cells))
    )


def test_objects_keep_their_row_and_order() -> None:
    found = parse("a 1 2 b 3 4", None, "c 5 -1e3", float("nan"), "d 0 .5")
    assert found.row.tolist() == [0, 0, 2, 4]
    assert found.names.tolist() == ["a", "b", "c", "d"]
    assert found.numbers.tolist() == [[1, 2], [3, 4], [5, -1000], [0, 0.5]]


def test_no_objects_at_all_are_an_empty_table() -> None:
    assert parse(None, None).numbers.shape == (0, 2)
    assert parse(form=STRICT).row.tolist() == []


def test_blanks_of_any_kind_and_number_are_taken_where_that_is_asked_for() -> None:
    found = parse("  a 1\t 2 ", "   ", "b\n3 4", form=LOOSE)
    assert found.names.tolist() == ["a", "b"]
    assert found.row.tolist() == [0, 2]
    assert found.numbers.tolist() == [[1, 2], [3, 4]]


def test_a_cell_of_blanks_is_empty_where_that_is_asked_for() -> None:
    found = parse("   ", "1 2 3 4", form=NAMELESS)
    assert found.row.tolist() == [1, 1]
    assert found.names.tolist() == []


cells = st.lists(st.text('ab12.- \n"', max_size=12), min_size=1, max_size=4)


@given(cells, st.sampled_from([STRICT, LOOSE]))
def test_the_fast_way_reads_what_the_token_by_token_way_reads(
    texts: list[str], form: detections.ObjectSyntax
) -> None:
    outcomes: list[tuple[list[int], list[str], list[list[float]]] | str] = []
    for fast in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fast:
                patch.setattr(detections, "_read_regular", lambda texts, form: None)
            try:
                found = parse(*texts, form=form)
                outcomes.append((found.row.tolist(), found.names.tolist(), found.numbers.tolist()))
            except InvalidSubmission as error:
                outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


digits = st.text("0123456789", min_size=1, max_size=25)
decimals = st.builds(
    lambda sign, whole, part, power: f"{sign}{whole}.{part}{power}",
    st.sampled_from(["", "-", "+"]),
    digits,
    digits,
    st.one_of(st.just(""), st.integers(-330, 310).map(lambda power: f"e{power}")),
)


@given(st.lists(st.one_of(decimals, st.floats(allow_nan=False).map(repr)), min_size=2, max_size=2))
def test_numbers_are_the_doubles_that_float_gives(tokens: list[str]) -> None:
    assert parse(f"a {tokens[0]} {tokens[1]}").numbers[0].tolist() == [float(token) for token in tokens]


@pytest.mark.parametrize(
    "token",
    [
        *("nan", "NaN", "-nan", "NA", "None", "null", "inf", "-inf", "+inf", "Infinity", "INF", "1e400"),
        *("1e", "e5", ".", "-", "+", "--1", "+-1", "1-2", "1.2.3", "1e+", "1e1.5", "0x1", "1d5", "1,5"),
        *("True", "false", "1_0", "_1", "00012", "-0", "5.", ".5", "\u0661", "1\u00a0", '"1"', "'1'", "#1"),
    ],
)
def test_a_token_is_a_number_exactly_when_float_takes_it(token: str) -> None:
    try:
        expected = float(token)
    except ValueError:
        with pytest.raises(InvalidSubmission, match=r"^Row 12: boxes holds .* where a number is expected"):
            parse("a 1 2", f"a 1 {token}")
        return
    found = parse("a 1 2", f"a 1 {token}").numbers[1, 1]
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize("cell", ["a 1 2 ", " a 1 2", "a  1 2", "a 1", "   a", "", 5, 2.5])
def test_a_cell_that_holds_no_whole_objects_is_named(cell: object) -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 12: boxes "):
        parse("a 1 2", cell)


def test_a_cell_that_borrows_a_token_from_the_next_one_is_named() -> None:
    with pytest.raises(
        InvalidSubmission,
        match=r"^Row 11: boxes 'a 1' has 2 tokens, not a multiple of 3; expected 'name x y'",
    ):
        parse("a 1", "2 b 3 4")


def test_a_missing_cell_is_named_where_it_is_not_taken() -> None:
    with pytest.raises(InvalidSubmission, match=r"^Row 11: boxes is empty"):
        parse(float("nan"), form=LOOSE)


def test_numbers_of_many_objects_are_read_at_once() -> None:
    wanted = np.arange(3000.0).reshape(-1, 3)
    cell = " ".join(f"x{int(a)} {b} {c}" for a, b, c in wanted)
    assert (parse(cell, cell).numbers[1000:] == wanted[:, 1:]).all()
