"""Who knows of what needs a person, and why that is out of the way for now; by the key of what it is."""

from __future__ import annotations

from state import events
from state.database import Database
from state.records import Acknowledgement


def all_acknowledgements(database: Database) -> dict[str, Acknowledgement]:
    """Read what has been acknowledged, by its key."""
    found = database.records(Acknowledgement, "SELECT * FROM acknowledgements ORDER BY key")
    return {one.key: one for one in found}


def acknowledge(database: Database, made: Acknowledgement, *, sweep_id: str | None = None) -> None:
    """Keep that somebody knows of something, in place of what was said of it before, with an event."""
    with database.transaction():
        values = ("key", "text", "author", "at", "reason", "until")
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        database.execute(
            f"INSERT OR REPLACE INTO acknowledgements ({names}) VALUES ({marks})",
            {name: getattr(made, name) for name in values},
        )
        what = "acknowledged" if made.until is None else "snoozed"
        text = f"{what} by {made.author}: {made.text}: {made.reason}"
        events.append(database, made.at, f"cause.{what}", text, sweep_id=sweep_id, detail={"cause": made.key})


def take_back(database: Database, key: str, *, by: str, now: float) -> bool:
    """Show again what was acknowledged, with an event; return whether it was."""
    with database.transaction():
        known = all_acknowledgements(database).get(key)
        if known is None:
            return False
        database.execute("DELETE FROM acknowledgements WHERE key = ?", (key,))
        text = f"no longer acknowledged, by {by}: {known.text}"
        events.append(database, now, "cause.taken_back", text, detail={"cause": key})
        return True
