"""Grading one file that the operator names: with the rows that a refusal is about."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from competitions.model import Competition, Edition
from competitions.registry import get
from console.views.offending import Row, rows_behind
from engine import grade_submission
from engine.grading.report import Report
from foundation.problems import UsageProblem


@dataclass(frozen=True)
class Graded:
    """A report with the facts of its competition and what it took.

    Attributes:
        rows: those that a refusal is about.
    """

    competition: Competition
    report: Report
    bytes: int | None
    seconds: float
    rows: tuple[Row, ...] = ()


def grade_file(competition_id: str, path: Path, data_dir: Path, edition: Edition = "v1") -> Graded:
    """Grade a file; waits for it, so call it from a thread.

    Raises:
        Problem: unknown competition, unprepared dataset, or no such file.
    """
    found = get(competition_id)
    if not path.is_file():
        raise UsageProblem(f"there is no file {path}")
    began = time.monotonic()
    report = grade_submission(path, competition_id, data_dir=data_dir, edition=edition)
    rows = rows_behind(path, report.message) if report.score is None else ()
    return Graded(found, report, path.stat().st_size, time.monotonic() - began, rows)


def signature(path: Path) -> tuple[int, ...] | None:
    """What changes when a file changes; None while it is not there. Waits for the disk."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
