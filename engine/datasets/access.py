"""Whether Kaggle lets us have a competition's data: by its last answer, or by asking it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from competitions.model import Competition
from engine.datasets.steps import CHECK, no_report, reporting_wait
from engine.kaggle import NotAvailable, RulesNotAccepted
from foundation.problems import Problem
from foundation.workers import ReportProgress
from state.records import DatasetState, DatasetStep, StepState

_ASK_AT_ONCE = 4


class AccessState(StrEnum):
    """What Kaggle says: `rules` must be accepted by a person first, `gone` is no longer offered to anybody."""

    OPEN = "open"
    RULES = "rules"
    GONE = "gone"
    UNKNOWN = "unknown"


# By the names of errors, which is what a worker tells of them.
_STATES = {
    RulesNotAccepted.__name__: DatasetState.REFUSED,
    NotAvailable.__name__: DatasetState.UNAVAILABLE,
}
_REFUSALS = {DatasetState.REFUSED: AccessState.RULES, DatasetState.UNAVAILABLE: AccessState.GONE}


def state_after(kind: str) -> DatasetState:
    """Return the state of a dataset after an error of this class, given by its name."""
    return _STATES.get(kind, DatasetState.FAILED)


def access_of(state: DatasetState, steps: Iterable[DatasetStep] = ()) -> AccessState:
    """Return what is known of a dataset's access without asking again."""
    checked = any(step.name == CHECK and step.state is StepState.DONE for step in steps)
    return _REFUSALS.get(state, AccessState.OPEN if checked else AccessState.UNKNOWN)


@dataclass(frozen=True)
class Access:
    """What Kaggle answered when it was asked for a competition's data."""

    competition_id: str
    state: AccessState
    bytes: int | None
    url: str
    problem: str = ""


def check(competition: Competition, report: ReportProgress = no_report) -> int | None:
    """Ask Kaggle whether a competition's data may be downloaded; returns their size where it says so.

    Raises:
        Problem: it does not, or it can't be reached.
    """
    from engine.kaggle.client import Kaggle

    report(CHECK, "", 0, 0)
    with Kaggle(wait=reporting_wait(report, lambda: (CHECK, 0, 0))) as kaggle:
        return kaggle.data_size(competition.id)


def ask_access(chosen: Sequence[Competition]) -> list[Access]:
    """Ask Kaggle about several competitions at once."""
    with ThreadPoolExecutor(_ASK_AT_ONCE) as pool:
        return list(pool.map(_ask_one, chosen))


def _ask_one(competition: Competition) -> Access:
    try:
        return Access(competition.id, AccessState.OPEN, check(competition), competition.rules_url)
    except Problem as problem:
        return Access(
            competition.id,
            access_of(state_after(type(problem).__name__)),
            None,
            competition.rules_url,
            problem.cause,
        )
