"""The lifecycle of a run, as pure data: its states, its outcomes, and the allowed transitions."""

from __future__ import annotations

from enum import StrEnum

from mlebench_console.foundation.problems import StateProblem

# The author of failure classes that were not set by hand.
ENGINE = "engine"


class RunState(StrEnum):
    """The state of a run."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    COLLECTING = "collecting"
    GRADING = "grading"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class Outcome(StrEnum):
    """The result of a submission, best first; of a live run, what it would get if it ended now."""

    GOLD = "gold"
    SILVER = "silver"
    BRONZE = "bronze"
    ABOVE_MEDIAN = "above_median"
    BELOW_MEDIAN = "below_median"
    INVALID = "invalid"
    NO_SUBMISSION = "no_submission"


MEDALS = frozenset({Outcome.GOLD, Outcome.SILVER, Outcome.BRONZE})


class FailureClass(StrEnum):
    """Why a run failed. Only infrastructure failures may be relaunched without affecting the statistics."""

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


# While its agent may be running, a run occupies slots, memory and GPUs; while it is only graded, it does not.
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
    """A run's state can't be followed by the requested one."""


def require_allowed(run: str, current: RunState, wanted: RunState) -> None:
    """Raise ForbiddenTransition unless `wanted` may follow `current`."""
    if wanted not in ALLOWED_AFTER[current]:
        possible = ", ".join(sorted(ALLOWED_AFTER[current]))
        raise ForbiddenTransition(
            f"run {run} can't become {wanted}", f"it is {current}, which can only become {possible}"
        )
