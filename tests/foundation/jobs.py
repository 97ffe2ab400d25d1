"""Functions that worker processes are asked to run in tests."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mlebench_console.foundation.problems import StateProblem
from mlebench_console.foundation.workers import ReportProgress


def add(a: int, b: int, *, report_progress: ReportProgress) -> int:
    report_progress("add", "both", 1, 2)
    report_progress("add", "both", 2, 2)
    return a + b


def wait(seconds: float, *, report_progress: ReportProgress) -> None:
    report_progress("wait", "", 0, 0)
    time.sleep(seconds)


def burn(*, report_progress: ReportProgress) -> None:
    while True:
        pass


def allocate(count: int, *, report_progress: ReportProgress) -> int:
    return len(bytearray(count))


def write(path: str, *, report_progress: ReportProgress) -> None:
    Path(path).write_text("x" * 10_000)


def open_many(*, report_progress: ReportProgress) -> None:
    for _ in range(1000):
        os.open("/dev/null", os.O_RDONLY)


def refuse(*, report_progress: ReportProgress) -> None:
    raise StateProblem("it can't be done", "because", "Do this.")


def misread(*, report_progress: ReportProgress) -> None:
    try:
        raise ValueError("not a number")
    except ValueError as error:
        raise StateProblem("no table", "ValueError") from error


def fail(*, report_progress: ReportProgress) -> None:
    sys.stdout.write("some words before\n")
    raise ValueError("no such thing")


def leave_a_child(*, report_progress: ReportProgress) -> int:
    child = os.fork()
    if child == 0:
        time.sleep(600)
    return child


def environment(*, report_progress: ReportProgress) -> dict[str, str]:
    return dict(os.environ)


def process_after(cpu_seconds: float, *, report_progress: ReportProgress) -> int:
    """The process that this ran in, after some work in it."""
    end = time.process_time() + cpu_seconds
    while time.process_time() < end:
        pass
    return os.getpid()


def limits(*, report_progress: ReportProgress) -> str:
    return Path("/proc/self/limits").read_text()
