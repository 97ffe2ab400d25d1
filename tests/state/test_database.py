from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from mlebench_console.foundation.problems import StateProblem
from mlebench_console.state import database as state_database
from mlebench_console.state import events, requests, runs, submissions, sweeps, transitions
from mlebench_console.state.database import DATABASE_NAME, SCHEMA_VERSION, Database, UnusableState
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.records import RequestState
from mlebench_console.state.submissions import Snapshot
from tests.state.worlds import create_sweep


def test_a_reader_sees_by_one_number_that_something_changed(swept: Database, tmp_path: Path) -> None:
    reader = state_database.open_for_reading(tmp_path)
    before = reader.data_version()
    assert reader.data_version() == before
    sweeps.set_concurrency(swept, "dummy-1", 5, now=2)
    assert reader.data_version() != before
    reader.close()


def test_a_reader_cannot_write(swept: Database, tmp_path: Path) -> None:
    reader = state_database.open_for_reading(tmp_path)
    with pytest.raises(StateProblem, match="can't be"):
        sweeps.set_concurrency(reader, "dummy-1", 5, now=2)
    reader.close()


def test_a_write_outside_a_transaction_is_a_mistake_of_ours(database: Database) -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        database.execute("DELETE FROM runs")


def test_a_console_may_file_requests_and_the_engine_answers_once(swept: Database, tmp_path: Path) -> None:
    console = state_database.open_for_requests(tmp_path)
    number = requests.file(
        console, "sweep.pause", {"sweep_id": "dummy-1"}, text="pausing it", author="console", now=2
    )
    assert [request.id for request in requests.open_requests(swept, now=100)] == [number]
    requests.answer(swept, number, RequestState.DONE, {"text": "paused"}, now=3)
    requests.answer(swept, number, RequestState.REFUSED, {"what": "twice"}, now=4)
    answered = requests.get(console, number)
    assert answered is not None
    assert (answered.state, answered.answer) == (RequestState.DONE, {"text": "paused"})
    assert requests.open_requests(swept, now=100) == []
    console.close()


def test_opening_twice_creates_the_tables_once_and_keeps_everything(tmp_path: Path) -> None:
    first = state_database.open_for_writing(tmp_path)
    created = create_sweep(first)
    first.close()
    second = state_database.open_for_writing(tmp_path)
    assert sweeps.all_sweeps(second) == [created]
    second.close()


def test_ids_of_what_was_removed_are_never_given_again(tmp_path: Path) -> None:
    state = state_database.open_for_writing(tmp_path)

    def ids() -> set[tuple[str, int]]:
        create_sweep(state)
        run = runs.of_all_sweeps(state)[0]
        attempt = transitions.launch(state, run.id, directory="d", runtime="plain", now=1.0)
        submissions.add(state, attempt.id, Snapshot(1, 1.0, 1.0, "0", 1, "p"))
        (taken,) = submissions.of_attempt(state, attempt.id)
        given = {("run", each.id) for each in runs.of_all_sweeps(state)}
        given |= {("attempt", attempt.id), ("submission", taken.id)}
        transitions.stopped(state, run.id, by="me", now=1.0)
        sweeps.remove(state, "dummy-1")
        return given

    assert not ids() & ids()
    state.close()


def test_no_state_yet_is_told_with_the_next_step(tmp_path: Path) -> None:
    assert not state_database.exists(tmp_path)
    with pytest.raises(StateProblem, match="no state in") as caught:
        state_database.open_for_reading(tmp_path)
    assert "engine start" in caught.value.next_step


