"""The state's database: opening it as the one writer (the engine) or as a reader, migrating it, reading records."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mlebench_console.foundation.problems import StateProblem, UsageProblem
from mlebench_console.state.causes import cause_of
from mlebench_console.state.lifecycle import FailureClass

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DATABASE_NAME = "state.db"
BUSY_TIMEOUT_SECONDS = 10.0
# WAL needs memory shared between processes, which these don't provide across hosts.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "fuse.sshfs", "9p", "ceph", "beegfs", "gpfs", "afs"}
)

NEWEST_VERSION = 21
# Columns that hold a record or a mapping as JSON.
_CALL_COUNTS = (
    *("calls", "errors", "limited", "refused", "estimated", "input_tokens", "cached_tokens"),
    *("cache_write_tokens", "cache_write_hour_tokens", "output_tokens", "reasoning_tokens"),
)
_JSON_COLUMNS = frozenset({"arguments", "detail", "findings", "hardware", "report", "spec", "tags"})

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

    def insert(self, table: str, values: Mapping[str, Any], *, or_ignore: bool = False) -> int:
        """Add a row and return its number; with `or_ignore` an existing row with the same key is kept."""
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        verb = "INSERT OR IGNORE" if or_ignore else "INSERT"
        return int(self.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", values).lastrowid or 0)

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
        except (sqlite3.OperationalError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise
            raise _explain(error, self.path) from error


def open_for_writing(state_dir: Path) -> Database:
    """Open the state as its one writer (the engine, which holds the engine lock), creating or migrating it."""
    refuse_network_file_system(state_dir)
    database = _connect(state_dir / DATABASE_NAME, mode="rwc")
    connection = database._connection
    with database._explained():
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        _refuse_newer(connection, database.path)
        if version_of(connection) < NEWEST_VERSION:
            migrate(connection)
    return database


def open_for_reading(state_dir: Path) -> Database:
    """Open the state read-only; it must exist and have this program's version."""
    return _open_existing(state_dir, mode="ro")


def open_for_requests(state_dir: Path) -> Database:
    """Open the state for filing requests, which is all that other processes than the engine may write."""
    return _open_existing(state_dir, mode="rw")


def exists(state_dir: Path) -> bool:
    """Return whether the state exists."""
    return (state_dir / DATABASE_NAME).is_file()


