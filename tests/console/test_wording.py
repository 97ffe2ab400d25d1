"""Sizes, times, durations and scores read the same on every screen and from every command."""

from __future__ import annotations

import pytest

from console import wording


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (84_000, "84 kB"),
        (1_900_000_000, "1.9 GB"),
        (82_600_000_000, "82.6 GB"),
        (3.3e12, "3.3 TB"),
    ],
)
def test_sizes(count: int | None, text: str) -> None:
    assert wording.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (-1, "0s"),
        (0, "0s"),
        (0.42, "0.4s"),
        (59.4, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (90_000, "1d01h"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert wording.duration(seconds) == text


def test_moments_are_local_and_to_the_minute() -> None:
    assert wording.date_and_time(None) == "-"
    assert len(wording.date_and_time(0.0)) == len("1970-01-01 00:00")
