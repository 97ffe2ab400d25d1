from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.state import database as state_database
from mlebench_console.state.database import Database
from tests.state.worlds import create_sweep


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = state_database.open_for_writing(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def swept(database: Database) -> Database:
    create_sweep(database)
    return database
