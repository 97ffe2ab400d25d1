"""Experiments: the sweeps that together make a leaderboard row."""

from __future__ import annotations

from mlebench_console.state import events
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.records import Experiment


def assign(database: Database, experiment_id: str, sweep_id: str, *, now: float) -> None:
    """Add a sweep to an experiment, which is created if it does not exist."""
    with database.transaction():
        experiment = {"id": experiment_id, "created_at": now}
        database.insert("experiments", experiment, or_ignore=True)
        member = {"experiment_id": experiment_id, "sweep_id": sweep_id}
        database.insert("experiment_sweeps", member, or_ignore=True)
        text = f"belongs to {experiment_id}"
        events.append(database, now, EventKind.EXPERIMENT_ASSIGNED, text, sweep_id=sweep_id)


def all_experiments(database: Database) -> list[Experiment]:
    """Read all experiments with their sweeps, oldest first."""
    members: dict[str, list[str]] = {}
    for row in database.rows("SELECT experiment_id, sweep_id FROM experiment_sweeps ORDER BY rowid"):
        members.setdefault(row["experiment_id"], []).append(row["sweep_id"])
    rows = database.rows("SELECT id, created_at FROM experiments ORDER BY created_at, id")
    return [Experiment(row["id"], row["created_at"], tuple(members.get(row["id"], ()))) for row in rows]


def of_sweep(database: Database, sweep_id: str) -> tuple[str, ...]:
    """Return the experiments that a sweep belongs to, in order of assignment."""
    rows = database.rows(
        "SELECT experiment_id FROM experiment_sweeps WHERE sweep_id = ? ORDER BY rowid", (sweep_id,)
    )
    return tuple(row["experiment_id"] for row in rows)
