"""Waits grow with each failure up to a limit, and a wrong clock makes nobody wait for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mlebench_console.foundation.backoff import Backoff, is_due, seconds_asked


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 2.0), (1, 2.0), (2, 6.0), (3, 18.0), (4, 20.0), (10_000, 20.0)]
)
def test_waits_grow_up_to_the_longest(failures: int, seconds: float) -> None:
    assert Backoff(first=2.0, most=20.0, factor=3.0).seconds(failures) == seconds


def test_what_is_asked_for_may_be_longer_and_waits_are_spread_upwards_only() -> None:
    spread = [Backoff(first=1.0, most=8.0, jitter=0.25).seconds(9, at_least=40.0) for _ in range(100)]
    assert len(set(spread)) > 1 and min(spread) >= 40.0 and max(spread) <= 50.0


@pytest.mark.parametrize(("failing_for", "seconds"), [(0.0, 2.0), (7.0, 7.0), (90.0, 20.0)])
def test_what_has_failed_for_some_time_waits_as_long_again(failing_for: float, seconds: float) -> None:
    assert Backoff(first=2.0, most=20.0).seconds_after(failing_for) == seconds


@pytest.mark.parametrize(
    ("retry_at", "due"), [(None, True), (90.0, True), (100.0, True), (100.5, False), (131.0, True)]
)
def test_a_time_beyond_the_longest_wait_is_of_a_wrong_clock(retry_at: float | None, due: bool) -> None:
    assert is_due(retry_at, 100.0, longest=30.0) is due


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("7", 7.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_a_retry_after_header_asks_for_seconds_or_names_a_date(
    header: str | None, seconds: float | None
) -> None:
    assert seconds_asked(header) == seconds


def test_a_date_that_is_to_come_is_waited_for() -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)
    assert seconds_asked(in_a_minute) == pytest.approx(60, abs=5)
