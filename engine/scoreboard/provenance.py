"""What lies behind our own evidence: what attempts left and had, and which data nobody can have any more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from engine.scoreboard.disclosure import Disclosure, disclose
from engine.scoreboard.evidence import Evidence, Trial
from engine.scoreboard.model import Row
from state import datasets, runs, submissions
from state.database import Database
from state.dataset_records import DatasetState
from state.records import Attempt


@dataclass(frozen=True)
class Provenance:
    """What the latest attempts of an experiment's runs had.

    Attributes:
        images: digests of the agents' images, each once.
        machines: what they ran on, in words, each once.
        isolated: attempts that were kept from answers and network, and how many have told.
    """

    images: tuple[str, ...]
    machines: tuple[str, ...]
    isolated: tuple[int, int]


def provenance_of(database: Database, evidence: Evidence) -> Provenance:
    """Gather what the latest attempts of our own evidence had."""
    found = [_latest(database, trial) for trial in evidence.trials]
    attempts = [attempt for attempt in found if attempt is not None]
    told = [attempt.isolated for attempt in attempts if attempt.isolated is not None]
    images = {attempt.image for attempt in attempts} - {""}
    machines = {attempt.hardware.in_words() for attempt in attempts if attempt.hardware is not None} - {""}
    return Provenance(tuple(sorted(images)), tuple(sorted(machines)), (sum(told), len(told)))


def disclosed(database: Database, evidence: Evidence, row: Row) -> Disclosure:
    """Say what must be told with a row; of our own runs also what their attempts had."""
    if evidence.table != "own":
        return disclose(evidence, row)
    found = provenance_of(database, evidence)
    return disclose(
        evidence,
        row,
        images=found.images,
        machines=found.machines,
        isolated=found.isolated,
        unavailable=_unavailable(database),
    )


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


def _unavailable(database: Database) -> dict[str, str]:
    """The competitions that Kaggle does not offer any more, with when it said so the last time."""
    return {
        dataset.competition_id: "no longer offered by Kaggle, asked "
        + datetime.fromtimestamp(dataset.updated_at, UTC).date().isoformat()
        for dataset in datasets.in_state(database, DatasetState.UNAVAILABLE)
    }


def _latest(database: Database, trial: Trial) -> Attempt | None:
    return None if trial.run_id is None else runs.latest_attempt(database, trial.run_id)
