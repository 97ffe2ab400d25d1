"""Resource samples, in a file of their own: many, small, and worth less than the state if power fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields
from pathlib import Path

from state.database import read_all
from state.records import UsageSample

DATABASE_NAME = "samples.db"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    attempt_id INTEGER NOT NULL,
    at REAL NOT NULL,
    cpu_percent REAL,
    memory_bytes INTEGER,
    disk_bytes INTEGER,
    processes INTEGER,
    gpu_percent REAL,
    gpu_memory_bytes INTEGER,
    network_bytes INTEGER,
    PRIMARY KEY (attempt_id, at)
) WITHOUT ROWID, STRICT
"""


# What the first files of samples did not have.
_LATER = {"gpu_percent": "REAL", "gpu_memory_bytes": "INTEGER", "network_bytes": "INTEGER"}
_NAMES = tuple(field.name for field in fields(UsageSample))


class Samples:
    """The samples of one state directory."""

    def __init__(self, state_dir: Path, *, writable: bool) -> None:
        path = state_dir / DATABASE_NAME
        mode = "rwc" if writable else "ro"
        self._connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=5, isolation_level=None
        )
        self._connection.row_factory = sqlite3.Row
        if writable:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(_SCHEMA)
            for name in self._lacking():
                self._connection.execute(f"ALTER TABLE usage ADD COLUMN {name} {_LATER[name]}")
        # A console may be newer than the engine that wrote the file.
        lacking = self._lacking()
        self._columns = ", ".join(f"NULL AS {name}" if name in lacking else name for name in _NAMES)

    def add(self, samples: Sequence[UsageSample]) -> None:
        """Keep samples; one that is already there is left as it is."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            f"INSERT OR IGNORE INTO usage ({', '.join(_NAMES)}) VALUES ({', '.join('?' * len(_NAMES))})",
            [astuple(sample) for sample in samples],
        )
        self._connection.execute("COMMIT")

    def forget(self, attempt_ids: Sequence[int]) -> None:
        """Remove the samples of attempts."""
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "DELETE FROM usage WHERE attempt_id = ?", [(number,) for number in attempt_ids]
        )
        self._connection.execute("COMMIT")

    def of_attempt(self, attempt_id: int, *, since: float = 0.0) -> list[UsageSample]:
        """Read an attempt's samples in order of time."""
        rows = self._connection.execute(
            f"SELECT {self._columns} FROM usage WHERE attempt_id = ? AND at > ? ORDER BY at",
            (attempt_id, since),
        ).fetchall()
        return read_all(UsageSample, rows)

    def most_disk(self, attempt_id: int) -> int | None:
        """Read the most that an attempt held on disk; None where it was never measured."""
        row = self._connection.execute(
            "SELECT MAX(disk_bytes) AS most FROM usage WHERE attempt_id = ?", (attempt_id,)
        ).fetchone()
        most: int | None = row["most"]
        return most

    def latest(self) -> dict[int, UsageSample]:
        """Read the latest sample of every attempt."""
        rows = self._connection.execute(
            f"SELECT {self._columns} FROM usage"
            " JOIN (SELECT attempt_id AS a, MAX(at) AS t FROM usage GROUP BY attempt_id)"
            " ON attempt_id = a AND at = t"
        ).fetchall()
        return {sample.attempt_id: sample for sample in read_all(UsageSample, rows)}

    def _lacking(self) -> set[str]:
        """List the later columns that the file does not have."""
        known = {row["name"] for row in self._connection.execute("PRAGMA table_info(usage)")}
        return set(_LATER) - known if known else set()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
