"""The record of everything that happened, in order: appended within the transaction that did it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from state.database import Database, read_all
from state.records import Event, Run


@dataclass(frozen=True)
class Happening:
    """An event before it has a place in the record."""

    at: float
    kind: str
    text: str
    sweep_id: str | None = None
    run_id: int | None = None
    attempt_id: int | None = None
    competition_id: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def to_run(cls, run: Run, at: float, kind: str, text: str, *, attempt_id: int | None = None) -> Happening:
        """What happened to a run."""
        return cls(
            at,
            kind,
            text,
            sweep_id=run.sweep_id,
            run_id=run.id,
            attempt_id=attempt_id,
            competition_id=run.competition_id,
        )


def append(database: Database, happening: Happening) -> int:
    """Add an event and return its number."""
    cursor = database.execute(
        "INSERT INTO events (at, kind, text, sweep_id, run_id, attempt_id, competition_id, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            happening.at,
            happening.kind,
            happening.text,
            happening.sweep_id,
            happening.run_id,
            happening.attempt_id,
            happening.competition_id,
            json.dumps(happening.detail, sort_keys=True),
        ),
    )
    return int(cursor.lastrowid or 0)


def newest(
    database: Database,
    *,
    limit: int = 200,
    sweep_id: str | None = None,
    run_id: int | None = None,
    competition_id: str | None = None,
    after_id: int = 0,
) -> list[Event]:
    """Read the newest events, newest first, of everything or of one sweep, run or competition."""
    conditions, values = ["id > ?"], [after_id]
    for column, value in (("sweep_id", sweep_id), ("run_id", run_id), ("competition_id", competition_id)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)  # type: ignore[arg-type]  # a list of mixed SQL values
    rows = database.rows(
        f"SELECT * FROM events WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
        (*values, limit),
    )
    return read_all(Event, rows)
