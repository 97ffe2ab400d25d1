"""Resource samples, in a separate file: many, small, and less valuable than the state.

Nothing depends on them: where the file can't be used, `UnusableSamples` is raised, and the next use tries again. A
damaged file, or one with other columns, is renamed by its writer, the engine, and replaced by a new one.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problems import StateProblem
from mlebench_console.state.database import read_all

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
    idle_seconds REAL NOT NULL,
    PRIMARY KEY (attempt_id, at)
) WITHOUT ROWID, STRICT
"""

_COLUMNS = ", ".join(("attempt_id", *(field.name for field in fields(UsageSample))))
_MARKS = ", ".join("?" for _ in (None, *fields(UsageSample)))
_BUSY_SECONDS = 1.0  # the engine's loop is blocked meanwhile
_LARGEST_INTEGER = (1 << 63) - 1
# A damaged page, something else than a database, or a database with other tables.
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})


class UnusableSamples(StateProblem):
    """The samples can't be read or written now: the file is locked or damaged, or the disk is full."""


class DamagedSamples(UnusableSamples):
    """The file of samples was damaged and has been renamed; the next use creates a new one."""


class Samples:
    """The samples of one state directory; the file is opened when it is first used."""

    def __init__(self, state_dir: Path, *, writable: bool) -> None:
        self._path = state_dir / DATABASE_NAME
        self._writable = writable
        self._connection: sqlite3.Connection | None = None

    def add(self, attempt_id: int, samples: Sequence[UsageSample]) -> None:
        """Store samples of an attempt; existing ones are kept.

        Raises:
            UnusableSamples: none was stored.
        """
        with self._changing() as connection:
            connection.executemany(
                f"INSERT OR IGNORE INTO usage ({_COLUMNS}) VALUES ({_MARKS})",
                [(attempt_id, *astuple(sample)) for sample in samples],
            )

    def forget(self, attempt_ids: Sequence[int]) -> None:
        """Remove the samples of attempts."""
        with self._changing() as connection:
            connection.executemany(
                "DELETE FROM usage WHERE attempt_id = ?", [(number,) for number in attempt_ids]
            )

    def of_attempt(self, attempt_id: int, *, since: float = 0.0) -> list[UsageSample]:
        """Read an attempt's samples in order of time."""
        with self._opened() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM usage WHERE attempt_id = ? AND at > ? ORDER BY at",
                (attempt_id, since),
            ).fetchall()
        return read_all(UsageSample, rows)

    def most_disk(self, attempt_id: int) -> int | None:
        """Read an attempt's greatest disk usage; None where it was never measured."""
        with self._opened() as connection:
            row = connection.execute(
                "SELECT MAX(disk_bytes) AS most FROM usage WHERE attempt_id = ?", (attempt_id,)
            ).fetchone()
        most: int | None = row["most"]
        return most

    def latest(self) -> dict[int, UsageSample]:
        """Read the latest sample of every attempt."""
        with self._opened() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM usage"
                " JOIN (SELECT attempt_id AS a, MAX(at) AS t FROM usage GROUP BY attempt_id)"
                " ON attempt_id = a AND at = t"
            ).fetchall()
        return dict(zip((row["attempt_id"] for row in rows), read_all(UsageSample, rows), strict=True))

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Yield the open file; after any error it is closed, which rolls an open transaction back."""
        try:
            if self._connection is None:
                self._connect()
            assert self._connection is not None
            yield self._connection
        except sqlite3.Error as error:
            self.close()
            code = getattr(error, "sqlite_errorcode", None)  # None where Python itself refuses
            if self._writable and code is not None and code & 0xFF in _DAMAGED:
                raise self._set_aside(str(error)) from error
            raise UnusableSamples(f"{self._path} can't be used", str(error)) from error
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        mode = "rwc" if self._writable else "ro"
        self._connection = connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
        )
        connection.row_factory = sqlite3.Row
        if self._writable:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)

    def _set_aside(self, why: str) -> UnusableSamples:
        """Rename the damaged file, so that the next use creates a new one, and return the problem to raise."""
        kept = self._path.with_name(
            f"{DATABASE_NAME}.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        )
        # The write-ahead log first: left behind, it would be applied to the new file.
        for suffix in ("-wal", "-shm", ""):
            part = Path(f"{self._path}{suffix}")
            try:
                if part.exists():
                    part.rename(f"{kept}{suffix}")
            except OSError as error:
                return UnusableSamples(
                    f"{self._path} is damaged ({why})", f"it can't be renamed: {error.strerror}"
                )
        return DamagedSamples(
            f"{self._path} was damaged ({why})", f"it is kept as {kept.name}, and a new one is made"
        )


def samples_of(lines: Sequence[Mapping[str, Any]]) -> list[UsageSample]:
    """Return lines of usage.jsonl as samples, without invalid lines."""
    import msgspec

    found = []
    for line in lines:
        try:
            sample = msgspec.convert(line, UsageSample)
        except msgspec.ValidationError:
            continue
        if all(_fits(value) for value in astuple(sample)):
            found.append(sample)
    return found


def _fits(value: object) -> bool:
    """Return whether a column can hold a value."""
    if isinstance(value, int):
        return abs(value) <= _LARGEST_INTEGER
    return not isinstance(value, float) or math.isfinite(value)
