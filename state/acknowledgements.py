"""Acknowledgements of concerns: who made them, why, and until when they hide a concern; by the concern's key."""

from __future__ import annotations

from dataclasses import asdict

from mlebench_console.state import events
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import CauseReviewed, EventKind
from mlebench_console.state.records import Acknowledgement


def all_acknowledgements(database: Database) -> dict[str, Acknowledgement]:
    """Read all acknowledgements, by key."""
    found = database.records(Acknowledgement, "SELECT * FROM acknowledgements ORDER BY key")
    return {one.key: one for one in found}


def acknowledge(database: Database, made: Acknowledgement, *, sweep_id: str | None = None) -> None:
    """Store an acknowledgement, replacing an earlier one of the same key, with an event."""
    with database.transaction():
        database.insert("acknowledgements", asdict(made), or_replace=True)
        is_snoozed = made.until is not None
        kind = EventKind.CAUSE_SNOOZED if is_snoozed else EventKind.CAUSE_ACKNOWLEDGED
        what = "snoozed" if is_snoozed else "acknowledged"
        text = f"{what} by {made.author}: {made.text}: {made.reason}"
        events.append(database, made.at, kind, text, sweep_id=sweep_id, detail=CauseReviewed(made.key))


def take_back(database: Database, key: str, *, by: str, now: float) -> bool:
    """Remove an acknowledgement, with an event, and return whether there was one."""
    with database.transaction():
        known = all_acknowledgements(database).get(key)
        if known is None:
            return False
        database.execute("DELETE FROM acknowledgements WHERE key = ?", (key,))
        text = f"no longer acknowledged, by {by}: {known.text}"
        events.append(database, now, EventKind.CAUSE_TAKEN_BACK, text, detail=CauseReviewed(key))
        return True
