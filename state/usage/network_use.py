"""Attempts' traffic with allowed hosts, as counted by their proxies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mlebench_console.state.database import Database


@dataclass(frozen=True)
class NetworkUse:
    """The traffic of one attempt with one allowed host, or with all hosts that one rule allows."""

    attempt_id: int
    host: str
    connections: int
    sent_bytes: int
    received_bytes: int


def set_use(database: Database, uses: Sequence[NetworkUse]) -> None:
    """Store the traffic of an attempt so far."""
    with database.transaction():
        for use in uses:
            database.insert("network_use", asdict(use), or_replace=True)


def of_run(database: Database, run_id: int) -> list[NetworkUse]:
    """Read the traffic of all attempts of a run."""
    return database.records(
        NetworkUse,
        "SELECT network_use.* FROM network_use JOIN attempts ON attempts.id = attempt_id"
        " WHERE run_id = ? ORDER BY attempt_id, host",
        (run_id,),
    )


def latest_by_run(database: Database) -> dict[int, tuple[int, int]]:
    """Read the bytes that the latest attempts of runs have sent and received."""
    rows = database.rows(
        "SELECT run_id, SUM(sent_bytes) AS sent, SUM(received_bytes) AS received FROM network_use"
        " JOIN attempts ON attempts.id = attempt_id JOIN runs ON runs.id = run_id"
        " AND attempts.number = runs.attempts GROUP BY run_id"
    )
    return {row["run_id"]: (row["sent"], row["received"]) for row in rows}
