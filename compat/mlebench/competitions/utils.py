"""MLE-bench's helpers for graders and preparers, which forks and their own competitions import."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench.grade_helpers import InvalidSubmissionError
from mlebench.utils import get_logger

logger = get_logger(__name__)

Array = npt.NDArray[Any]


def df_to_one_hot(
    df: pd.DataFrame, id_column: str, target_column: str, classes: Sequence[str]
) -> pd.DataFrame:
    """Return a table with the ids and a column of 0 and 1 for each class; a further class gets one too."""
    named = list(dict.fromkeys([*classes, *df[target_column]]))
    hot = pd.DataFrame({name: (df[target_column] == name).astype(int) for name in named}, index=df.index)
    return pd.concat([df[[id_column]], hot], axis=1)


def one_hot_dfs_to_log_loss_inputs(
    submission_one_hot: pd.DataFrame,
    answers_one_hot: pd.DataFrame,
    id_column: str = "id",
    apply_softmax: bool = True,
) -> dict[str, Array]:
    """Return `y_true` and `y_pred` for a log loss, with rows paired by id and the answers' columns.

    Raises:
        InvalidSubmissionError: a column is missing.
        AssertionError: the ids of both differ.
    """
    lacking = set(answers_one_hot.columns) - set(submission_one_hot.columns)
    if lacking:
        raise InvalidSubmissionError(
            f"The submission DataFrame is missing columns of the answers: {lacking}."
        )
    if id_column not in answers_one_hot.columns:
        raise InvalidSubmissionError(f"Submission is missing id column '{id_column}'.")
    answers = answers_one_hot.sort_values(id_column)
    submission = submission_one_hot[list(answers.columns)].sort_values(id_column)
    assert submission[id_column].tolist() == answers[id_column].tolist(), (
        f"Mismatch in {id_column.capitalize()}s between `submission` and `answers` after sorting."
    )
    predicted = submission.drop(columns=id_column).to_numpy()
    if apply_softmax and is_one_hot_encoded(predicted):
        logger.warning("The submission is already one-hot encoded, so no softmax is applied.")
    elif apply_softmax:
        from scipy.special import softmax

        predicted = softmax(predicted, axis=-1)
    return {"y_true": answers.drop(columns=id_column).to_numpy(), "y_pred": predicted}


def is_one_hot_encoded(xs: Array) -> bool:
    """Return whether a matrix has 0 and 1 only, with one 1 in each row."""
    assert xs.ndim == 2, f"Expected a 2D array, got {xs.ndim}D."
    return bool(np.isin(xs, (0, 1)).all() and np.allclose(xs.sum(axis=-1), 1))


def rle_decode(rle_string: str, height: int, width: int) -> npt.NDArray[np.bool_]:
    """Return the mask of run lengths, which count from 1, down the columns.

    Raises:
        AssertionError: the pairs are not sorted, not positive, or overlap.
    """
    numbers = [int(word) for word in rle_string.split()]
    starts, lengths = numbers[::2], numbers[1::2]
    assert starts == sorted(starts), "The pairs in the RLE string must be sorted."
    assert all(number > 0 for number in numbers), "All pairs in the RLE string must be positive integers."
    flat = np.zeros(height * width, dtype=np.bool_)
    for start, length in zip(starts, lengths, strict=True):
        run = flat[start - 1 : start - 1 + length]
        assert not run.any(), "Overlapping RLE pairs are not allowed."
        run[:] = True
    return flat.reshape((width, height)).T


def rle_encode(x: Array, fg_val: int = 1) -> list[int]:
    """Return the starts and lengths of a mask's runs, which count from 1, down the columns."""
    inside = np.concatenate([[False], x.T.ravel() == fg_val, [False]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(inside)) + 1
    found: list[int] = np.column_stack([edges[::2], edges[1::2] - edges[::2]]).ravel().tolist()
    return found


def rles_to_masks(
    rl_encodings: Sequence[str], image_heights: Sequence[int], image_widths: Sequence[int]
) -> list[npt.NDArray[np.bool_]]:
    """Return the mask of each of several run-length encodings."""
    return list(map(rle_decode, rl_encodings, image_heights, image_widths))


def get_ids_from_tf_records(tf_record_path: Path, id_feature: str = "image_name") -> list[str]:
    """Return the text of a feature of each record in a file of TensorFlow's."""
    from mlebench_console.competitions.kit.formats import tfrecords

    return tfrecords.texts(Path(tf_record_path), id_feature)


def prepare_for_accuracy_metric(
    submission: pd.DataFrame, answers: pd.DataFrame, target_column: str, id_column: str
) -> dict[str, Array]:
    """Return `y_true` and `y_pred` for an accuracy, with rows paired by sorting their ids.

    Raises:
        InvalidSubmissionError: a column is missing, or the ids of both differ.
    """
    given, wanted = _sorted_alike(submission, answers, id_column, target_column)
    return {"y_true": wanted, "y_pred": given}


def prepare_for_auroc_metric(
    submission: pd.DataFrame, answers: pd.DataFrame, id_col: str, target_col: str
) -> dict[str, Array]:
    """Return `y_true` and `y_score` for an area under the ROC curve, with rows paired by sorting their ids.

    Raises:
        InvalidSubmissionError: a column is missing, the ids of both differ, or a value is no probability.
    """
    given, wanted = _sorted_alike(submission, answers, id_col, target_col)
    try:
        numbers = pd.to_numeric(submission[target_col])
    except ValueError as error:
        found = submission[target_col].dtype
        raise InvalidSubmissionError(
            f"Expected {target_col} column to be numeric, got {found} instead"
        ) from error
    if numbers.min() < 0 or numbers.max() > 1:
        raise InvalidSubmissionError(f"{target_col} should contain probabilities, which are from 0 to 1")
    return {"y_true": wanted, "y_score": given}


def _sorted_alike(
    submission: pd.DataFrame, answers: pd.DataFrame, id_column: str, target: str
) -> tuple[Array, Array]:
    for name in (id_column, target):
        assert name in answers.columns, f"Answers must have a `{name}` column"
        if name not in submission.columns:
            raise InvalidSubmissionError(f"Submission must have a `{name}` column")
    if len(submission) != len(answers):
        raise InvalidSubmissionError("Submission must have the same length as the answers.")
    given, wanted = submission.sort_values(id_column), answers.sort_values(id_column)
    if (given[id_column].to_numpy() != wanted[id_column].to_numpy()).any():
        raise InvalidSubmissionError(f"Submission and Answers `{id_column}`'s do not match")
    return given[target].to_numpy(), wanted[target].to_numpy()
