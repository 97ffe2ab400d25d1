"""What stands behind a row, wherever it came from: single runs and the conditions they had; it reads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from engine.scoreboard.model import Measure, Result, Table


@dataclass(frozen=True)
class Conditions:
    """What must be alike for runs to stand in one row; the names are those that a difference is told with.

    Attributes:
        hours: the time limit, as text.
        hardware: what a run was given: processors, memory, GPUs.
        data: `real` or `demo`.
    """

    edition: str
    agent: str = ""
    agent_version: str = ""
    hours: str = ""
    hardware: str = ""
    network: str = ""
    data: str = "real"


_ASPECTS = {
    "edition": "editions",
    "agent": "agents",
    "agent_version": "agent versions",
    "hours": "time limits",
    "hardware": "hardware",
    "network": "network policies",
    "data": "kinds of data",
}


def limit_text(hours: float) -> str:
    """A time limit as text, in minutes where it is below an hour."""
    return f"{hours:g} h" if hours >= 1 else f"{hours * 60:g} min"


def differences(conditions: Iterable[Conditions], *, apart_from: Sequence[str] = ()) -> tuple[str, ...]:
    """Say in what respects conditions differ, one sentence each; what is not known differs from nothing."""
    found = tuple(conditions)
    told = []
    for field in fields(Conditions):
        values = {str(getattr(one, field.name)) for one in found} - {""}
        if len(values) > 1 and field.name not in apart_from:
            told.append(f"mixed {_ASPECTS[field.name]}: {', '.join(sorted(values))}")
    return tuple(told)


@dataclass(frozen=True)
class Trial:
    """One seed of one competition.

    Attributes:
        seed: the number it was given; which seed it counts as is a matter of order.
        earned: every measure it counts for; None when it counts for nothing: not ended, stopped by an
            operator, or lost for reasons that are not the agent's.
        ended: whether nothing more happens to it.
        seconds: how long the agent worked.
        failure: the class of its failure, empty where it did not fail.
        text: why there is no score, empty where there is one.
        decided_at: when that was known, in seconds since the epoch.
        run_id: our own run; None for what was imported.
    """

    competition_id: str
    seed: int
    earned: frozenset[Measure] | None
    ended: bool = True
    score: float | None = None
    seconds: float | None = None
    failure: str = ""
    text: str = ""
    rerolls: int = 0
    decided_at: float | None = None
    run_id: int | None = None

    def has(self, measure: Measure) -> bool:
        """Whether it counts for a measure."""
        return self.earned is not None and measure in self.earned


@dataclass(frozen=True)
class Evidence:
    """Everything behind one row.

    Attributes:
        trials: in the order in which they count as seeds.
        conditions: of the newest part, as the row shows them.
        conflict: in what respect its parts differ though they must not; then there are no numbers.
        planned_seeds: how many were asked for; None: not told.
        created_at: of the newest part, in seconds since the epoch.
        sweep_ids: the sweeps it is made of; empty for what was imported.
        gpus: how many GPUs one run had to itself, a part of one where runs share; None: not known.
    """

    table: Table
    name: str
    conditions: Conditions
    trials: tuple[Trial, ...]
    created_at: float
    limit_hours: float | None = None
    planned_seeds: int | None = None
    conflict: str = ""
    note: str = ""
    llms: str = ""
    sweep_ids: tuple[str, ...] = ()
    gpus: float | None = None

    @property
    def competitions(self) -> tuple[str, ...]:
        """The competitions that it has runs of."""
        return tuple(sorted({trial.competition_id for trial in self.trials}, key=str.lower))

    @property
    def running(self) -> bool:
        """Whether some of its runs have not ended."""
        return any(not trial.ended for trial in self.trials)

    @property
    def is_demo(self) -> bool:
        """Whether its data are made up."""
        return self.conditions.data == "demo"

    def results(self, *, pad_missing: bool) -> tuple[Result, ...]:
        """What its trials count for; with padding, an ended one that counts for nothing is no medal."""
        found = (result_of(trial, pad_missing=pad_missing) for trial in self.trials)
        return tuple(result for result in found if result is not None)


def result_of(trial: Trial, *, pad_missing: bool) -> Result | None:
    """What a trial counts for; None where it counts for nothing."""
    if trial.earned is not None:
        return Result(trial.competition_id, trial.earned)
    return Result(trial.competition_id) if pad_missing and trial.ended else None
