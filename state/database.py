"""The state's database: opening it as the one writer (the engine) or as a reader, creating it, reading records."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mlebench_console.foundation.locks import ENGINE_LOCK, ENGINE_STATUS, is_held
from mlebench_console.foundation.problems import StateProblem, UsageProblem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DATABASE_NAME = "state.db"
BUSY_TIMEOUT_SECONDS = 10.0
# WAL needs memory shared between processes, which these don't provide across hosts.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "fuse.sshfs", "9p", "ceph", "beegfs", "gpfs", "afs"}
)

# The version of schema.sql and of the JSON in its columns. There are no migrations: a state of any other version is
# refused. It is increased with the first change after a release.
SCHEMA_VERSION = 22
# Columns that hold a record or a mapping as JSON.
_JSON_COLUMNS = frozenset(
    {
        "answer",
        "arguments",
        "findings",
        "hardware",
        "problem_record",
        "problem_subject",
        "options",
        "spec",
        "tags",
        "unenforced",
    }
)

Values = Sequence[Any] | Mapping[str, Any]
Record = TypeVar("Record")


class UnusableState(StateProblem):
    """The state can't be read or written now: it is locked or damaged, or the disk is full."""


class Database:
    """A connection to the state. Writes need a `transaction`; reads don't."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        connection.row_factory = sqlite3.Row
        self._connection = connection
        self.path = path

    def rows(self, sql: str, values: Values = ()) -> list[sqlite3.Row]:
        """Read all rows of a query."""
        with self._explained():
            return self._connection.execute(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> sqlite3.Row | None:
        """Read the first row of a query."""
        with self._explained():
            found: sqlite3.Row | None = self._connection.execute(sql, values).fetchone()
            return found

    def records(self, record: type[Record], sql: str, values: Values = ()) -> list[Record]:
        """Read the rows of a query as records; columns without a field are ignored."""
        return read_all(record, self.rows(sql, values))

    def record(self, record: type[Record], sql: str, values: Values = ()) -> Record | None:
        """Read the first row of a query as a record; None where there is no row."""
        row = self.row(sql, values)
        return None if row is None else read_all(record, [row])[0]

    def execute(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        """Execute a write; only inside a transaction."""
        if not self._connection.in_transaction:
            raise RuntimeError("a write needs a transaction around it")
        with self._explained():
            return self._connection.execute(sql, values)

    def execute_many(self, sql: str, values: Sequence[Values]) -> None:
        """Change many rows with one statement; only inside a transaction."""
        if not self._connection.in_transaction:
            raise RuntimeError("a write needs a transaction around it")
        with self._explained():
            self._connection.executemany(sql, values)

    def insert(
        self, table: str, values: Mapping[str, Any], *, or_ignore: bool = False, or_replace: bool = False
    ) -> int:
        """Add a row and return its number; an existing row with the same key is kept, replaced, or an error."""
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        conflict = " OR IGNORE" if or_ignore else " OR REPLACE" if or_replace else ""
        sql = f"INSERT{conflict} INTO {table} ({names}) VALUES ({marks})"
        return int(self.execute(sql, values).lastrowid or 0)

    def update(self, table: str, row_id: int | str, **values: Any) -> None:
        """Change columns of the row with this id."""
        changes = ", ".join(f"{name} = :{name}" for name in values)
        self.execute(f"UPDATE {table} SET {changes} WHERE id = :row_id", {**values, "row_id": row_id})

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commit all changes of the block, or none of them. Nested blocks join the outer one."""
        if self._connection.in_transaction:
            yield self
            return
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self
            with self._explained():
                self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        """Roll a transaction back, unless SQLite has done so itself, as it does on a full disk."""
        if self._connection.in_transaction:
            with self._explained():
                self._connection.execute("ROLLBACK")

    def wait_at_most(self, seconds: float) -> None:
        """Set how long a change waits for other writers before it is refused as locked."""
        with self._explained():
            self._connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")

    def data_version(self) -> int:
        """Return a number that changes whenever another connection has committed a change."""
        found = self.row("PRAGMA data_version")
        return int(found[0]) if found else 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OverflowError as error:
            raise UsageProblem("a number has too many digits", "expected at most 18") from error
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.DatabaseError as error:
            raise _explain(error, self.path) from error


def open_for_writing(state_dir: Path) -> Database:
    """Open the state as its one writer (the engine, which holds the engine lock), creating it if needed."""
    refuse_network_file_system(state_dir)
    database = _connect(state_dir / DATABASE_NAME, mode="rwc")
    connection = database._connection
    try:
        with database._explained():
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            version = _version_of(connection)
            if version == 0:
                _create_tables(connection)
            else:
                _refuse_other_versions(database.path, version)
    except BaseException:
        database.close()
        raise
    return database


def open_for_reading(state_dir: Path) -> Database:
    """Open the state read-only; it must exist and have this program's version."""
    return _open_existing(state_dir, mode="ro")


