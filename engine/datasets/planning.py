"""What preparing a dataset will take, and whether it is there already; starts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from competitions import registry
from competitions.model import Edition
from engine.layout import dataset_folder, is_prepared
from engine.workers.work import DEMO
from foundation.problems import DataProblem
from state import datasets
from state.database import Database
from state.datasets import Progress
from state.records import DatasetState, StepState

CHECK, DOWNLOAD, VERIFY, EXTRACT, PREPARE, CHECKSUM = STEPS = (
    "check access",
    "download",
    "verify",
    "extract",
    "prepare",
    "checksum",
)
_SKIPPED_WITH_RAW = (CHECK, DOWNLOAD, VERIFY, EXTRACT)
_SKIPPED_FOR_DEMO = (CHECK, VERIFY, EXTRACT)


@dataclass(frozen=True)
class Plan:
    """Where a dataset comes from: `demo`, a raw folder, or empty for what lies in the data directory."""

    competition_id: str
    edition: Edition
    source: str

    @property
    def skipped(self) -> tuple[str, ...]:
        """The steps that this source makes needless."""
        return _SKIPPED_FOR_DEMO if self.source == DEMO else _SKIPPED_WITH_RAW


def plan(
    competition_id: str, edition: Edition, data_dir: Path, *, raw_dir: str = "", demo: bool = False
) -> Plan:
    """Find out where a dataset's raw data are.

    Args:
        competition_id: which competition.
        edition: which edition to prepare.
        data_dir: where datasets lie.
        raw_dir: an extracted Kaggle folder, or a folder that holds one for each competition by its id.
        demo: make synthetic raw data.

    Raises:
        Problem: the competition is not known, or its raw data are nowhere.
    """
    competition = registry.get(competition_id)
    registry.load_task(competition)
    if demo:
        return Plan(competition.id, edition, DEMO)
    if raw_dir:
        folder = Path(raw_dir).expanduser().absolute()
        own = folder / competition.id
        if not folder.is_dir():
            raise DataProblem(f"raw folder {folder} was not found", "", "Give an extracted Kaggle folder.")
        return Plan(competition.id, edition, str(own if own.is_dir() else folder))
    there = dataset_folder(competition, data_dir, edition)
    if not there.raw.is_dir() and not there.zips():
        raise DataProblem(
            f"there are no raw data of {competition.id}",
            f"{there.root} holds neither raw/ nor a zip",
            f"Accept the rules at {competition.rules_url} and put {competition.id}.zip there, or give --raw.",
        )
    return Plan(competition.id, edition, "")


def is_ready(competition_id: str, edition: Edition, data_dir: Path) -> bool:
    """Whether a dataset is prepared on disk, by whomever."""
    competition = registry.get(competition_id)
    return is_prepared(competition, dataset_folder(competition, data_dir, edition))


def note_prepared(database: Database, competition_id: str, edition: Edition, *, now: float) -> None:
    """Take into the state that a dataset was found prepared on disk."""
    known = datasets.find(database, competition_id, edition)
    if known is None or known.state is not DatasetState.PREPARED:
        datasets.set_state(database, competition_id, edition, DatasetState.PREPARED, now=now)


def request(database: Database, wanted: Plan, *, now: float) -> None:
    """Put a dataset in the queue, unless it is there or being worked on already."""
    known = datasets.find(database, wanted.competition_id, wanted.edition)
    if known is not None and known.state in (DatasetState.WAITING, DatasetState.WORKING):
        return
    with database.transaction():
        datasets.request(
            database, wanted.competition_id, wanted.edition, steps=STEPS, source=wanted.source, now=now
        )
        for step in wanted.skipped:
            skipped = Progress(StepState.SKIPPED, note="the raw data are given")
            datasets.set_step(database, wanted.competition_id, wanted.edition, step, skipped, now=now)
