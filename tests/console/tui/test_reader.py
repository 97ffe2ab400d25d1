"""The state is watched from one thread: changes come by themselves, and so does every recovery."""

from __future__ import annotations

import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from mlebench_console.console.tui import reader as reader_module
from mlebench_console.console.tui.reader import Reader, StateCondition, StateHealth
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import Problem, StateProblem
from mlebench_console.state import runs, sweeps
from mlebench_console.state.database import DATABASE_NAME, Database
from mlebench_console.state.lifecycle import SweepState
from tests.console import worlds
from tests.console.world import NOW

PATIENCE = 30.0


class Watched:
    """A reader whose deliveries can be waited for."""

    def __init__(self, places: Places) -> None:
        self.conditions: queue.SimpleQueue[StateCondition] = queue.SimpleQueue()
        self.engines: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.reader = Reader(
            places,
            on_condition=self.conditions.put,
            on_engine=self.engines.put,
        )
        self.reader.start()

    def watch(self, query: Callable[[Database], Any]) -> None:
        self.reader.watch("question", query, self.answers.put)

    def condition(self, wanted: StateHealth) -> StateCondition:
        found = self.conditions.get(timeout=PATIENCE)
        while found.health is not wanted:
            found = self.conditions.get(timeout=PATIENCE)
        return found

    def answer(self, wanted: Any) -> None:
        while self.answers.get(timeout=PATIENCE) != wanted:
            pass


@pytest.fixture
def watched(places: Places, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(reader_module, "LOOK_EVERY_SECONDS", 0.02)
    monkeypatch.setattr(reader_module, "TROUBLE_PASSES_SECONDS", 0.05)
    made = Watched(places)
    yield made
    made.reader.stop()


def names_and_states(database: Database) -> list[tuple[str, str]]:
    return [(sweep.id, sweep.state.value) for sweep in sweeps.all_sweeps(database)]


def test_a_change_is_delivered_and_silence_is_not(places: Places, watched: Watched) -> None:
    watched.condition(StateHealth.ABSENT)
    world = worlds.paused(places)
    watched.watch(names_and_states)
    watched.condition(StateHealth.GOOD)
    watched.answer([("dummy-1", "paused")])
    sweeps.set_state(world.database, "dummy-1", SweepState.ACTIVE, now=NOW)
    watched.answer([("dummy-1", "active")])
    with pytest.raises(queue.Empty):
        watched.answers.get(timeout=0.3)
    world.database.close()


def test_a_state_that_is_removed_and_made_anew_is_read_anew(places: Places, watched: Watched) -> None:
    worlds.paused(places).database.close()
    watched.watch(names_and_states)
    watched.answer([("dummy-1", "paused")])
    shutil.rmtree(places.state_dir)
    watched.condition(StateHealth.ABSENT)
    world = worlds.open_world(places)  # not copied: the reader is looking
    world.sweep("another-1", worlds.DEMO)
    world.database.close()
    watched.answer([("another-1", "active")])


def test_a_damaged_state_is_told_and_a_mended_one_read(places: Places, watched: Watched) -> None:
    worlds.paused(places).database.close()
    watched.condition(StateHealth.GOOD)
    with closing(sqlite3.connect(places.state_dir / DATABASE_NAME)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    good = (places.state_dir / DATABASE_NAME).read_bytes()
    (places.state_dir / "new").write_bytes(b"this is no database" * 1000)
    # SQLite would read a page that is still in the log from there, whatever the file itself holds.
    (places.state_dir / f"{DATABASE_NAME}-wal").unlink(missing_ok=True)
    (places.state_dir / "new").replace(places.state_dir / DATABASE_NAME)
    assert watched.condition(StateHealth.BAD).problem is not None
    (places.state_dir / "new").write_bytes(good)
    (places.state_dir / "new").replace(places.state_dir / DATABASE_NAME)
    watched.condition(StateHealth.GOOD)


def test_a_state_that_is_just_being_made_is_no_trouble(
    places: Places, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "TROUBLE_PASSES_SECONDS", PATIENCE)
    watched.condition(StateHealth.ABSENT)
    places.state_dir.mkdir(parents=True)
    (places.state_dir / DATABASE_NAME).touch()
    give_up = time.monotonic() + PATIENCE
    while watched.reader._trouble_since is None:
        assert time.monotonic() < give_up, "the empty state was never looked at"
        time.sleep(0.01)
    worlds.paused(places).database.close()
    assert watched.conditions.get(timeout=PATIENCE).health is StateHealth.GOOD


def test_a_newer_state_is_told(places: Places, watched: Watched) -> None:
    elsewhere = replace(places, state_dir=places.state_dir.with_name("elsewhere"))
    worlds.paused(elsewhere).database.close()
    connection = sqlite3.connect(elsewhere.state_dir / DATABASE_NAME)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    elsewhere.state_dir.rename(places.state_dir)
    assert "newer" in str(watched.condition(StateHealth.BAD).problem)


def test_a_query_that_fails_concerns_itself_alone_and_is_asked_again_after_a_change(
    places: Places, watched: Watched
) -> None:
    world = worlds.paused(places)
    failures: queue.SimpleQueue[Problem] = queue.SimpleQueue()
    broken = threading.Event()
    broken.set()

    def query(database: Database) -> str:
        if broken.is_set():
            raise RuntimeError("a bug")
        return "well again"

    watched.reader.watch("broken", query, watched.answers.put, failures.put)
    watched.reader.watch("missing", lambda database: runs.get(database, 99999), lambda _: None, failures.put)
    watched.watch(names_and_states)
    told = {str(failures.get(timeout=PATIENCE)).splitlines()[0] for _ in range(2)}
    assert any("a bug" in text for text in told)
    assert "there is no run 99999" in told
    watched.answer([("dummy-1", "paused")])
    broken.clear()
    sweeps.set_state(world.database, "dummy-1", SweepState.ACTIVE, now=NOW)
    watched.answer("well again")
    watched.reader.stop()
    found = [watched.conditions.get_nowait().health for _ in range(watched.conditions.qsize())]
    assert StateHealth.BAD not in found
    world.database.close()


def test_a_read_that_hangs_is_seen_and_holds_nobody(places: Places, watched: Watched) -> None:
    worlds.paused(places).database.close()
    entered, hang = threading.Event(), threading.Event()

    def query(database: Database) -> None:
        entered.set()
        hang.wait(PATIENCE)

    watched.watch(query)
    assert entered.wait(PATIENCE)
    assert watched.reader.stalled_for() > 0
    hang.set()
    watched.condition(StateHealth.GOOD)


def test_an_engine_status_that_cannot_be_read_is_no_end(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_places: Places) -> None:
        raise StateProblem("the status can't be read")

    monkeypatch.setattr("mlebench_console.engine.control.status", refuse)
    watched = Watched(places)
    assert watched.engines.get(timeout=PATIENCE) is None
    watched.reader.stop()


def test_conditions_are_compared_by_what_they_tell() -> None:
    assert StateCondition(StateHealth.BAD, Problem("a", "b")).looks_like(
        StateCondition(StateHealth.BAD, Problem("a", "b"))
    )
    assert not StateCondition(StateHealth.BAD, Problem("a")).looks_like(
        StateCondition(StateHealth.BAD, Problem("c"))
    )