def open_for_requests(state_dir: Path) -> Database:
    """Open the state for filing requests, which is all that other processes than the engine may write."""
    return _open_existing(state_dir, mode="rw")


def exists(state_dir: Path) -> bool:
    """Return whether the state exists.

    Raises:
        StateProblem: it has been removed under its engine.
    """
    path = state_dir / DATABASE_NAME
    if path.is_file():
        return True
    if (state_dir / ENGINE_STATUS).is_file() and is_held(state_dir / ENGINE_LOCK):
        raise lost_state(path)
    return False


def lost_state(path: Path) -> StateProblem:
    """Return the problem of a state whose file is gone or another one while its engine uses it."""
    return StateProblem(
        f"{path} was removed or replaced while its engine uses it",
        "what the engine records is in no file any more",
        "Stop the engine, restore the file from a backup, and start the engine: live runs go on meanwhile, and those"
        " that the file does not know are not stopped.",
    )


def _open_existing(state_dir: Path, *, mode: str) -> Database:
    path = state_dir / DATABASE_NAME
    if not exists(state_dir):
        raise StateProblem(
            f"there is no state in {state_dir}", "", "'mlebench-console engine start' creates it."
        )
    database = _connect(path, mode=mode)
    try:
        with database._explained():
            version = _version_of(database._connection)
        if version == 0:
            raise StateProblem(
                f"{path} has no tables yet", "", "'mlebench-console engine start' creates them."
            )
        _refuse_other_versions(path, version)
    except BaseException:
        database.close()
        raise
    return database


def _connect(path: Path, *, mode: str) -> Database:
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error as error:
        raise _explain(error, path) from error
    return Database(connection, path)


def _create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables in an empty database, in one transaction."""
    schema = files("mlebench_console.state").joinpath("schema.sql").read_text(encoding="utf-8")
    connection.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")


def _version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a database's schema; 0 for an empty database."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _refuse_other_versions(path: Path, version: int) -> None:
    """Raise StateProblem if another version of this program wrote the state."""
    if version == SCHEMA_VERSION:
        return
    is_newer = version > SCHEMA_VERSION
    raise StateProblem(
        f"{path} was written by {'a newer' if is_newer else 'an older'} version of this program",
        f"its schema version is {version}, this program's is {SCHEMA_VERSION}",
        f"{'Update mlebench-console' if is_newer else 'Use that version'}, or point --state-dir at another directory.",
    )


def read_all(record: type[Record], rows: Sequence[sqlite3.Row]) -> list[Record]:
    """Return rows as records; each field needs a column, and other columns are ignored."""
    import msgspec  # imported here, because the console's first frame does not need it

    json_columns = _JSON_COLUMNS.intersection(rows[0].keys() if rows else ())
    values = [dict(row) for row in rows]
    for row in values:
        for name in json_columns:
            if row[name] is not None:
                # A shortcut, since most of thousands of runs have no tags.
                row[name] = [] if row[name] == "[]" else json.loads(row[name])
    return msgspec.convert(values, list[record], strict=False)  # type: ignore[valid-type]  # not strict: 1 is true


def sql_list(values: Collection[str]) -> str:
    """Return the members of an enum as a list for SQL's IN."""
    return ", ".join(f"'{value}'" for value in sorted(values))


def to_json(value: DataclassInstance | Mapping[str, Any]) -> str:
    """Return a record or a mapping as JSON for a column; unlike msgspec's, this JSON allows NaN."""
    return json.dumps(asdict(value) if is_dataclass(value) else value, sort_keys=True)


def refuse_network_file_system(state_dir: Path) -> None:
    """Raise StateProblem where SQLite's write-ahead log would not be safe."""
    kind = file_system_of(state_dir)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StateProblem(
            f"the state can't live in {state_dir}",
            f"it is on a network file system ({kind}), where SQLite can lose data",
            "Point --state-dir (or MLEBENCH_STATE_DIR) at a local disk.",
        )


def file_system_of(path: Path) -> str:
    """Return the type of the file system of `path`, as /proc/self/mountinfo names it."""
    device = _existing_ancestor(path).stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if before.split()[2] == wanted:
            return after.split()[0]
    return "unknown"


def _existing_ancestor(path: Path) -> Path:
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _explain(error: sqlite3.Error, path: Path) -> UnusableState:
    """Return what an error means for an operator, by SQLite's code, which errors of Python itself lack."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            step = "See who has it open with 'fuser' and try again."
            return UnusableState(f"{path} is locked", "another program holds it", step)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            step = "Move it away and restore it from a backup; run folders are not affected."
            return UnusableState(f"{path} is damaged", str(error), step)
        case sqlite3.SQLITE_FULL:
            step = "Free some space and try again."
            return UnusableState(f"{path} can't be written", "the disk is full", step)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
            step = "Check the rights on the file and its directory."
            return UnusableState(f"{path} can't be opened", str(error), step)
    return UnusableState(f"{path} can't be used", str(error))
