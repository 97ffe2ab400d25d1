"""Cells that hold names."""

import pandas as pd
import pytest

from mlebench_console.competitions.kit import metrics
from mlebench_console.competitions.kit.checks import labels
from mlebench_console.competitions.task import InvalidSubmission


@pytest.mark.parametrize("values", [[1, 2], [1.5, None], [True, False], [None, True]])
def test_numbers_and_truth_values_are_no_names(values: list[object]) -> None:
    with pytest.raises(
        InvalidSubmission, match=r"Row \d: label .* is no name: the column holds numbers or True/False only"
    ):
        labels.require_text(pd.DataFrame({"label": values}), "label")


def test_a_column_without_any_name_is_refused_unless_allowed() -> None:
    empty = pd.DataFrame({"label": [float("nan")] * 2})
    labels.require_text(empty, "label", all_missing_ok=True)
    with pytest.raises(InvalidSubmission, match="empty in every row"):
        labels.require_text(empty, "label")


def test_some_names_make_a_column_of_names() -> None:
    labels.require_text(pd.DataFrame({"label": ["a", None, "5"]}), "label")


def test_repeats_blanks_and_order_of_labels_do_not_matter() -> None:
    given = pd.Series(["b  a a ", " c", None, 5])
    truth, predicted = labels.coded_sets(pd.Series(["a b", "c", "", ""]), given)
    assert metrics.pooled_f1(truth, predicted) == 1
    assert len(predicted.row) == 3