@pytest.mark.parametrize(
    "opening",
    [state_database.open_for_writing, state_database.open_for_reading, state_database.open_for_requests],
)
@pytest.mark.parametrize(
    ("version", "written_by", "next_step"),
    [
        (SCHEMA_VERSION - 1, "an older version", "Use that version"),
        (SCHEMA_VERSION + 1, "a newer version", "Update mlebench-console"),
    ],
)
def test_a_state_of_another_version_is_refused_and_left_alone(
    tmp_path: Path, opening: Callable[[Path], Database], version: int, written_by: str, next_step: str
) -> None:
    state_database.open_for_writing(tmp_path).close()
    with sqlite3.connect(tmp_path / DATABASE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    content = (tmp_path / DATABASE_NAME).read_bytes()
    with pytest.raises(StateProblem, match=f"written by {written_by}") as caught:
        opening(tmp_path)
    assert caught.value.next_step.startswith(next_step)
    assert (tmp_path / DATABASE_NAME).read_bytes() == content


def test_an_empty_file_is_no_state_yet_and_the_engine_makes_one_of_it(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).touch()
    with pytest.raises(StateProblem, match="no tables yet") as caught:
        state_database.open_for_reading(tmp_path)
    assert "engine start" in caught.value.next_step
    state_database.open_for_writing(tmp_path).close()
    state_database.open_for_reading(tmp_path).close()


def test_tables_are_created_all_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(state_database, "SCHEMA_VERSION", "no number")
        with pytest.raises(StateProblem):
            state_database.open_for_writing(tmp_path)
    state_database.open_for_writing(tmp_path).close()


def test_a_damaged_state_is_named_and_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME
    path.write_bytes(b"this is not a database, " * 400)
    content = path.read_bytes()
    with pytest.raises(StateProblem, match="damaged"):
        state_database.open_for_writing(tmp_path)
    assert path.read_bytes() == content


def test_a_locked_state_is_told_as_locked(
    swept: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_database, "BUSY_TIMEOUT_SECONDS", 0.01)
    other = state_database.open_for_requests(tmp_path)
    with swept.transaction(), pytest.raises(StateProblem, match="is locked"):
        requests.file(other, "sweep.pause", {}, text="pausing it", author="console", now=2)
    other.close()


def test_who_must_not_stand_still_is_told_of_a_locked_state_at_once(
    swept: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else this test runs into its time limit."""
    monkeypatch.setattr(state_database, "BUSY_TIMEOUT_SECONDS", 3600)
    other = state_database.open_for_requests(tmp_path)
    other.wait_at_most(0.01)
    with swept.transaction(), pytest.raises(StateProblem, match="is locked: another program holds it"):
        requests.file(other, "sweep.pause", {}, text="pausing it", author="console", now=2)
    other.close()


def test_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_database, "file_system_of", lambda path: "nfs4")
    with pytest.raises(StateProblem, match="network file system"):
        state_database.open_for_writing(tmp_path)
    assert not (tmp_path / DATABASE_NAME).exists()


def test_the_file_system_of_a_path_that_is_still_to_be_made_is_found(tmp_path: Path) -> None:
    assert state_database.file_system_of(tmp_path / "a" / "b") == state_database.file_system_of(tmp_path)


def test_what_fails_within_a_transaction_leaves_no_trace(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.transaction():
        create_sweep(database)
        _ = 1 / 0
    assert sweeps.all_sweeps(database) == []


def test_a_full_disk_is_told_as_such_though_the_database_rolls_back_by_itself(swept: Database) -> None:
    connection = swept._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute("PRAGMA cache_size = 5")
    connection.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        with swept.transaction():
            for _ in range(100):
                events.append(swept, 1.0, EventKind.ENGINE_STARTED, "x" * 4000)

    for _ in range(2):
        with pytest.raises(UnusableState, match="the disk is full"):
            fill()
    connection.execute("PRAGMA max_page_count = 100000")
    fill()
    assert len(events.newest(swept)) >= 100


def test_a_commit_that_fails_leaves_no_transaction_open(swept: Database, tmp_path: Path) -> None:
    with pytest.raises(sqlite3.IntegrityError), swept.transaction():
        swept.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        swept.execute("CREATE TABLE of_it (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
        swept.execute("INSERT INTO of_it VALUES (1)")
    sweeps.set_concurrency(swept, "dummy-1", 7, now=2)
    reader = state_database.open_for_reading(tmp_path)
    assert sweeps.get(reader, "dummy-1").concurrency == 7
    reader.close()
