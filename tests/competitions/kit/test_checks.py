"""What a submission may hold wrong is refused with the row and the column, and nothing about the answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit import checks
from mlebench_console.competitions.task import InvalidSubmission
from mlebench_console.foundation.problems import DataProblem

ANSWERS = pd.DataFrame({"id": ["a", "b", "c"], "y": [1, 0, 1]})


def ids(*values: object) -> pd.DataFrame:
    return pd.DataFrame({"id": list(values)})


def test_rows_are_matched_by_id_in_any_order() -> None:
    assert checks.matched_rows(ids("c", "a", "b"), ANSWERS, "id").tolist() == [1, 2, 0]
    assert checks.matched_rows(ids("a", "b", "c"), ANSWERS, "id").tolist() == [0, 1, 2]


def test_ids_match_across_number_types() -> None:
    answers = pd.DataFrame({"id": [3, 1, 2]})
    assert checks.matched_rows(ids(1.0, 2.0, 3.0), answers, "id").tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("submission", "message"),
    [
        (pd.DataFrame({"x": [1, 2, 3]}), "Column 'id' is missing"),
        (ids("a", "b"), "2 rows, expected 3"),
        (ids("a", "b", None), "Row 3: id is empty"),
        (ids("a", "x", "c"), "Row 2: id 'x' is not among"),
        (ids("a", "b", "b"), "Row 3: id 'b' stands in row 2 already. 1 id has no row: 'c'"),
        (ids(1, 2, 3), "Row 1: id 1 is not among"),
        (ids(1, "b", "c"), "Row 1: id 1 is not among"),
    ],
)
def test_ids_that_do_not_match_are_told_by_row(submission: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidSubmission, match=message):
        checks.matched_rows(submission, ANSWERS, "id")


@given(st.lists(st.integers(0, 4), min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_repeated_ids_are_paired_in_file_order(values: list[int], random: object) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    submission = pd.DataFrame({"id": [values[i] for i in order]})
    found = checks.matched_rows(submission, pd.DataFrame({"id": values}), "id")
    assert submission["id"].to_numpy()[found].tolist() == values
    for value in set(values):
        places = [position for position, wanted in zip(found, values, strict=True) if wanted == value]
        assert places == sorted(places)


def test_a_missing_id_in_the_answers_matches_nothing() -> None:
    with pytest.raises(InvalidSubmission):
        checks.matched_rows(ids("a"), ids(None), "id")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([0.5, "x", 1], "Row 2: p 'x' is not a number"),
        ([0.5, None, 1], "Row 2: p is empty; expected a number from 0 to 1"),
        ([0.5, np.inf, 1], "Row 2: p inf is not finite"),
        ([0.5, -0.25, 1], "Row 2: p -0.25 is out of range; expected a number from 0 to 1"),
        ([0.5, 1, 1.5], "Row 3: p 1.5 is out of range"),
    ],
)
def test_numbers_are_checked_by_row(column: list[object], message: str) -> None:
    with pytest.raises(InvalidSubmission, match=message):
        checks.numbers(pd.DataFrame({"p": column}), "p", low=0, high=1)


def test_numbers_in_text_and_booleans_are_numbers() -> None:
    table = pd.DataFrame({"p": ["1e-3", "0.5"], "q": [True, False]})
    assert checks.numbers(table, ["p", "q"]).tolist() == [[0.001, 1.0], [0.5, 0.0]]


def test_missing_and_infinite_can_be_let_through() -> None:
    table = pd.DataFrame({"p": [np.nan, np.inf]})
    found = checks.numbers(table, "p", missing_ok=True, infinite_ok=True)
    assert np.isnan(found[0]) and np.isinf(found[1])


TEXTS = ["0.5", "1_0", "\uff11", "2\u2003", " 3 "]  # all of them are numbers to Python


@pytest.mark.parametrize(
    ("spelt", "message"),
    [("pandas", "Row 2: p '1_0' is not a number"), ("refused", "Row 2: p '1_0' is not a number")],
)
def test_numbers_as_python_spells_them_are_taken_where_told_alone(
    spelt: checks.Spelling, message: str
) -> None:
    table = pd.DataFrame({"p": TEXTS})
    assert checks.numbers(table, "p", spelt="python").tolist() == [0.5, 10, 1, 2, 3]
    with pytest.raises(InvalidSubmission, match=message):
        checks.numbers(table, "p", spelt=spelt)


def test_a_column_that_a_huge_number_made_text_is_refused_where_told() -> None:
    table = pd.DataFrame({"p": ["1", None, "99999999999999999999", "3"]})
    assert checks.numbers(table, "p", missing_ok=True)[2] == 1e20
    with pytest.raises(InvalidSubmission, match="Row 3: p '99999999999999999999' is beyond what a column"):
        checks.numbers(table, "p", missing_ok=True, spelt="refused")


@pytest.mark.parametrize("text", ["x", "1__0", "", "nan"])
def test_what_is_no_number_to_python_is_refused(text: str) -> None:
    with pytest.raises(InvalidSubmission, match=r"Row 2: p .*number"):
        checks.numbers(pd.DataFrame({"p": ["1_0", text]}), "p", spelt="python")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([True, None], "Row 2: y is empty; expected a whole number or True/False"),
        (["yes", "no"], "Row 1: y 'yes' is not a label"),
        (["True", "False", "Maybe"], "Row 3: y 'Maybe' is not a label"),
        (["true", "false", "0"], "Row 3: y '0' is not a label"),
        ([True, False, 0.5], "Row 3: y 0.5 is not a label"),
        (["1", "0", "True"], "Row 3: y 'True' is not a label"),
        (["3", "-1e999", "1e999"], "Row 2: y '-1e999' is not a label"),
        ([1.0, 0.5], "Row 2: y 0.5 is not a whole number"),
        ([1.0, np.nan], "Row 2: y is empty"),
        ([1.0, np.inf], "Row 2: y inf is not finite"),
    ],
)
def test_labels_are_whole_numbers_or_booleans(column: list[object], message: str) -> None:
    with pytest.raises(InvalidSubmission, match=message):
        checks.whole_numbers(pd.DataFrame({"y": column}), "y")


def test_a_label_too_large_to_be_known_as_whole_is_refused() -> None:
    assert checks.whole_numbers(pd.DataFrame({"y": [2.0**62, 1.0]}), "y").tolist() == [2.0**62, 1.0]
    with pytest.raises(InvalidSubmission, match="Row 1: y 1e\\+22 is too large for a label"):
        checks.whole_numbers(pd.DataFrame({"y": [1e22, 1.0]}), "y")


def test_labels_of_an_empty_text_column_are_refused() -> None:
    with pytest.raises(InvalidSubmission, match="a header and no rows"):
        checks.whole_numbers(pd.DataFrame({"y": pd.Series([], dtype=str)}), "y")


def test_additional_columns_can_be_refused() -> None:
    table = pd.DataFrame({"id": [1], "x": [1]})
    checks.columns_exactly(table, ["x", "id"])
    with pytest.raises(InvalidSubmission, match="Column 'x' is not expected"):
        checks.columns_exactly(table, ["id"])


def test_rows_must_sum_to_one_within_the_tolerance() -> None:
    checks.rows_sum_to_one(np.array([[0.5, 0.50001]]))
    with pytest.raises(InvalidSubmission, match=r"Row 2: the probabilities sum to 1\.1"):
        checks.rows_sum_to_one(np.array([[0.5, 0.5], [0.5, 0.6]]))


def test_rows_are_rescaled_to_one() -> None:
    assert checks.rescaled_rows(np.array([[1.0, 3.0]])).tolist() == [[0.25, 0.75]]
    with pytest.raises(InvalidSubmission, match="Row 1: no class"):
        checks.rescaled_rows(np.array([[0.0, 0.0]]))


def test_a_hostile_cell_is_shown_tamed() -> None:
    shown = checks.quoted("\x1b[31m\u202e" + "x" * 500)
    assert shown.isascii() and shown.isprintable() and len(shown) < 100


def test_repeated_ids_find_their_answer_and_missing_ones_are_counted() -> None:
    answers = pd.DataFrame({"id": [5, 3, 8]})
    given = pd.DataFrame({"id": [8.0, 3, 8, 5]})
    assert checks.rows_asked_for(given, answers, "id").tolist() == [2, 1, 2, 0]
    some = checks.rows_asked_for(given.iloc[:1], answers, "id", all_needed=False)
    assert some.tolist() == [2]
    with pytest.raises(InvalidSubmission, match="2 ids have no row: 3, 5"):
        checks.rows_asked_for(given.iloc[:1], answers, "id")
    for foreign in (4, None, "x"):
        with pytest.raises(InvalidSubmission, match="Row 2: id"):
            checks.rows_asked_for(pd.DataFrame({"id": [8, foreign]}), answers, "id")


def test_what_is_wrong_with_the_answers_is_no_fault_of_a_submission() -> None:
    with pytest.raises(DataProblem, match="answers cannot be read"), checks.reading_answers():
        checks.columns_present(ANSWERS, ["z"])
