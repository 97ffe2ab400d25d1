"""A medal is earned by a score as good as its cut-off; above the median needs a better one."""

from __future__ import annotations

import math

import pytest

from mlebench_console.competitions.medals import Thresholds

HIGHER = Thresholds(0.9, 0.8, 0.7, 0.5, False, "high", 100)
LOWER = Thresholds(0.1, 0.2, 0.3, 0.5, True, "high", 100)


@pytest.mark.parametrize(
    ("cut", "score", "medal", "above"),
    [
        (HIGHER, 0.9, "gold", True),
        (HIGHER, 0.89999, "silver", True),
        (HIGHER, 0.8, "silver", True),
        (HIGHER, 0.7, "bronze", True),
        (HIGHER, 0.69, None, True),
        (HIGHER, 0.5, None, False),
        (HIGHER, math.inf, "gold", True),
        (HIGHER, math.nan, None, False),
        (HIGHER, None, None, False),
        (LOWER, 0.1, "gold", True),
        (LOWER, 0.11, "silver", True),
        (LOWER, 0.3, "bronze", True),
        (LOWER, 0.31, None, True),
        (LOWER, 0.5, None, False),
        (LOWER, math.nan, None, False),
        (LOWER, None, None, False),
    ],
)
def test_medals(cut: Thresholds, score: float | None, medal: str | None, above: bool) -> None:
    assert cut.medal(score) == medal
    assert cut.above_median(score) is above
