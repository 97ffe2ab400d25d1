"""Engines for tests, over one dataset that is prepared once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.state import database
from mlebench_console.state.database import Database
from tests.engine.harness import Harness, prepare_data


@pytest.fixture(scope="session")
def prepared_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory in which one competition is prepared; tests only read it."""
    folder = tmp_path_factory.mktemp("data")
    prepare_data(folder)
    return folder


@pytest.fixture(scope="session")
def empty_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state without anything in it."""
    folder = tmp_path_factory.mktemp("empty")
    database.open_for_writing(folder).close()
    return folder / database.DATABASE_NAME


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Database]:
    """An empty state, open for writing."""
    opened = database.open_for_writing(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def harness(tmp_path: Path, prepared_data: Path, empty_state: Path) -> Iterator[Harness]:
    """An engine that is not started yet, and is gone when the test is over."""
    places = Places(tmp_path / "config.toml", prepared_data, tmp_path / "state")
    made = Harness(places, tmp_path / "agents", empty_state)
    yield made
    made.close()
