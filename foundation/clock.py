"""Clocks: code that needs the time takes a `Clock`, which tests replace."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for people and records, monotonic time for durations."""

    def now(self) -> float:
        """Return the seconds since the epoch (UTC)."""

    def monotonic(self) -> float:
        """Return the seconds of a clock that never jumps."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Return the seconds since the epoch (UTC)."""
        return time.time()

    def monotonic(self) -> float:
        """Return the seconds of a clock that never jumps."""
        return time.monotonic()


def run_group_stamp(moment: float) -> str:
    """Format a time as MLE-bench does in folder and report names: `2026-01-31T23-59-59-GMT` on Linux."""
    return time.strftime("%Y-%m-%dT%H-%M-%S-%Z", time.gmtime(moment))


def iso(moment: float) -> str:
    """Format a time as ISO 8601 in UTC with seconds."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds")
