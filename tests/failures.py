"""A pytest plug-in that prints the essence of a failure in under 40 lines and saves the rest to a file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator

import pytest

FOLDER = ".failures"  # below the root of the tests
_TRACEBACK_LINES = 8
_MESSAGE_LINES = 12
_CAPTURED_LINES = 3


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
    folder = item.config.rootpath / FOLDER
    folder.mkdir(exist_ok=True)
    file = folder / (re.sub(r"[^\w.-]+", "_", item.nodeid)[:150] + f".{report.when}.txt")
    file.write_text(whole, encoding="utf-8", errors="replace")
    report.longrepr = f"{_shortened(str(report.longrepr))}\n(all of it: {FOLDER}/{file.name})"
    report.sections = [(title, _cut(text, _CAPTURED_LINES)) for title, text in report.sections[:3]]
    return report


def _shortened(traceback: str) -> str:
    """Return the end of the traceback and the beginning of the message."""
    lines = traceback.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("E ")), len(lines))
    message = lines[first:]
    if len(message) > _MESSAGE_LINES:
        message = [
            *message[: _MESSAGE_LINES - 2],
            f"... {len(message) - _MESSAGE_LINES + 1} lines",
            message[-1],
        ]
    return "\n".join([_cut("\n".join(lines[:first]), _TRACEBACK_LINES), *message])


def _cut(text: str, limit: int) -> str:
    """Return the first and the last lines of a text."""
    lines = text.splitlines()
    if len(lines) <= limit:
        return text
    return "\n".join([lines[0], f"... {len(lines) - limit} lines", *lines[len(lines) - limit + 1 :]])
