"""Whether Kaggle lets us have a competition's data, as far as its last answer tells; asks nobody."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from engine.datasets.sources import CHECK
from engine.kaggle.client import NotAvailable, RulesNotAccepted
from foundation.problems import Problem
from state.records import DatasetState, DatasetStep, StepState


class AccessState(StrEnum):
    """What Kaggle says: `rules` must be accepted by a person first, `gone` is no longer offered to anybody."""

    OPEN = "open"
    RULES = "rules"
    GONE = "gone"
    UNKNOWN = "unknown"


_REFUSALS: dict[str, tuple[AccessState, DatasetState]] = {
    RulesNotAccepted.__name__: (AccessState.RULES, DatasetState.REFUSED),
    NotAvailable.__name__: (AccessState.GONE, DatasetState.UNAVAILABLE),
}


def access_after(problem: Problem) -> AccessState:
    """What a problem of asking Kaggle tells of the access."""
    access, _state = _REFUSALS.get(type(problem).__name__, (AccessState.UNKNOWN, DatasetState.FAILED))
    return access


def state_after(kind: str) -> DatasetState:
    """What a dataset is after a problem of this class, named as it comes out of a worker."""
    _access, state = _REFUSALS.get(kind, (AccessState.UNKNOWN, DatasetState.FAILED))
    return state


def access_of(state: DatasetState, steps: Iterable[DatasetStep]) -> AccessState:
    """What is known of a dataset's access without asking again."""
    for access, refused in _REFUSALS.values():
        if state is refused:
            return access
    checked = any(step.name == CHECK and step.state is StepState.DONE for step in steps)
    return AccessState.OPEN if checked else AccessState.UNKNOWN
