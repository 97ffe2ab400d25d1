"""The steps of preparing a dataset, and how they report progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from mlebench_console.foundation.workers import ReportProgress

CHECK, DOWNLOAD, VERIFY, EXTRACT, PREPARE, CHECKSUM = STEPS = (
    "check access",
    "download",
    "verify",
    "extract",
    "prepare",
    "checksum",
)

ReportStep = Callable[[str, int, int], None]
"""Called within one step with the current item, how much is done, and the total (0: unknown)."""

_EVERY_SECONDS = 0.2


def no_report(step: str, what: str, done: int, total: int) -> None:
    """Ignore a report."""
    del step, what, done, total


def throttled(report: ReportProgress) -> ReportProgress:
    """Return a function that passes on new reports, at most every 0.2 seconds."""
    last: tuple[str, int] = ("", 0)
    last_at = 0.0

    def passed_on(step: str, what: str, done: int, total: int) -> None:
        nonlocal last, last_at
        now = time.monotonic()
        # A new total is always passed on, because the next report may come much later.
        if (step, total) != last or now - last_at >= _EVERY_SECONDS or (total and done >= total):
            last, last_at = (step, total), now
            report(step, what, done, total)

    return passed_on


def within(report: ReportProgress, step: str) -> ReportStep:
    """Return a function that reports the progress of one step."""
    return lambda what, done, total: report(step, what, done, total)


class ByteProgress:
    """Counts the bytes processed by several threads, and reports them."""

    def __init__(self, total: int, report: ReportStep | None) -> None:
        self.total = total
        self._report = report
        self._done = 0
        self._lock = threading.Lock()

    def add(self, what: str, count: int) -> None:
        """Add to the count; a negative number takes bytes back."""
        if self._report is not None:
            with self._lock:
                self._done += count
                self._report(what, self._done, self.total)


class DownloadProgress:
    """Reports the bytes of a download, and why it waits."""

    def __init__(self, report: ReportProgress, what: str) -> None:
        self._report = report
        self._what = what
        self.bytes(0, 0)

    def bytes(self, done: int, total: int) -> None:
        """Report the bytes received, and the total (0: unknown)."""
        self._done, self._total = done, total
        self._report(DOWNLOAD, self._what, done, total)

    def wait(self, seconds: float, why: str) -> None:
        """Wait, and report why."""
        self._report(DOWNLOAD, f"waiting {seconds:.0f} s: {why}", self._done, self._total)
        time.sleep(seconds)
