"""Shared graders match rows by id, refuse what has no meaning with the row, and differ by edition where they say so."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.model import Edition
from mlebench_console.competitions.submissions import SubmissionFile, limits_for
from mlebench_console.competitions.task import Grading, InvalidSubmission

Grader = Callable[[Grading], float]
Table = dict[str, list[object]]

ACCURACY = partial(graders.accuracy, id_column="id", target="label")
NAMES = partial(graders.name_accuracy, id_column="id", target="label")
MACRO_F1 = partial(graders.macro_f1, id_column="id", target="label")
AUC = partial(graders.auc, id_column="id", target="label")
TWO_AUCS = partial(graders.column_auc, id_column="id", targets=["one", "two"])
LOG_LOSS = partial(graders.class_log_loss, id_column="id", classes=["cat", "dog"])

ONE_HOT: Table = {"id": ["a", "b", "c"], "cat": [1, 0, 0], "dog": [0, 1, 1]}


@pytest.fixture(name="score")
def score_of(tmp_path: Path) -> Callable[..., float]:
    """Grade a submission against answers, both read from files as they would be."""

    def score(grader: Grader, answers: Table, submission: Table, edition: Edition = "v1") -> float:
        paths = tmp_path / "answers.csv", tmp_path / "submission.csv"
        for path, table in zip(paths, (answers, submission), strict=True):
            pd.DataFrame(table).to_csv(path, index=False)
        source = SubmissionFile(paths[1], limits_for(paths[0], paths[1]))
        competition = registry.get("spooky-author-identification")
        return grader(Grading(competition, edition, {}, source.read(), paths[0], tmp_path, source))

    return score


def test_labels_are_compared_by_id_not_by_place(score: Callable[..., float]) -> None:
    answers: Table = {"id": [1, 2, 3, 4], "label": [0, 1, 1, 0]}
    assert score(ACCURACY, answers, {"id": [4, 3, 2, 1], "label": [0, 1, 0, 0]}) == 0.75
    names: Table = {"id": [1, 2, 3], "label": ["owl", "elk", "owl"]}
    assert score(NAMES, names, {"id": [3, 1, 2], "label": ["owl", "owl", "owl"]}) == pytest.approx(2 / 3)


@pytest.mark.parametrize("grader", [ACCURACY, NAMES, MACRO_F1, AUC])
def test_ids_must_be_those_asked_for(grader: Grader, score: Callable[..., float]) -> None:
    answers: Table = {"id": [1, 2], "label": ["x", "y"] if grader is NAMES else [0, 1]}
    for ids, told in (([1, 3], "Row 2: id 3"), ([1, 1], "Row 2: id 1"), ([1], "1 rows, expected 2")):
        with pytest.raises(InvalidSubmission, match=told):
            score(grader, answers, {"id": ids, "label": answers["label"][: len(ids)]})
    with pytest.raises(InvalidSubmission, match="Column 'label' is missing"):
        score(grader, answers, {"id": [1, 2], "lable": [0, 1]})


def test_names_may_be_missing_but_are_no_numbers(score: Callable[..., float]) -> None:
    answers: Table = {"id": [1, 2], "label": ["owl", "elk"]}
    assert score(NAMES, answers, {"id": [1, 2], "label": ["owl", None]}) == 0.5
    with pytest.raises(InvalidSubmission, match="the column holds numbers"):
        score(NAMES, answers, {"id": [1, 2], "label": [7, 8]})
    with pytest.raises(InvalidSubmission, match="label is empty in every row"):
        score(NAMES, answers, {"id": [1, 2], "label": [None, None]})
    lenient = partial(NAMES, all_missing_ok=True)
    assert score(lenient, answers, {"id": [1, 2], "label": [None, None]}) == 0


def test_macro_f1_counts_classes_that_only_a_submission_has(score: Callable[..., float]) -> None:
    from sklearn.metrics import f1_score

    truth, told = [0, 0, 1, 1], [0, 2, 1, 1]
    found = score(MACRO_F1, {"id": [1, 2, 3, 4], "label": truth}, {"id": [1, 2, 3, 4], "label": told})
    assert found == pytest.approx(f1_score(truth, told, average="macro", zero_division=0))


def test_fractions_of_class_numbers_are_cut_in_v1_and_refused_in_corrected(
    score: Callable[..., float],
) -> None:
    answers: Table = {"id": [1, 2], "label": [0, 1]}
    submission: Table = {"id": [1, 2], "label": [0.9, 1.0]}
    assert score(MACRO_F1, answers, submission) == 1
    with pytest.raises(InvalidSubmission, match=r"Row 1: label 0\.9 is not a whole number"):
        score(MACRO_F1, answers, submission, "corrected")


def test_auc_is_the_mean_over_columns(score: Callable[..., float]) -> None:
    from sklearn.metrics import roc_auc_score

    one, two = [0, 1, 1, 0], [1, 0, 0, 0]
    told_one, told_two = [0.1, 0.4, 0.35, 0.8], [0.2, 0.2, 0.1, 0.9]
    ids = list("abcd")
    found = score(
        TWO_AUCS, {"id": ids, "one": one, "two": two}, {"id": ids, "one": told_one, "two": told_two}
    )
    assert found == pytest.approx((roc_auc_score(one, told_one) + roc_auc_score(two, told_two)) / 2)


def test_scores_of_an_auc_are_probabilities_unless_told_otherwise(score: Callable[..., float]) -> None:
    answers: Table = {"id": [1, 2], "label": [0, 1]}
    for value in (1.5, -0.5, None, math.inf, "high"):
        with pytest.raises(InvalidSubmission, match="Row 2: label"):
            score(AUC, answers, {"id": [1, 2], "label": [0.5, value]})
    wide = partial(graders.column_auc, id_column="id", targets=["label"], low=-math.inf, high=math.inf)
    assert score(wide, answers, {"id": [1, 2], "label": [-7, 5]}) == 1


def test_log_loss_wants_probabilities_that_sum_to_one_in_v1(score: Callable[..., float]) -> None:
    from sklearn.metrics import log_loss

    given: Table = {"id": ["b", "a", "c"], "cat": [0.25, 0.5, 0.0], "dog": [0.75, 0.5, 1.0]}
    expected = log_loss([0, 1, 1], [[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]])
    assert score(LOG_LOSS, ONE_HOT, given) == pytest.approx(expected)
    with pytest.raises(InvalidSubmission, match=r"Row 2: the probabilities sum to 0\.9"):
        score(LOG_LOSS, ONE_HOT, given | {"cat": [0.25, 0.4, 0.0]})


def test_log_loss_rescales_rows_in_corrected_and_clips_as_kaggle_does(score: Callable[..., float]) -> None:
    given: Table = {"id": ["a", "b", "c"], "cat": [2, 1, 5], "dog": [2, 3, 0]}
    with pytest.raises(InvalidSubmission, match="Row 1: cat 2 is out of range"):
        score(LOG_LOSS, ONE_HOT, given)
    expected = -(math.log(0.5) + math.log(0.75) + math.log(graders.KAGGLE_CLIP)) / 3
    assert score(LOG_LOSS, ONE_HOT, given, "corrected") == pytest.approx(expected)
    with pytest.raises(InvalidSubmission, match="Row 3: no class has a probability above zero"):
        score(LOG_LOSS, ONE_HOT, given | {"cat": [2, 1, 0]}, "corrected")


def test_sums_may_be_compared_when_rounded_and_further_columns_refused(score: Callable[..., float]) -> None:
    given: Table = {"id": ["a", "b", "c"], "cat": [0.504, 0.25, 0.0], "dog": [0.5, 0.75, 1.0]}
    rounded = partial(LOG_LOSS, sum_decimals=2)
    assert score(rounded, ONE_HOT, given) > 0
    with pytest.raises(InvalidSubmission, match="Row 1: the probabilities sum to"):
        score(LOG_LOSS, ONE_HOT, given)
    strict = partial(rounded, only_these_columns=True)
    assert score(strict, ONE_HOT, given) == score(rounded, ONE_HOT, given)
    with pytest.raises(InvalidSubmission, match="Column 'sure' is not expected"):
        score(strict, ONE_HOT, given | {"sure": [1, 1, 1]})
