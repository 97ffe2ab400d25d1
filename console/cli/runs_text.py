"""How runs are told on the command line, and how one is named there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from console import wording
from console.cli.common import say_table
from foundation.problems import UsageProblem
from state.lifecycle import RunState

if TYPE_CHECKING:
    from state.database import Database
    from state.records import Run


def run_facts(run: Run) -> dict[str, Any]:
    """A run's facts: the fields of its record, and for how long nothing has happened in it."""
    return asdict(run) | {"idle_seconds": _idle(run, time.time())}


def say_runs(runs: Sequence[Run]) -> None:
    """Print one line a run."""
    now = time.time()
    say_table(
        (
            "run",
            "sweep",
            "competition",
            "seed",
            "state",
            "standing",
            "score",
            "took",
            "idle",
            "attempts",
            "why",
        ),
        [
            (
                str(run.id),
                run.sweep_id,
                run.competition_id,
                str(run.seed),
                run.state if run.failure_class is None else f"{run.state} ({run.failure_class})",
                (run.outcome or run.standing or "-").replace("_", " "),
                "-" if run.score is None else f"{run.score:.5f}",
                _took(run, now),
                wording.duration(_idle(run, now)),
                str(run.attempts),
                run.failure_text,
            )
            for run in runs
        ],
        right=("run", "seed", "score", "took", "idle", "attempts"),
    )


def find_run(database: Database, text: str) -> Run:
    """Find a run by its number, or as SWEEP/COMPETITION/SEED.

    Raises:
        UsageProblem: there is none, or the name is neither.
    """
    from competitions.registry import resembling
    from state import runs, sweeps

    if text.isdigit():
        return runs.get(database, int(text))
    sweep_id, _, rest = text.partition("/")
    competition_id, _, seed = rest.partition("/")
    next_step = "'mlebench-console runs list' shows the runs."
    if seed.isdigit():
        sweep = sweeps.get(database, sweep_id)
        members = runs.of_sweep(database, sweep.id)
        for run in members:
            if run.competition_id == competition_id and run.seed == int(seed):
                return run
        close = resembling(competition_id, {run.competition_id for run in members} - {competition_id})
        if close:
            next_step = f"Did you mean {sweep.id}/{close[0]}/{seed}?"
    raise UsageProblem(
        f"there is no run '{text}'", "a run is named by its number or as SWEEP/COMPETITION/SEED", next_step
    )


def _took(run: Run, now: float) -> str:
    if run.started_at is None:
        return "-"
    return wording.duration((run.ended_at or now) - run.started_at)


def _idle(run: Run, now: float) -> float | None:
    """For how long nothing has happened in a running run; of others there is nothing to say."""
    if run.state is not RunState.RUNNING or run.last_activity_at is None:
        return None
    return max(0.0, now - run.last_activity_at)
