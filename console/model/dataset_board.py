"""The datasets as their screen shows them: every competition, prepared or not, with what is being done."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from competitions import registry
from console.model.splits import ORDER, split_of
from engine.datasets.sources import CHECK, DOWNLOAD
from state import datasets
from state.database import Database
from state.records import Dataset, DatasetState, DatasetStep, StepState


@dataclass(frozen=True)
class DatasetRow:
    """One competition's data in one edition."""

    competition_id: str
    edition: str
    split: str
    dataset: Dataset | None
    steps: tuple[DatasetStep, ...]

    @property
    def state(self) -> DatasetState:
        """How far it is."""
        return self.dataset.state if self.dataset is not None else DatasetState.ABSENT

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
    def needs_rules(self) -> bool:
        """Whether Kaggle refuses it, which a person can mostly mend by accepting the rules."""
        step = self.step
        return (
            self.state is DatasetState.FAILED
            and step is not None
            and step.state is StepState.FAILED
            and step.name == CHECK
        )

    @property
    def bytes_to_download(self) -> int:
        """What is still to come over the network, as far as it is known."""
        if self.state not in (DatasetState.WAITING, DatasetState.WORKING):
            return 0
        wanted = (step for step in self.steps if step.name == DOWNLOAD and step.unit == "bytes")
        open_ = (StepState.WAITING, StepState.WORKING)
        return sum((step.total or 0) - step.done for step in wanted if step.state in open_)


def dataset_board(database: Database) -> tuple[DatasetRow, ...]:
    """Read every competition's data: first what is known to the state, then the rest, by split."""
    steps: defaultdict[tuple[str, str], list[DatasetStep]] = defaultdict(list)
    for step in datasets.all_steps(database):
        steps[step.competition_id, step.edition].append(step)
    known = {(found.competition_id, found.edition): found for found in datasets.all_datasets(database)}
    wanted = [*known, *((name, "v1") for name in registry.all_ids() if (name, "v1") not in known)]
    rows = [
        DatasetRow(name, edition, split_of(name), known.get((name, edition)), tuple(steps[name, edition]))
        for name, edition in wanted
    ]
    return tuple(sorted(rows, key=_place))


def _place(row: DatasetRow) -> tuple[int, str, str]:
    return ORDER.index(row.split), row.competition_id.lower(), row.edition
