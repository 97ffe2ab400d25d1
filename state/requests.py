"""Requests, the only way in which a console or a command changes anything; the engine answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlebench_console.state.database import Database, to_json
from mlebench_console.state.records import FiledRequest, RequestState


def file(
    database: Database,
    kind: str,
    arguments: Mapping[str, Any],
    *,
    text: str,
    author: str,
    now: float,
    not_before: float | None = None,
) -> int:
    """File a request and return its number, with which the answer can be read.

    With `not_before` it waits until then, and can be withdrawn; it waits in the state, so that neither the end of
    the process that filed it nor that of the engine loses it or executes it twice.
    """
    with database.transaction():
        return database.insert(
            "requests",
            {
                "filed_at": now,
                "author": author,
                "kind": kind,
                "arguments": to_json(arguments),
                "text": text,
                "not_before": not_before,
            },
        )


def open_requests(database: Database, *, now: float) -> list[FiledRequest]:
    """Read the unanswered requests that are due, oldest first.

    Requests filed in the future are due too, since the clock was set back meanwhile.
    """
    return database.records(
        FiledRequest,
        "SELECT * FROM requests WHERE state = 'filed'"
        " AND (not_before IS NULL OR not_before <= :now OR filed_at > :now) ORDER BY id",
        {"now": now},
    )


def waiting(database: Database) -> list[FiledRequest]:
    """Read the requests that wait for their time and can be withdrawn until then, oldest first."""
    return database.records(
        FiledRequest, "SELECT * FROM requests WHERE state = 'filed' AND not_before IS NOT NULL ORDER BY id"
    )


def withdraw(database: Database, request_id: int, *, by: str, now: float) -> bool:
    """Withdraw a request unless it was answered, and return whether that was possible."""
    with database.transaction():
        found = database.execute(
            "UPDATE requests SET state = ?, answer = ?, answered_at = ? WHERE id = ? AND state = 'filed'",
            (RequestState.WITHDRAWN, to_json({"by": by}), now, request_id),
        )
        return found.rowcount == 1


def answer(
    database: Database, request_id: int, state: RequestState, answer: Mapping[str, Any], *, now: float
) -> None:
    """Answer a request, in the same transaction as its execution, so that neither happens twice."""
    with database.transaction():
        database.execute(
            "UPDATE requests SET state = ?, answer = ?, answered_at = ? WHERE id = ? AND state = 'filed'",
            (state, to_json(answer), now, request_id),
        )


def get(database: Database, request_id: int) -> FiledRequest | None:
    """Read one request with its answer."""
    return database.record(FiledRequest, "SELECT * FROM requests WHERE id = ?", (request_id,))
