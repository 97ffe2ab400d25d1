"""Which files were graded here, newest first, kept beside the state; a damaged note of it is begun anew."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from engine.grading.report import Report
from foundation import files
from foundation.problems import DataProblem

NOTE_NAME = "graded.json"
_MOST = 200
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Past:
    """One file that was graded."""

    competition_id: str
    path: str
    at: float
    edition: str
    outcome: str
    score: float | None
    medal: str
    message: str


def past_of(report: Report, path: Path, at: float) -> Past:
    """What is kept of a verdict."""
    earned = report.medal or ("above median" if report.above_median else "below median")
    return Past(
        report.competition_id,
        str(path),
        at,
        report.edition,
        report.outcome,
        report.score,
        earned if report.score is not None else "",
        report.message,
    )


def read_past(state_dir: Path) -> tuple[Past, ...]:
    """What was graded before."""
    try:
        with files.reading_untrusted(state_dir / NOTE_NAME, max_bytes=_MOST_BYTES) as stream:
            values = json.loads(stream.read())
        return tuple(Past(**{field.name: each[field.name] for field in fields(Past)}) for each in values)
    except (OSError, ValueError, TypeError, KeyError, DataProblem):
        return ()


def keep_past(state_dir: Path, found: tuple[Past, ...]) -> None:
    """Keep what was graded, where there is a state to keep it beside."""
    if state_dir.is_dir():
        kept = [asdict(each) for each in found[:_MOST]]
        files.write_json(state_dir / NOTE_NAME, kept, durable=False)
