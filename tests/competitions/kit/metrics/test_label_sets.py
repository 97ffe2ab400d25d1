"""F1 over sets of labels."""

import pandas as pd
import pytest

from mlebench_console.competitions.kit import metrics
from mlebench_console.competitions.kit.checks import labels

TRUTH = pd.Series(["a b", "b", "c", "d e f"])


def test_pooled_f1_counts_hits_and_errors_over_all_rows() -> None:
    truth, predicted = labels.coded_sets(TRUTH, pd.Series(["a", "b c", "x", ""]))
    assert metrics.pooled_f1(truth, predicted) == pytest.approx(2 * 2 / (7 + 4))


def test_mean_row_f1_gives_every_row_the_same_weight() -> None:
    truth, predicted = labels.coded_sets(TRUTH, pd.Series(["a", "b c", "x", ""]))
    assert metrics.mean_row_f1(truth, predicted) == pytest.approx((2 / 3 + 2 / 3 + 0 + 0) / 4)


def test_a_label_that_never_is_true_can_be_left_out() -> None:
    truth, predicted = labels.coded_sets(TRUTH, pd.Series(["a x", "b y", "c", "d e f"]))
    assert metrics.pooled_f1(truth, predicted) == pytest.approx(2 * 6 / (7 + 8))
    assert metrics.pooled_f1(truth, predicted.among(truth)) == pytest.approx(2 * 6 / (7 + 6))


def test_no_labels_at_all_score_zero() -> None:
    truth, predicted = labels.coded_sets(pd.Series(["", ""]), pd.Series(["", ""]))
    assert metrics.pooled_f1(truth, predicted) == 0
    assert metrics.mean_row_f1(truth, predicted) == 0
