"""A pytest plug-in that prints the essence of a failure in under 40 lines and saves the rest to a file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator

import pytest

FOLDER = ".failures"  # below the root of the tests
_TRACEBACK_LINES = 8
_MOST_LINES = 27  # of under 40: the others are headings, the name of the file and what pytest says at the end
_CAPTURED_LINES = 3
_WIDEST = 300


def pytest_sessionstart(session: pytest.Session) -> None:
    """Remove the failures of an earlier run, unless a test of an outer run started this one."""
    if not hasattr(session.config, "workerinput") and "PYTEST_CURRENT_TEST" not in os.environ:
        shutil.rmtree(session.config.rootpath / FOLDER, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shorten the output of a failed test, and save all of it to a file that is named in the output."""
    report = yield
    if not report.failed or report.longrepr is None:
        return report
    whole = "\n".join([str(report.longrepr), *(f"--- {title}\n{text}" for title, text in report.sections)])
    file = _save(item, report.when, whole)
    report.sections = [(title, _cut(text, _CAPTURED_LINES)) for title, text in report.sections[:3]]
    captured = sum(1 + text.count("\n") + 1 for _, text in report.sections)
    report.longrepr = f"{_shortened(str(report.longrepr), _MOST_LINES - captured)}\n(all of it: {file})"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Do the same for a file that can't be imported."""
    report = yield
    if report.failed and report.longrepr is not None:
        file = _save(collector, "collect", str(report.longrepr))
        report.longrepr = f"{_shortened(str(report.longrepr), _MOST_LINES)}\n(all of it: {file})"
    return report


def _save(node: pytest.Item | pytest.Collector, when: str, text: str) -> str:
    """Write a file of the whole failure, and return its name below the root of the tests."""
    folder = node.config.rootpath / FOLDER
    folder.mkdir(exist_ok=True)
    name = re.sub(r"[^\w.-]+", "_", node.nodeid)[:150] + f".{when}.txt"
    (folder / name).write_text(text, encoding="utf-8", errors="replace")
    return f"{FOLDER}/{name}"


def _shortened(failure: str, limit: int) -> str:
    """Return the end of the traceback, and the beginning and the end of the message."""
    lines = failure.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("E ")), len(lines))
    traceback = _cut("\n".join(lines[:first]), _TRACEBACK_LINES)
    room = limit - traceback.count("\n") - 1
    message = [_narrowed(line) for line in lines[first:]]
    if len(message) > room:
        # A screen or the output of a program, whose end says the most.
        begin, end = room // 2, room - room // 2 - 1
        message = [*message[:begin], f"... {len(message) - begin - end} lines", *message[-end:]]
    return "\n".join([traceback, *message])


def _cut(text: str, limit: int) -> str:
    """Return the first and the last lines of a text."""
    lines = [_narrowed(line) for line in text.splitlines()]
    if len(lines) <= limit:
        return "\n".join(lines)
    return "\n".join([lines[0], f"... {len(lines) - limit} lines", *lines[len(lines) - limit + 1 :]])


def _narrowed(line: str) -> str:
    """Return a line without its middle if it is long, since it would fill a screen by itself."""
    if len(line) <= _WIDEST:
        return line
    half = _WIDEST // 2
    return f"{line[:half]} ... {len(line) - 2 * half} characters ... {line[-half:]}"
