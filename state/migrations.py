"""The schema's history. A step that has been released is never edited; a new one is appended."""

from __future__ import annotations

import sqlite3
from importlib.resources import files

NEWEST_VERSION = 2


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older or empty database to the newest version, each step in one transaction."""
    # Imported here: sqlite-utils brings pandas along where that is installed, and only a database
    # that really has to change should pay for it.
    from sqlite_utils import Database, Migrations

    steps = Migrations("mlebench-console")

    @steps(name="0001-first-schema")
    def _first_schema(database: Database) -> None:
        for statement in files("state").joinpath("schema.sql").read_text().split(";"):
            if statement.strip():
                database.conn.execute(statement)
        database.conn.execute("PRAGMA user_version = 1")

    @steps(name="0002-what-an-attempt-ran-in-and-on")
    def _image_and_hardware(database: Database) -> None:
        database.conn.execute("ALTER TABLE attempts ADD COLUMN image TEXT NOT NULL DEFAULT ''")
        database.conn.execute("ALTER TABLE attempts ADD COLUMN hardware TEXT")
        database.conn.execute("PRAGMA user_version = 2")

    steps.apply(Database(connection, execute_plugins=False))


def version_of(connection: sqlite3.Connection) -> int:
    """Read which version of the schema a database has; 0 is an empty one."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
