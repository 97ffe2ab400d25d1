"""The datasets as their screen shows them: every competition, prepared or not, with what is being done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from competitions import registry
from console.views.splits import ORDER, competition, split_of
from engine.datasets.access import AccessState, access_of
from engine.datasets.estimates import Throughput, measured
from engine.datasets.steps import CHECKSUM, DOWNLOAD
from engine.space import free_bytes
from state import datasets
from state.database import Database
from state.records import Dataset, DatasetState, DatasetStep, StepState

_BUSY = (DatasetState.WAITING, DatasetState.WORKING)


@dataclass(frozen=True)
class DatasetRow:
    """One competition's data in one edition."""

    competition_id: str
    edition: str
    split: str
    dataset: Dataset | None
    steps: tuple[DatasetStep, ...]

    @property
    def key(self) -> tuple[str, str]:
        """What the row is about."""
        return self.competition_id, self.edition

    @property
    def state(self) -> DatasetState:
        """How far it is."""
        return self.dataset.state if self.dataset is not None else DatasetState.ABSENT

    @property
    def is_busy(self) -> bool:
        """Whether it is in the engine's hands."""
        return self.state in _BUSY

    @property
    def is_verifying(self) -> bool:
        """Whether it is prepared and being verified, or waits for that."""
        open_ = (StepState.WAITING, StepState.WORKING)
        return self.state is DatasetState.PREPARED and any(
            step.name == CHECKSUM and step.state in open_ for step in self.steps
        )

    @property
    def access(self) -> AccessState:
        """What Kaggle said the last time it was asked."""
        return access_of(self.state, self.steps)

    @property
    def problem(self) -> str:
        """What is wrong with it, or what it waits for."""
        return self.dataset.problem if self.dataset is not None else ""

    @property
    def step(self) -> DatasetStep | None:
        """What is being done, or what failed."""
        return next(
            (step for step in self.steps if step.state in (StepState.WORKING, StepState.FAILED)), None
        )

    @property
    def steps_done(self) -> int:
        """How many steps need nothing more."""
        return sum(step.state in (StepState.DONE, StepState.SKIPPED) for step in self.steps)

    @property
    def bytes_on_disk(self) -> int | None:
        """What the prepared data take, where that is known."""
        return self.dataset.bytes_on_disk if self.dataset and self.state is DatasetState.PREPARED else None

    @property
    def told_bytes(self) -> int | None:
        """The size of Kaggle's zip as Kaggle told it."""
        return next(
            (step.total for step in self.steps if step.name == DOWNLOAD and step.unit == "bytes"), None
        )

    @cached_property
    def zip_bytes(self) -> int | None:
        """The size of Kaggle's zip: as Kaggle told, or else as the benchmark's facts say."""
        found = competition(self.competition_id)
        return self.told_bytes or (int(found.size_gb * 1e9) if found and found.size_gb else None)

    @property
    def bytes_to_download(self) -> int:
        """What is still to come over the network of what was asked for, as far as it is known."""
        step = next((step for step in self.steps if step.name == DOWNLOAD), None)
        if not self.is_busy or step is None or step.state not in (StepState.WAITING, StepState.WORKING):
            return 0
        return max(0, (self.zip_bytes or 0) - step.done)


@dataclass(frozen=True)
class DatasetBoard:
    """All datasets, how fast they went so far, and the room for more."""

    rows: tuple[DatasetRow, ...] = ()
    throughput: Throughput = field(default_factory=Throughput)
    free: int | None = None


def dataset_board(data_dir: Path) -> Callable[[Database], DatasetBoard]:
    """Make the question: first what is known to the state, then the rest, by split."""

    def look(database: Database) -> DatasetBoard:
        steps: defaultdict[tuple[str, str], list[DatasetStep]] = defaultdict(list)
        for step in datasets.all_steps(database):
            steps[step.competition_id, step.edition].append(step)
        known = {(found.competition_id, found.edition): found for found in datasets.all_datasets(database)}
        wanted = [*known, *((name, "v1") for name in registry.all_ids() if (name, "v1") not in known)]
        rows = [
            DatasetRow(name, edition, split_of(name), known.get((name, edition)), tuple(steps[name, edition]))
            for name, edition in wanted
        ]
        return DatasetBoard(tuple(sorted(rows, key=_place)), measured(steps.values()), free_bytes(data_dir))

    return look


def _place(row: DatasetRow) -> tuple[int, str, bool]:
    return ORDER.index(row.split), row.competition_id.lower(), row.edition != "v1"
