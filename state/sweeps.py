"""Sweeps: create one with all its runs, change its scheduling, and read its counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import events, runs
from mlebench_console.state.database import Database, read_all, sql_list, to_json
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import LIVE, MEDALS, RunState, SweepState
from mlebench_console.state.records import Sweep, SweepCounts, SweepSpec


def create(
    database: Database,
    *,
    sweep_id: str,
    name: str,
    spec: SweepSpec,
    agent_version: str,
    concurrency: int,
    now: float,
    priority: int = 0,
    note: str = "",
    members: Sequence[tuple[str, int]] | None = None,
) -> Sweep:
    """Create a sweep and queue its runs: first one seed of every competition, then the next seed.

    `members` are its runs as (competition, seed), where they are not all seeds of all competitions.
    """
    with database.transaction():
        if find(database, sweep_id) is not None:
            raise UsageProblem(f"there is already a sweep '{sweep_id}'", "", "Choose another name.")
        database.insert(
            "sweeps",
            {
                "id": sweep_id,
                "name": name,
                "state": SweepState.ACTIVE,
                "spec": to_json(spec),
                "agent_version": agent_version,
                "concurrency": concurrency,
                "priority": priority,
                "created_at": now,
                "note": note,
            },
        )
        wanted = members or [
            (competition, seed) for seed in range(1, spec.seeds + 1) for competition in spec.competitions
        ]
        database.execute_many(
            "INSERT INTO runs (sweep_id, competition_id, seed, state, queued_at, position) VALUES (?, ?, ?, ?, ?, ?)",
            [(sweep_id, *run, RunState.QUEUED, now, position) for position, run in enumerate(wanted)],
        )
        text = f"created: {spec.agent_id} on {spec.extent}"
        events.append(database, now, EventKind.SWEEP_CREATED, text, sweep_id=sweep_id)
    return get(database, sweep_id)


def set_state(database: Database, sweep_id: str, state: SweepState, *, now: float) -> None:
    """Pause, resume or stop the scheduling of a sweep."""
    with database.transaction():
        sweep = get(database, sweep_id)
        if sweep.state == state:
            return
        database.update("sweeps", sweep_id, state=state)
        events.append(database, now, EventKind.of_sweep(state), f"sweep is {state}", sweep_id=sweep_id)


def set_concurrency(database: Database, sweep_id: str, concurrency: int, *, now: float) -> None:
    """Change how many of a sweep's runs may be live at the same time."""
    with database.transaction():
        get(database, sweep_id)
        database.update("sweeps", sweep_id, concurrency=concurrency)
        text = f"at most {concurrency} runs at once"
        events.append(database, now, EventKind.SWEEP_CONCURRENCY, text, sweep_id=sweep_id)


def set_priority(database: Database, sweep_id: str, priority: int, *, now: float) -> None:
    """Change a sweep's priority; higher ones start first."""
    with database.transaction():
        get(database, sweep_id)
        database.update("sweeps", sweep_id, priority=priority)
        text = f"has priority {priority}"
        events.append(database, now, EventKind.SWEEP_PRIORITY, text, sweep_id=sweep_id)


def remove(database: Database, sweep_id: str) -> None:
    """Remove a sweep with all records of its runs, which must have ended."""
    with database.transaction():
        ids = "SELECT id FROM runs WHERE sweep_id = ?"
        attempts = f"SELECT id FROM attempts WHERE run_id IN ({ids})"
        submissions = f"SELECT id FROM submissions WHERE attempt_id IN ({attempts})"
        for statement in (
            f"DELETE FROM grades WHERE submission_id IN ({submissions})",
            f"DELETE FROM submissions WHERE attempt_id IN ({attempts})",
            f"DELETE FROM model_use WHERE attempt_id IN ({attempts})",
            f"DELETE FROM network_use WHERE attempt_id IN ({attempts})",
            f"DELETE FROM integrity_results WHERE attempt_id IN ({attempts})",
            f"DELETE FROM reviews WHERE run_id IN ({ids})",
            f"DELETE FROM outage_calls WHERE attempt_id IN ({attempts})",
            "DELETE FROM budgets WHERE scope = 'sweep' AND name = ?",
            f"DELETE FROM attempts WHERE run_id IN ({ids})",
            # Its name may be reused: a later sweep must not show this one's events.
            "DELETE FROM events WHERE sweep_id = ?",
            "DELETE FROM runs WHERE sweep_id = ?",
            "DELETE FROM experiment_sweeps WHERE sweep_id = ?",
            "DELETE FROM sweeps WHERE id = ?",
        ):
            database.execute(statement, (sweep_id,))


def find(database: Database, sweep_id: str) -> Sweep | None:
    """Read one sweep, or None."""
    return database.record(Sweep, "SELECT * FROM sweeps WHERE id = ?", (sweep_id,))


def get(database: Database, sweep_id: str) -> Sweep:
    """Read one sweep by its id or by an unambiguous prefix of it."""
    found = find(database, sweep_id)
    if found is not None:
        return found
    known = [sweep for sweep in all_sweeps(database) if sweep.id.startswith(sweep_id)]
    if len(known) == 1:
        return known[0]
    if known:
        several = ", ".join(sweep.id for sweep in known[:5])
        raise UsageProblem(f"'{sweep_id}' could be several sweeps", several, "Give more of its name.")
    raise UsageProblem(
        f"there is no sweep '{sweep_id}'", "", "'mlebench-console sweep list' shows the sweeps."
    )


def all_sweeps(database: Database) -> list[Sweep]:
    """Read all sweeps, oldest first."""
    return database.records(Sweep, "SELECT * FROM sweeps ORDER BY created_at, id")


def with_work(database: Database) -> list[Sweep]:
    """Read the sweeps that have queued or live runs, oldest first; others are not parsed."""
    states = sql_list({*LIVE, RunState.QUEUED})
    return database.records(
        Sweep,
        "SELECT * FROM sweeps WHERE EXISTS"
        f" (SELECT 1 FROM runs WHERE state IN ({states}) AND sweep_id = sweeps.id) ORDER BY created_at, id",
    )


def counts(database: Database) -> dict[str, SweepCounts]:
    """Count every sweep's runs by their states."""
    rows = database.rows(
        "SELECT sweep_id, COUNT(*) AS total, SUM(state = 'queued') AS queued,"
        f" SUM(state IN ({sql_list(LIVE)})) AS live, SUM(state = 'finished') AS finished,"
        " SUM(state = 'failed') AS failed, SUM(state = 'stopped') AS stopped,"
        f" SUM(state = 'finished' AND outcome IN ({sql_list(MEDALS)})) AS medals,"
        " SUM(state = 'failed' AND failure_class = 'infrastructure') AS infrastructure,"
        " SUM(demo) AS demo"
        " FROM runs GROUP BY sweep_id"
    )
    retrying = Counter(run.sweep_id for run in runs.to_retry(database))
    return {
        row["sweep_id"]: replace(counts, retrying=retrying[row["sweep_id"]])
        for row, counts in zip(rows, read_all(SweepCounts, rows), strict=True)
    }