def _open_existing(state_dir: Path, *, mode: str) -> Database:
    path = state_dir / DATABASE_NAME
    if not path.is_file():
        raise StateProblem(
            f"there is no state in {state_dir}", "", "'mlebench-console engine start' creates it."
        )
    database = _connect(path, mode=mode)
    with database._explained():
        _refuse_newer(database._connection, path)
        version = version_of(database._connection)
    if version < NEWEST_VERSION:
        database.close()
        raise StateProblem(
            f"{path} has schema version {version}, this program needs {NEWEST_VERSION}",
            "no engine of this version has opened it yet",
            "'mlebench-console engine start' brings it up to date.",
        )
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


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    version = version_of(connection)
    if version > NEWEST_VERSION:
        connection.close()
        raise StateProblem(
            f"{path} was written by a newer version of this program",
            f"its schema version is {version}, this program knows {NEWEST_VERSION}",
            "Update mlebench-console, or point --state-dir at another directory.",
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


def to_json(value: DataclassInstance | Mapping[str, Any]) -> str:
    """Return a record or a mapping as JSON for a column; unlike msgspec's, this JSON allows NaN."""
    return json.dumps(asdict(value) if is_dataclass(value) else value, sort_keys=True)


@contextmanager
def _without_tables() -> Iterator[None]:
    """Keep sqlite-utils from importing libraries that it does not need here, which halves the time of a first start."""
    absent = [name for name in ("numpy", "pandas") if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # Python refuses to import them
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older or empty database to the newest version, each step in one transaction.

    A released step is never edited; a new one is appended. sqlite-utils applies the steps and records
    them in the database.
    """
    with _without_tables():
        from sqlite_utils import Database, Migrations

    steps = Migrations("mlebench-console")

    @steps(name="0001-first-schema")
    def _first_schema(database: Database) -> None:
        for statement in files("mlebench_console.state").joinpath("schema.sql").read_text().split(";"):
            if statement.strip():
                database.conn.execute(statement)
        database.conn.execute("PRAGMA user_version = 1")

    @steps(name="0002-what-an-attempt-ran-in-and-on")
    def _image_and_hardware(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN image TEXT NOT NULL DEFAULT ''")
        database.conn.execute("ALTER TABLE attempts ADD COLUMN hardware TEXT")
        database.conn.execute("PRAGMA user_version = 2")

    @steps(name="0003-ids-that-are-never-used-again")
    def _ids_for_ever(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN token TEXT NOT NULL DEFAULT ''")
        # Files of earlier attempts are named by their number.
        database.conn.execute("UPDATE attempts SET token = CAST(id AS TEXT)")
        for table in ("runs", "attempts", "submissions"):
            _count_on_for_ever(database.conn, table)
        database.conn.execute("CREATE UNIQUE INDEX attempts_by_token ON attempts (token)")
        database.conn.execute("PRAGMA user_version = 3")

    @steps(name="0004-suspicions-and-trouble-of-the-grader")
    def _suspicions_and_grading_trouble(database: Database) -> None:
        for table in ("attempts", "runs"):
            database.conn.execute(f"ALTER TABLE {table} ADD COLUMN suspected TEXT NOT NULL DEFAULT ''")
        database.conn.execute("ALTER TABLE runs ADD COLUMN grading_problem TEXT NOT NULL DEFAULT ''")
        database.conn.execute("ALTER TABLE runs ADD COLUMN grading_fails_since REAL")
        database.conn.execute("ALTER TABLE runs ADD COLUMN grading_retry_at REAL")
        database.conn.execute("PRAGMA user_version = 4")

    @steps(name="0005-limits-that-were-not-held")
    def _limits_not_held(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN not_held TEXT NOT NULL DEFAULT ''")
        database.conn.execute("PRAGMA user_version = 5")

    @steps(name="0006-priorities-of-datasets-and-how-they-are-verified")
    def _dataset_priorities(database: Database) -> None:
        database.conn.execute("ALTER TABLE datasets ADD COLUMN priority INTEGER NOT NULL DEFAULT 0")
        database.conn.execute("ALTER TABLE datasets ADD COLUMN verification TEXT NOT NULL DEFAULT ''")
        database.conn.execute("PRAGMA user_version = 6")

    @steps(name="0007-waiting-for-kaggle")
    def _waiting_for_kaggle(database: Database) -> None:
        database.conn.execute("ALTER TABLE datasets ADD COLUMN failures INTEGER NOT NULL DEFAULT 0")
        database.conn.execute("ALTER TABLE datasets ADD COLUMN failing_since REAL")
        database.conn.execute("ALTER TABLE datasets ADD COLUMN retry_at REAL")
        database.conn.execute(
            "CREATE TABLE kaggle (id INTEGER PRIMARY KEY CHECK (id = 1), unreachable_since REAL,"
            " failures INTEGER NOT NULL DEFAULT 0, retry_at REAL, problem TEXT NOT NULL DEFAULT '',"
            " accepted_at REAL) STRICT"
        )
        database.conn.execute("INSERT INTO kaggle (id) VALUES (1)")
        database.conn.execute("PRAGMA user_version = 7")

    @steps(name="0008-what-images-were-built-from")
    def _image_recipes(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN recipe TEXT NOT NULL DEFAULT ''")
        database.conn.execute("PRAGMA user_version = 8")

    @steps(name="0009-what-model-calls-have-used")
    def _model_use(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN calls_offset INTEGER NOT NULL DEFAULT 0")
        columns = ", ".join(f"{name} INTEGER NOT NULL" for name in _CALL_COUNTS)
        database.conn.execute(
            "CREATE TABLE model_use (attempt_id INTEGER NOT NULL REFERENCES attempts, provider TEXT NOT NULL,"
            f" model TEXT NOT NULL, {columns}, last_at REAL NOT NULL,"
            " PRIMARY KEY (attempt_id, provider, model)) WITHOUT ROWID, STRICT"
        )
        database.conn.execute("PRAGMA user_version = 9")

    @steps(name="0010-what-integrity-detectors-have-found")
    def _integrity(database: Database) -> None:
        database.conn.execute(
            "CREATE TABLE integrity_results (attempt_id INTEGER NOT NULL REFERENCES attempts, detector TEXT NOT NULL,"
            " layer TEXT NOT NULL, version INTEGER NOT NULL, content TEXT NOT NULL, looked_at REAL NOT NULL,"
            " findings TEXT NOT NULL, coverage TEXT NOT NULL, problem TEXT NOT NULL, model TEXT NOT NULL,"
            " usd REAL, PRIMARY KEY (attempt_id, detector)) WITHOUT ROWID, STRICT"
        )
        database.conn.execute(
            "CREATE TABLE reviews (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id INTEGER NOT NULL REFERENCES runs,"
            " finding TEXT NOT NULL, statement TEXT NOT NULL, cleared INTEGER NOT NULL, reason TEXT NOT NULL,"
            " author TEXT NOT NULL, at REAL NOT NULL) STRICT"
        )
        database.conn.execute("CREATE INDEX reviews_of_run ON reviews (run_id, id)")
        database.conn.execute("PRAGMA user_version = 10")

    @steps(name="0011-outages-of-model-providers")
    def _outages(database: Database) -> None:
        counts = ", ".join(
            f"{name} INTEGER NOT NULL DEFAULT 0" for name in ("told", "limited", "failed", "unreachable")
        )
        database.conn.execute(
            "CREATE TABLE outages (id INTEGER PRIMARY KEY AUTOINCREMENT, provider TEXT NOT NULL,"
            " since REAL NOT NULL, last_at REAL NOT NULL, answered_at REAL, until REAL,"
            f" status INTEGER NOT NULL, problem TEXT NOT NULL DEFAULT '', {counts}) STRICT"
        )
        database.conn.execute(
            "CREATE TABLE outage_calls (outage_id INTEGER NOT NULL REFERENCES outages,"
            " attempt_id INTEGER NOT NULL REFERENCES attempts, in_a_row INTEGER NOT NULL,"
            " unreachable INTEGER NOT NULL, status INTEGER NOT NULL, since REAL NOT NULL, last_at REAL NOT NULL,"
            " PRIMARY KEY (outage_id, attempt_id)) WITHOUT ROWID, STRICT"
        )
        database.conn.execute("CREATE INDEX outage_calls_by_attempt ON outage_calls (attempt_id)")
        database.conn.execute("PRAGMA user_version = 11")

    @steps(name="0012-where-attempts-are-run")
    def _placements(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN placement TEXT NOT NULL DEFAULT 'here'")
        database.conn.execute("PRAGMA user_version = 12")

    @steps(name="0013-what-attempts-have-sent-and-received")
    def _network_use(database: Database) -> None:
        database.conn.execute(
            "CREATE TABLE network_use (attempt_id INTEGER NOT NULL REFERENCES attempts, host TEXT NOT NULL,"
            " connections INTEGER NOT NULL, sent_bytes INTEGER NOT NULL, received_bytes INTEGER NOT NULL,"
            " PRIMARY KEY (attempt_id, host)) WITHOUT ROWID, STRICT"
        )
        database.conn.execute("PRAGMA user_version = 13")

    @steps(name="0014-budgets-that-runs-share")
    def _budgets(database: Database) -> None:
        database.conn.execute("ALTER TABLE runs ADD COLUMN excused INTEGER NOT NULL DEFAULT 0")
        database.conn.execute(
            "CREATE TABLE budgets (scope TEXT NOT NULL, name TEXT NOT NULL, calls INTEGER, tokens INTEGER, usd REAL,"
            " told REAL NOT NULL DEFAULT 0, PRIMARY KEY (scope, name)) WITHOUT ROWID, STRICT"
        )
        database.conn.execute(
            "CREATE TABLE allowances (attempt_id INTEGER PRIMARY KEY REFERENCES attempts, calls INTEGER NOT NULL,"
            " tokens INTEGER NOT NULL, usd REAL NOT NULL) STRICT"
        )
        database.conn.execute("PRAGMA user_version = 14")

    @steps(name="0015-what-batch-systems-say")
    def _jobs(database: Database) -> None:
        for name in ("job", "node", "waits_for"):
            database.conn.execute(f"ALTER TABLE attempts ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")
        database.conn.execute("PRAGMA user_version = 15")

    @steps(name="0016-prices-of-model-calls")
    def _tiers(database: Database) -> None:
        database.conn.execute("ALTER TABLE model_use RENAME TO model_use_before")
        columns = [
            *(
                "attempt_id INTEGER NOT NULL REFERENCES attempts",
                "provider TEXT NOT NULL",
                "model TEXT NOT NULL",
            ),
            *("prompt_above INTEGER NOT NULL DEFAULT 0", "service TEXT NOT NULL DEFAULT ''"),
            *(f"{name} INTEGER NOT NULL" for name in _CALL_COUNTS),
            *("charged REAL NOT NULL DEFAULT 0", "last_at REAL NOT NULL"),
        ]
        database.conn.execute(
            f"CREATE TABLE model_use ({', '.join(columns)},"
            " PRIMARY KEY (attempt_id, provider, model, prompt_above, service)) WITHOUT ROWID, STRICT"
        )
        kept = ", ".join(("attempt_id", "provider", "model", *_CALL_COUNTS, "last_at"))
        database.conn.execute(f"INSERT INTO model_use ({kept}) SELECT {kept} FROM model_use_before")
        database.conn.execute("DROP TABLE model_use_before")
        database.conn.execute("PRAGMA user_version = 16")

    @steps(name="0017-notes-and-tags")
    def _notes_and_tags(database: Database) -> None:
        database.conn.execute("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT ''")
        for table in ("runs", "sweeps"):
            database.conn.execute(f"ALTER TABLE {table} ADD COLUMN noted_by TEXT NOT NULL DEFAULT ''")
            database.conn.execute(f"ALTER TABLE {table} ADD COLUMN noted_at REAL")
            database.conn.execute(f"ALTER TABLE {table} ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'")
        database.conn.execute("PRAGMA user_version = 17")

    @steps(name="0018-requests-that-wait")
    def _requests_that_wait(database: Database) -> None:
        database.conn.execute("ALTER TABLE requests ADD COLUMN not_before REAL")
        database.conn.execute("PRAGMA user_version = 18")

    @steps(name="0019-when-batch-systems-may-start-jobs")
    def _estimates(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN starts_at REAL")
        database.conn.execute("ALTER TABLE attempts ADD COLUMN job_priority INTEGER")
        database.conn.execute("PRAGMA user_version = 19")

    @steps(name="0020-which-data-are-the-demos")
    def _demo_data(database: Database) -> None:
        for table in ("datasets", "runs"):
            database.conn.execute(f"ALTER TABLE {table} ADD COLUMN demo INTEGER NOT NULL DEFAULT 0")
        database.conn.execute(
            "UPDATE datasets SET demo = 1 WHERE CASE WHEN source LIKE '{%'"
            " THEN json_extract(source, '$.source') ELSE source END = 'demo'"
        )
        database.conn.execute(
            "UPDATE runs SET demo = 1 WHERE sweep_id IN"
            " (SELECT id FROM sweeps WHERE json_extract(spec, '$.demo') = 1)"
        )
        database.conn.execute("PRAGMA user_version = 20")

    @steps(name="0021-causes-of-failures-and-who-knows-of-them")
    def _causes(database: Database) -> None:
        for table in ("attempts", "runs"):
            database.conn.execute(f"ALTER TABLE {table} ADD COLUMN cause TEXT NOT NULL DEFAULT ''")
        database.conn.create_function("cause_of", 6, _cause_of_row, deterministic=True)
        told = "attempts.failure_class, attempts.failure_text, attempts.suspected, evidence"
        database.conn.execute(
            f"UPDATE attempts SET cause = (SELECT cause_of({told}, sweep_id, competition_id) FROM runs"
            " WHERE runs.id = run_id) WHERE failure_class IS NOT NULL"
        )
        database.conn.execute(
            "UPDATE runs SET cause = COALESCE((SELECT attempts.cause FROM attempts WHERE run_id = runs.id"
            " AND number = runs.attempts), '') WHERE failure_class IS NOT NULL"
        )
        database.conn.execute(
            "CREATE TABLE acknowledgements (key TEXT PRIMARY KEY, text TEXT NOT NULL, author TEXT NOT NULL,"
            " at REAL NOT NULL, reason TEXT NOT NULL, until REAL) WITHOUT ROWID, STRICT"
        )
        database.conn.execute("PRAGMA user_version = 21")

    # Needed to recreate a table that others refer to; it has no effect within a transaction.
    connection.execute("PRAGMA foreign_keys = OFF")
    steps.apply(Database(connection, execute_plugins=False))
    connection.execute("PRAGMA foreign_keys = ON")


def _cause_of_row(kind: str, text: str, suspected: str, evidence: str, *names: str) -> str:
    return cause_of(FailureClass(kind), text, suspected=suspected, evidence=evidence, names=names)


def _count_on_for_ever(connection: sqlite3.Connection, table: str) -> None:
    """Recreate a table with AUTOINCREMENT, so that ids of removed rows are never reused."""
    parts = connection.execute(
        "SELECT type, sql FROM sqlite_schema WHERE tbl_name = ? AND sql IS NOT NULL", (table,)
    ).fetchall()
    (made_by,) = (sql for kind, sql in parts if kind == "table")
    _, _, columns = made_by.partition("(")
    counting = columns.replace("INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT", 1)
    connection.execute(f"CREATE TABLE {table}_anew ({counting}")
    connection.execute(f"INSERT INTO {table}_anew SELECT * FROM {table}")
    connection.execute(f"DROP TABLE {table}")
    connection.execute(f"ALTER TABLE {table}_anew RENAME TO {table}")
    for index in (sql for kind, sql in parts if kind == "index"):
        connection.execute(index)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of a database's schema; 0 for an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


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
    text = str(error)
    if "locked" in text or "busy" in text:
        return UnusableState(
            f"{path} is locked",
            "another program holds it",
            "See who has it open with 'fuser' and try again.",
        )
    if "malformed" in text or "not a database" in text:
        return UnusableState(
            f"{path} is damaged",
            text,
            "Move it away and restore it from a backup; run folders are not affected.",
        )
    if "full" in text:
        return UnusableState(f"{path} can't be written", "the disk is full", "Free some space and try again.")
    if "readonly" in text or "unable to open" in text:
        return UnusableState(
            f"{path} can't be opened", text, "Check the rights on the file and its directory."
        )
    return UnusableState(f"{path} can't be used", text)
