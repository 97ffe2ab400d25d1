"""The log of events, in order; each is appended within the transaction that it describes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from mlebench_console.state.database import Database, to_json
from mlebench_console.state.event_records import DATA, Event, EventData, EventKind
from mlebench_console.state.records import Attempt, Run

if TYPE_CHECKING:
    import msgspec

_KINDS: dict[str, EventKind] = {kind.value: kind for kind in EventKind}
# What is searched for words: the letters of ASCII in lower case.
_WORDS = "lower(kind || ' ' || text || ' ' || IFNULL(sweep_id, '') || ' ' || IFNULL(competition_id, ''))"


def append(
    database: Database,
    at: float,
    kind: EventKind,
    text: str,
    *,
    run: Run | None = None,
    attempt_id: int | None = None,
    sweep_id: str | None = None,
    competition_id: str | None = None,
    times: int = 1,
    detail: EventData | None = None,
) -> int:
    """Add an event and return its number; a run's event is also found by its sweep and competition."""
    if type(detail) is not DATA.get(kind, type(None)):
        raise TypeError(f"{kind} can't have {detail}")
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
            "times": times,
            "detail": None if detail is None else to_json(detail),
        },
    )


def append_or_count(
    database: Database,
    at: float,
    kind: EventKind,
    text: str,
    *,
    run: Run,
    attempt_id: int,
    most: int,
    times: int = 1,
) -> None:
    """Add an event of an attempt; beyond `most` of its kind it replaces the last one, which counts them."""
    rows = database.rows(
        "SELECT id, times FROM events WHERE run_id = ? AND attempt_id = ? AND kind = ? ORDER BY id DESC LIMIT ?",
        (run.id, attempt_id, kind, most),
    )
    if len(rows) < most:
        append(database, at, kind, text, run=run, attempt_id=attempt_id, times=times)
    else:
        counted = max(times, rows[0]["times"] + 1)
        database.update("events", rows[0]["id"], at=at, text=text, times=counted)


def has(database: Database, attempt: Attempt, kind: EventKind) -> bool:
    """Return whether an attempt has an event of a kind."""
    # The index is by run; without it each query would scan all events, of which there may be 100,000.
    sql = "SELECT 1 FROM events WHERE run_id = ? AND attempt_id = ? AND kind = ? LIMIT 1"
    return database.row(sql, (attempt.run_id, attempt.id, kind)) is not None


def of_kinds(database: Database, kinds: Collection[str], *, since: float) -> list[Event]:
    """Read the events of some kinds since a time, oldest first."""
    marks = ", ".join("?" * len(kinds))
    sql = f"SELECT * FROM events WHERE at >= ? AND kind IN ({marks}) ORDER BY at, id"
    return _events(database.rows(sql, (since, *kinds)))


def newest(
    database: Database,
    *,
    limit: int = 200,
    sweep_id: str | None = None,
    run_id: int | None = None,
    competition_id: str | None = None,
    after_id: int = 0,
    before_id: int | None = None,
    containing: Sequence[str] = (),
    kinds: Collection[str] | None = None,
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
        containing: only events with all these words in their kind, text, sweep or competition, in lower case.
        kinds: only events of these kinds; None for all.
    """
    wanted = {"sweep_id": sweep_id, "run_id": run_id, "competition_id": competition_id}
    conditions = [f"{column} = :{column}" for column, value in wanted.items() if value is not None]
    conditions += ["id < :before_id"] if before_id is not None else []
    words = {f"word_{place}": word for place, word in enumerate(containing)}
    conditions += [f"instr({_WORDS}, :{name})" for name in words]
    if kinds is not None:
        words |= {f"kind_{place}": kind for place, kind in enumerate(sorted(kinds))}
        conditions.append(f"kind IN ({', '.join(f':kind_{place}' for place in range(len(kinds)))})")
    rows = database.rows(
        f"SELECT * FROM events WHERE {' AND '.join(['id > :after_id', *conditions])} ORDER BY id DESC LIMIT :limit",
        {**wanted, **words, "after_id": after_id, "before_id": before_id, "limit": limit},
    )
    return _events(rows)


def _events(rows: Sequence[sqlite3.Row]) -> list[Event]:
    """Return rows as events; a kind or data that this version does not know leave an event its text."""
    import msgspec  # imported here, because the console's first frame does not need it

    decoders = {kind: msgspec.json.Decoder(record) for kind, record in DATA.items()}
    found = []
    for row in rows:
        kind = _KINDS.get(row["kind"])
        decoder = decoders.get(kind) if row["detail"] is not None and kind is not None else None
        detail = None if decoder is None else _decoded(decoder, row["detail"])
        found.append(Event(**{**dict(row), "kind": kind or row["kind"], "detail": detail}))
    return found


def _decoded(decoder: msgspec.json.Decoder[EventData], text: str) -> EventData | None:
    import msgspec

    try:
        return decoder.decode(text)
    except msgspec.DecodeError:
        pass
    try:  # a score that is not finite, which this JSON may hold
        return msgspec.convert(json.loads(text), decoder.type)
    except (ValueError, msgspec.ValidationError):
        return None
