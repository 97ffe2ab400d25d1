"""What people name: a run by its number or its place in a sweep, a cause by its key."""

from __future__ import annotations

from mlebench_console.competitions.registry import resembling
from mlebench_console.engine.needs.causes import CauseGroup, read_causes
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Run

_MOST_KEYS = 8


def find_run(database: Database, text: str) -> Run:
    """Find a run by its number, or as SWEEP/COMPETITION/SEED.

    Raises:
        UsageProblem: there is none, or the name is neither.
    """
    if text.isdecimal():
        return runs.get(database, int(text))
    sweep_id, _, rest = text.partition("/")
    competition_id, _, seed = rest.partition("/")
    next_step = "'mlebench-console runs list' shows the runs."
    if seed.isdecimal():
        sweep = sweeps.get(database, sweep_id)
        members = runs.of_sweep(database, sweep.id)
        for run in members:
            if run.competition_id == competition_id and run.seed == int(seed):
                return run
        close = resembling(competition_id, {run.competition_id for run in members} - {competition_id})
        if close:
            next_step = f"Did you mean {sweep.id}/{close[0]}/{seed}?"
    raise UsageProblem(f"there is no run '{text}'", "expected a number or SWEEP/COMPETITION/SEED", next_step)


def find_cause(database: Database, text: str, now: float) -> CauseGroup:
    """Find a group of runs by its key, or by a unique beginning of it.

    Raises:
        UsageProblem: no group has such a key, or several have.
    """
    groups = read_causes(database, now)
    found = [group for group in groups if group.key == text] or [
        group for group in groups if text and group.key.startswith(text)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(group.key for group in found[:_MOST_KEYS])
        raise UsageProblem(f"several causes begin with '{text}'", keys)
    raise UsageProblem(
        f"no run has the cause '{text}' now", "", "'mlebench-console runs causes --all' lists the causes."
    )
