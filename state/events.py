"""The log of events, in order; each is appended within the transaction that it describes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mlebench_console.state.database import Database, to_json
from mlebench_console.state.records import Attempt, Event, Run


def append(
    database: Database,
    at: float,
    kind: str,
    text: str,
    *,
    run: Run | None = None,
    attempt_id: int | None = None,
    sweep_id: str | None = None,
    competition_id: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> int:
    """Add an event and return its number; a run's event is also found by its sweep and competition."""
    return database.insert(
        "events",
        {
            "at": at,
            "kind": kind,
            "text": text,
            "sweep_id": run.sweep_id if run is not None else sweep_id,
            "run_id": run.id if run is not None else None,
            "attempt_id": attempt_id,
            "competition_id": run.competition_id if run is not None else competition_id,
            "detail": to_json(detail or {}),
        },
    )


def append_or_count(
    database: Database, at: float, kind: str, text: str, *, run: Run, attempt_id: int, most: int
) -> None:
    """Add an event of an attempt; beyond `most` of its kind it replaces the last one and counts those omitted."""
    rows = database.rows(
        "SELECT id, detail FROM events WHERE run_id = ? AND attempt_id = ? AND kind = ? ORDER BY id DESC LIMIT ?",
        (run.id, attempt_id, kind, most),
    )
    if len(rows) < most:
        append(database, at, kind, text, run=run, attempt_id=attempt_id)
        return
    more = json.loads(rows[0]["detail"]).get("more", 0) + 1
    counted = f"{text} (and {more:,} before that are not listed)"
    database.update("events", rows[0]["id"], at=at, text=counted, detail=to_json({"more": more}))


def has(database: Database, attempt: Attempt, kind: str) -> bool:
    """Return whether an attempt has an event of a kind."""
    # The index is by run; without it each query would scan all events, of which there may be 100,000.
    sql = "SELECT 1 FROM events WHERE run_id = ? AND attempt_id = ? AND kind = ? LIMIT 1"
    return database.row(sql, (attempt.run_id, attempt.id, kind)) is not None


def of_kinds(database: Database, kinds: Sequence[str], *, since: float) -> list[Event]:
    """Read the events of some kinds since a time, oldest first."""
    marks = ", ".join("?" * len(kinds))
    return database.records(
        Event, f"SELECT * FROM events WHERE at >= ? AND kind IN ({marks}) ORDER BY at, id", (since, *kinds)
    )


def newest(
    database: Database,
    *,
    limit: int = 200,
    sweep_id: str | None = None,
    run_id: int | None = None,
    competition_id: str | None = None,
    after_id: int = 0,
    before_id: int | None = None,
) -> list[Event]:
    """Read the newest events, newest first, of everything or of one sweep, run or competition.

    Args:
        database: the state.
        limit: the most events to return.
        sweep_id: only events of this sweep.
        run_id: only events of this run.
        competition_id: only events of this competition.
        after_id: only events after the one with this number.
        before_id: only events before the one with this number.
    """
    wanted = {"sweep_id": sweep_id, "run_id": run_id, "competition_id": competition_id}
    conditions = [f"{column} = :{column}" for column, value in wanted.items() if value is not None]
    conditions += ["id < :before_id"] if before_id is not None else []
    return database.records(
        Event,
        f"SELECT * FROM events WHERE {' AND '.join(['id > :after_id', *conditions])}"
        " ORDER BY id DESC LIMIT :limit",
        {**wanted, "after_id": after_id, "before_id": before_id, "limit": limit},
    )
