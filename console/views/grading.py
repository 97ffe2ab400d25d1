"""Grading of a file chosen by the operator, the rows that a refusal names, and the history of gradings."""

from __future__ import annotations

import csv
import itertools
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from mlebench_console import grade_submission
from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.competitions.registry import all_ids, get
from mlebench_console.console.nouns.grading import PastGrading
from mlebench_console.engine.datasets.plans import is_ready
from mlebench_console.engine.grading.report import Report
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem, UsageProblem

HISTORY_NAME = "graded.json"
_MOST_KEPT = 200
_MOST_BYTES = 1 << 20
_NAMED_ROW = re.compile(r"(?:^|\. )Row (\d{1,9})\b")
_BESIDE = 1
# Rows further down are not looked up: reading them would take longer than the grading.
_MOST_ROWS = 5_000_000
_LONGEST = 4_000


@dataclass(frozen=True)
class FileRow:
    """One row of a graded file; number 0 is the header."""

    number: int
    text: str
    is_wrong: bool


@dataclass(frozen=True)
class GradedFile:
    """The report on a file, with its competition and the duration of grading.

    Attributes:
        rows: the row that a refusal names, with its neighbours.
    """

    competition: Competition
    report: Report
    bytes: int | None
    seconds: float
    rows: tuple[FileRow, ...] = ()


def prepared_competitions(data_dir: Path) -> tuple[str, ...]:
    """Return the competitions whose data are prepared, which files can be graded for; damaged ones are left out."""

    def is_prepared(competition_id: str) -> bool:
        try:
            return is_ready(competition_id, "v1", data_dir)
        except DataProblem:
            return False

    return tuple(filter(is_prepared, all_ids()))


def grade_file(competition_id: str, path: Path, data_dir: Path, edition: Edition = "v1") -> GradedFile:
    """Grade a file; slow, so call it in a thread.

    Raises:
        Problem: unknown competition, unprepared dataset, or no such file.
    """
    found = get(competition_id)
    if not path.is_file():
        raise _no_file(path)
    began = time.monotonic()
    report = grade_submission(path, competition_id, data_dir=data_dir, edition=edition)
    rows = rows_behind(path, report.message) if report.score is None else ()
    return GradedFile(found, report, path.stat().st_size, time.monotonic() - began, rows)


def _no_file(path: Path) -> UsageProblem:
    """Return what is wrong with a path that is not that of a file."""
    if path.is_dir():
        return UsageProblem(f"{path} is a folder", "", "Name the CSV file in it.")
    missing = [folder for folder in path.parents if not folder.exists()]
    why = f"its folder {missing[-1]} does not exist" if missing else "its folder has no file of that name"
    return UsageProblem(f"there is no file {path}", why, "Correct the path.")


def file_signature(path: Path) -> tuple[int, ...] | None:
    """Return values that change when a file changes; None if it does not exist. Waits for the disk."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def past_grading(report: Report, path: Path, at: float) -> PastGrading:
    """Return a report's entry for the history."""
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
    """Read the history, newest first; empty if it is damaged."""
    try:
        with files.reading_untrusted(state_dir / HISTORY_NAME, max_bytes=_MOST_BYTES) as stream:
            return msgspec.json.decode(stream.read(), type=tuple[PastGrading, ...])
    except (OSError, msgspec.DecodeError, DataProblem):
        return ()


def write_past(state_dir: Path, past: tuple[PastGrading, ...]) -> None:
    """Write the history, if the state directory exists."""
    if state_dir.is_dir():
        kept = [asdict(each) for each in past[:_MOST_KEPT]]
        files.write_json(state_dir / HISTORY_NAME, kept, durable=False)


def rows_behind(path: Path, message: str) -> tuple[FileRow, ...]:
    """Read the header, the row that a message names and its neighbours; empty if it names none.

    Rows are counted as graders do, as records of the table: a cell may contain line ends.
    """
    named = _NAMED_ROW.search(message)
    wanted = int(named[1]) if named else 0
    if not 0 < wanted <= _MOST_ROWS:
        return ()
    found: list[FileRow] = []
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            for number, cells in enumerate(itertools.islice(csv.reader(stream), wanted + _BESIDE + 1)):
                if number == 0 or abs(number - wanted) <= _BESIDE:
                    text = ",".join(cells)[:_LONGEST]
                    found.append(FileRow(number, text, number == wanted))
    except (OSError, csv.Error):
        pass  # the report is sufficient without them
    return tuple(found)
