"""The life of a run, as pure data: its states, how it can end, and which steps are allowed."""

from __future__ import annotations

from enum import StrEnum

from foundation.problems import StateProblem

# Who classifies failures unless somebody does it by hand.
ENGINE = "engine"


class RunState(StrEnum):
    """Where a run is in its life."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    COLLECTING = "collecting"
    GRADING = "grading"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class Outcome(StrEnum):
    """What a submission is worth, best first; of a live run: what it would get if it ended now."""

    GOLD = "gold"
    SILVER = "silver"
    BRONZE = "bronze"
    ABOVE_MEDIAN = "above_median"
    BELOW_MEDIAN = "below_median"
    INVALID = "invalid"
    NO_SUBMISSION = "no_submission"


MEDALS = frozenset({Outcome.GOLD, Outcome.SILVER, Outcome.BRONZE})


class FailureClass(StrEnum):
    """Why a run failed. Only infrastructure failures may be relaunched without touching the statistics."""

    INFRASTRUCTURE = "infrastructure"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"
    BUDGET = "budget"
    CRASH = "crash"
    UNKNOWN = "unknown"


class SweepState(StrEnum):
    """Whether the scheduler may start a sweep's runs."""

    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"


LIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.COLLECTING, RunState.GRADING})


# While its agent may be there a run holds slots, memory and GPUs; one that is only graded holds none.
OCCUPYING = LIVE - {RunState.GRADING}


ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.STOPPED})


ALLOWED_AFTER: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.STARTING, RunState.STOPPED}),
    RunState.STARTING: frozenset({RunState.RUNNING, RunState.COLLECTING, RunState.FAILED, RunState.STOPPED}),
    RunState.RUNNING: frozenset({RunState.COLLECTING, RunState.FAILED, RunState.STOPPED}),
    RunState.COLLECTING: frozenset({RunState.GRADING, RunState.FAILED, RunState.STOPPED}),
    RunState.GRADING: frozenset({RunState.FINISHED, RunState.FAILED}),
    RunState.FINISHED: frozenset({RunState.QUEUED}),
    RunState.FAILED: frozenset({RunState.QUEUED}),
    RunState.STOPPED: frozenset({RunState.QUEUED}),
}


class ForbiddenTransition(StateProblem):
    """A run was to be put into a state that can't follow its own."""


def require_allowed(run: str, current: RunState, wanted: RunState) -> None:
    """Raise ForbiddenTransition unless `wanted` may follow `current`."""
    if wanted not in ALLOWED_AFTER[current]:
        possible = ", ".join(sorted(ALLOWED_AFTER[current]))
        raise ForbiddenTransition(
            f"run {run} can't become {wanted}", f"it is {current}, which can only become {possible}"
        )
