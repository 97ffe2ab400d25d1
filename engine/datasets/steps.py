"""The steps of preparing a dataset, and how they report progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from foundation.workers import ReportProgress

CHECK, DOWNLOAD, VERIFY, EXTRACT, PREPARE, CHECKSUM = STEPS = (
    "check access",
    "download",
    "verify",
    "extract",
    "prepare",
    "checksum",
)

ReportStep = Callable[[str, int, int], None]
"""Called within one step, with what is being done, how much is done, and how much there is (0: unknown)."""

_EVERY_SECONDS = 0.2


def no_report(step: str, what: str, done: int, total: int) -> None:
    """Report to nobody."""
    del step, what, done, total


def throttled(report: ReportProgress) -> ReportProgress:
    """Pass on what is new, but no more often than anybody looks."""
    last: tuple[str, int] = ("", 0)
    last_at = 0.0

    def passed_on(step: str, what: str, done: int, total: int) -> None:
        nonlocal last, last_at
        now = time.monotonic()
        # A total that has become known is always passed on: after it nothing may come for long.
        if (step, total) != last or now - last_at >= _EVERY_SECONDS or (total and done >= total):
            last, last_at = (step, total), now
            report(step, what, done, total)

    return passed_on


def within(report: ReportProgress, step: str) -> ReportStep:
    """Report the progress of one step."""
    return lambda what, done, total: report(step, what, done, total)


class ByteProgress:
    """Counts bytes that several threads are done with, and reports them."""

    def __init__(self, total: int, report: ReportStep | None) -> None:
        self.total = total
        self._report = report
        self._done = 0
        self._lock = threading.Lock()

    def add(self, what: str, count: int) -> None:
        """Count more, or fewer again."""
        if self._report is not None:
            with self._lock:
                self._done += count
                self._report(what, self._done, self.total)


def reporting_wait(
    report: ReportProgress, place: Callable[[], tuple[str, int, int]]
) -> Callable[[float, str], None]:
    """Wait for Kaggle and report why; `place` returns the step and how far it is."""

    def wait(seconds: float, why: str) -> None:
        step, done, total = place()
        report(step, f"waiting {seconds:.0f} s: {why}", done, total)
        time.sleep(seconds)

    return wait
