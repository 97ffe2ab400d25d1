"""Grading a file that an operator names, the rows that a refusal is about, and the history of gradings."""

from __future__ import annotations

import csv
import itertools
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from competitions.model import Competition, Edition
from competitions.registry import get
from engine import grade_submission
from engine.grading.report import Report
from foundation import files
from foundation.problems import DataProblem, UsageProblem

HISTORY_NAME = "graded.json"
_MOST_KEPT = 200
_MOST_BYTES = 1 << 20
_NAMED_ROW = re.compile(r"(?:^|\. )Row (\d{1,9})\b")
_BESIDE = 1
# What is further down is not looked for: reading on would take longer than grading did.
_MOST_ROWS = 5_000_000
_LONGEST = 4_000


@dataclass(frozen=True)
class SubmissionRow:
    """One row of a graded file; number 0 is its heading."""

    number: int
    text: str
    is_wrong: bool


@dataclass(frozen=True)
class GradedFile:
    """The report on a file, with its competition and how long grading took.

    Attributes:
        rows: those that a refusal is about, with their neighbours.
    """

    competition: Competition
    report: Report
    bytes: int | None
    seconds: float
    rows: tuple[SubmissionRow, ...] = ()


@dataclass(frozen=True)
class PastGrading:
    """One file that was graded here."""

    competition_id: str
    path: str
    at: float
    edition: str
    outcome: str
    score: float | None
    medal: str
    message: str


def grade_file(competition_id: str, path: Path, data_dir: Path, edition: Edition = "v1") -> GradedFile:
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
    return GradedFile(found, report, path.stat().st_size, time.monotonic() - began, rows)


def file_signature(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file changes, None while there is no file; waits for the disk."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def past_grading(report: Report, path: Path, at: float) -> PastGrading:
    """Make the entry of the history for a report."""
    earned = report.medal or ("above median" if report.above_median else "below median")
    return PastGrading(
        report.competition_id,
        str(path),
        at,
        report.edition,
        report.outcome,
        report.score,
        earned if report.score is not None else "",
        report.message,
    )


def read_past(state_dir: Path) -> tuple[PastGrading, ...]:
    """Read the history, newest first; a damaged one is begun anew."""
    try:
        with files.reading_untrusted(state_dir / HISTORY_NAME, max_bytes=_MOST_BYTES) as stream:
            return msgspec.json.decode(stream.read(), type=tuple[PastGrading, ...])
    except (OSError, msgspec.DecodeError, DataProblem):
        return ()


def write_past(state_dir: Path, past: tuple[PastGrading, ...]) -> None:
    """Write the history, where there is a state to keep it beside."""
    if state_dir.is_dir():
        kept = [asdict(each) for each in past[:_MOST_KEPT]]
        files.write_json(state_dir / HISTORY_NAME, kept, durable=False)


def rows_behind(path: Path, message: str) -> tuple[SubmissionRow, ...]:
    """Read the heading, the row that a message names and those beside it; nothing where it names none.

    Rows are counted as graders count them: records of the table, so a cell may hold line ends.
    """
    named = _NAMED_ROW.search(message)
    wanted = int(named[1]) if named else 0
    if not 0 < wanted <= _MOST_ROWS:
        return ()
    found: list[SubmissionRow] = []
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            for number, cells in enumerate(itertools.islice(csv.reader(stream), wanted + _BESIDE + 1)):
                if number == 0 or abs(number - wanted) <= _BESIDE:
                    text = ",".join(cells)[:_LONGEST]
                    found.append(SubmissionRow(number, text, number == wanted))
    except (OSError, csv.Error):
        pass  # the report says enough without them
    return tuple(found)
