"""Requests: the one way in which a console or a command changes anything; the engine answers them."""

from __future__ import annotations

from typing import Any

from state.database import Database, to_json
from state.records import Request, RequestState


def file(database: Database, kind: str, arguments: dict[str, Any], *, author: str, now: float) -> int:
    """File a request and return its number, by which the answer can be read."""
    with database.transaction():
        return database.insert(
            "requests", {"filed_at": now, "author": author, "kind": kind, "arguments": to_json(arguments)}
        )


def open_requests(database: Database) -> list[Request]:
    """Read what has not been answered yet, oldest first."""
    return database.records(Request, "SELECT * FROM requests WHERE state = 'filed' ORDER BY id")


def answer(database: Database, request_id: int, state: RequestState, text: str, *, now: float) -> None:
    """Answer a request; within the same transaction as what it asked for, so that neither is done twice."""
    with database.transaction():
        database.execute(
            "UPDATE requests SET state = ?, answer = ?, answered_at = ? WHERE id = ? AND state = 'filed'",
            (state, text, now, request_id),
        )


def get(database: Database, request_id: int) -> Request | None:
    """Read one request with its answer."""
    return database.record(Request, "SELECT * FROM requests WHERE id = ?", (request_id,))
