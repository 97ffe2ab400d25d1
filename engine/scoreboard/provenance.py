"""What the attempts behind our own evidence left: where it lies, which images they had, whether they were isolated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.runs import jsonlines, protocol
from engine.runs.reports import AgentStarted, from_line
from engine.scoreboard.evidence import Evidence, Trial
from foundation.problems import DataProblem
from state import runs, submissions
from state.database import Database
from state.records import Attempt


@dataclass(frozen=True)
class Provenance:
    """What the latest attempts of an experiment's runs had.

    Attributes:
        images: digests of the agents' images, each once.
        isolated: attempts that were kept from answers and network, and how many have told.
    """

    images: tuple[str, ...]
    isolated: tuple[int, int]


def provenance_of(database: Database, evidence: Evidence) -> Provenance:
    """Gather what the latest attempts of our own evidence had."""
    found = [_latest(database, trial) for trial in evidence.trials]
    attempts = [attempt for attempt in found if attempt is not None]
    told = [attempt.isolated for attempt in attempts if attempt.isolated is not None]
    images = {_image_of(database.path.parent / attempt.directory) for attempt in attempts} - {""}
    return Provenance(tuple(sorted(images)), (sum(told), len(told)))


def files_of(database: Database, trial: Trial) -> tuple[Path, Path | None] | None:
    """Where a trial's latest attempt lies, and the snapshot that was graded; None where there is none."""
    attempt = _latest(database, trial)
    if attempt is None:
        return None
    state_dir = database.path.parent
    folder = state_dir / attempt.directory
    graded = [taken for taken in submissions.of_attempt(database, attempt.id) if taken.standing is not None]
    snapshot = state_dir / graded[-1].path if graded else None
    return (
        (folder, snapshot if snapshot is not None and snapshot.is_file() else None)
        if folder.is_dir()
        else None
    )


def _latest(database: Database, trial: Trial) -> Attempt | None:
    return None if trial.run_id is None else runs.latest_attempt(database, trial.run_id)


def _image_of(folder: Path) -> str:
    try:
        lines = jsonlines.read(folder / protocol.EVENTS).values
    except DataProblem:
        return ""  # an attempt that never came so far as to report, or whose folder was removed since
    reports = (from_line(line) for line in lines)
    return next((report.image for report in reports if isinstance(report, AgentStarted)), "")
