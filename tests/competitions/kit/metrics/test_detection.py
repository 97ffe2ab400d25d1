"""Average precision in three forms, against figures worked out by hand and a plain reading of the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.metrics import detection


def by_hand(hits: list[bool], positives: int) -> float:
    precisions = [sum(hits[: i + 1]) / (i + 1) for i in range(len(hits))]
    return sum(max(precisions[i:]) for i, hit in enumerate(hits) if hit) / positives


@given(st.lists(st.lists(st.booleans(), max_size=20), min_size=1, max_size=5))
def test_the_envelope_form_follows_its_definition_in_every_group(rows: list[list[bool]]) -> None:
    positives = np.array([max(sum(row), 1) + 1 for row in rows])
    group = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    hits = np.array([hit for row in rows for hit in row], dtype=bool)
    found = detection.envelope_average_precision(hits, group, positives)
    assert found == pytest.approx([by_hand(row, n) for row, n in zip(rows, positives.tolist(), strict=True)])


def test_the_sampled_form_reads_101_recall_levels() -> None:
    # one of two found at once: levels 0 to 0.5 are reached, 51 of 101
    assert detection.sampled_average_precision(np.array([True]), 2) == pytest.approx(51 / 101)
    assert detection.sampled_average_precision(np.array([False, True]), 1) == pytest.approx(0.5)
    assert detection.sampled_average_precision(np.array([], dtype=bool), 3) == 0.0


def test_the_step_form_takes_equal_scores_together() -> None:
    truth, scores = np.array([True, False, True, False]), np.array([0.9, 0.5, 0.5, 0.1])
    assert detection.step_average_precision(truth, scores) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert detection.step_average_precision(truth[::-1], scores[::-1]) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
