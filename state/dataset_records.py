"""What is known about datasets, as it travels between the parts; runs and sweeps are in `records`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DatasetState(StrEnum):
    """How far a competition's data are.

    `refused` waits for somebody to accept the rules on Kaggle, `unavailable` is no longer offered there.
    """

    ABSENT = "absent"
    WAITING = "waiting"
    WORKING = "working"
    PREPARED = "prepared"
    FAILED = "failed"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


class StepState(StrEnum):
    """How far one step of preparing a dataset is."""

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Dataset:
    """One competition's data in one edition."""

    competition_id: str
    edition: str
    state: DatasetState
    problem: str
    source: str
    bytes_on_disk: int | None
    requested_at: float | None
    prepared_at: float | None
    updated_at: float


@dataclass(frozen=True)
class DatasetStep:
    """One step of preparing a dataset, with what is done of how much."""

    competition_id: str
    edition: str
    position: int
    name: str
    state: StepState
    done: int
    total: int | None
    unit: str
    note: str
    started_at: float | None
    ended_at: float | None
