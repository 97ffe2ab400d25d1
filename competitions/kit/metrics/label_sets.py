"""Metrics over sets of labels per row: F1 pooled over all rows, and F1 row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class LabelSets:
    """The labels of every row as sorted, distinct (row, label) pairs.

    Attributes:
        row: the pairs' rows.
        label: the pairs' labels, as numbers that both sides of a comparison share.
        rows: the number of rows, including those without a label.
    """

    row: Codes
    label: Codes
    rows: int

    def among(self, other: LabelSets) -> LabelSets:
        """Return the pairs whose label occurs anywhere in `other`."""
        kept = np.isin(self.label, other.label)
        return LabelSets(self.row[kept], self.label[kept], self.rows)


def pooled_f1(truth: LabelSets, predicted: LabelSets) -> float:
    """Return F1 with hits and errors counted over all pairs (micro average); 0 when there is no pair."""
    total = len(truth.row) + len(predicted.row)
    return 2.0 * len(_hit_rows(truth, predicted)) / total if total else 0.0


def mean_row_f1(truth: LabelSets, predicted: LabelSets) -> float:
    """Return the mean of the rows' F1; a row without any label on both sides counts 0."""
    hits, true_sizes, sizes = (
        np.bincount(rows, minlength=truth.rows)
        for rows in (_hit_rows(truth, predicted), truth.row, predicted.row)
    )
    return float(np.mean(2.0 * hits / np.maximum(true_sizes + sizes, 1)))


def _hit_rows(truth: LabelSets, predicted: LabelSets) -> Codes:
    width = int(max(truth.label.max(initial=-1), predicted.label.max(initial=-1))) + 1
    pairs = [side.row * width + side.label for side in (truth, predicted)]
    both = np.sort(np.concatenate(pairs), kind="stable")  # merges two sorted runs
    common: Codes = both[1:][both[1:] == both[:-1]]
    return common // max(width, 1)
