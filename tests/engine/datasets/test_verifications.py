"""Verifying many datasets goes a few at a time, can be stopped, and outlives the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from mlebench_console.engine.datasets.plans import record_prepared
from mlebench_console.engine.datasets.queue import VERIFY, Verifications
from mlebench_console.engine.datasets.records import DatasetRecords
from mlebench_console.engine.datasets.steps import CHECKSUM, STEPS
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.foundation.workers import Ended, Progressed, WorkerPool
from mlebench_console.state import datasets
from mlebench_console.state.database import Database, open_for_writing
from mlebench_console.state.records import Dataset, DatasetStep, StepState, VerificationKind

ONE, TWO, THREE = "leaf-classification", "spaceship-titanic", "spooky-author-identification"


class Pool:
    """Workers that do nothing by themselves."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.cancelled: list[int] = []

    def start(self, function: str, arguments: Mapping[str, str]) -> int:
        assert function == VERIFY
        assert arguments["kind"] == VerificationKind.DEEP
        self.started.append(arguments["competition_id"])
        return len(self.started)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "state").mkdir()
    opened = open_for_writing(tmp_path / "state")
    for name in (ONE, TWO, THREE):
        record_prepared(opened, name, "v1", tmp_path / "data", now=0)
    yield opened
    opened.close()


@pytest.fixture
def pool() -> Pool:
    return Pool()


def made(database: Database, pool: Pool) -> Verifications:
    clock = SystemClock()
    workers = cast(WorkerPool, pool)
    return Verifications(database, workers, DatasetRecords(database, clock), clock, data_dir=Path("/data"))


def dataset(database: Database, name: str) -> Dataset:
    found = datasets.find(database, name, "v1")
    assert found is not None
    return found


def step(database: Database, name: str) -> DatasetStep:
    return next(one for one in datasets.steps(database, name, "v1") if one.name == CHECKSUM)


def ask(verifications: Verifications, database: Database, *names: str) -> None:
    for name in names:
        verifications.ask(dataset(database, name), VerificationKind.DEEP)


def well(number: int) -> Ended:
    return Ended(number, value={"sums": [{}, {}, {}], "files": 0, "differs": ""})


def test_no_more_are_read_at_once_than_there_is_room_for(database: Database, pool: Pool) -> None:
    verifications = made(database, pool)
    ask(verifications, database, ONE, TWO, THREE, ONE)
    verifications.step(2)
    assert pool.started == [ONE, TWO]
    assert verifications.take_event(Progressed(1, CHECKSUM, "train.csv", 5, 10))
    reading = step(database, ONE)
    assert (reading.state, reading.done, reading.total, reading.note) == (
        StepState.WORKING,
        5,
        10,
        "train.csv",
    )
    assert verifications.take_event(well(1))
    assert step(database, ONE).note == "3 tables are as expected"
    verifications.step(2)
    assert pool.started == [ONE, TWO, THREE]
    assert not verifications.take_event(well(7))


def test_a_restart_takes_up_what_was_asked_for_and_nothing_else(database: Database, pool: Pool) -> None:
    former = made(database, Pool())
    ask(former, database, TWO, THREE)
    former.step(1)
    former.take_event(Progressed(1, CHECKSUM, "train.csv", 5, 10))
    again = made(database, pool)
    again.recover()
    again.step(5)
    assert sorted(pool.started) == [TWO, THREE]


def test_what_waits_and_what_is_in_hand_can_be_stopped(database: Database, pool: Pool) -> None:
    verifications = made(database, pool)
    ask(verifications, database, ONE, TWO)
    verifications.step(1)
    for name in (ONE, TWO):
        verifications.stop(dataset(database, name))
    assert pool.cancelled == [1]
    died = EnvironmentProblem("the task's process died", "SIGKILL")
    assert verifications.take_event(Ended(1, problem=died))
    for name in (ONE, TWO):
        assert step(database, name).note == "not verified: stopped"
        assert dataset(database, name).problem_text == ""
        assert not verifications.knows(dataset(database, name))


def test_a_killed_worker_costs_another_try_and_nothing_more(database: Database, pool: Pool) -> None:
    verifications = made(database, pool)
    ask(verifications, database, ONE)
    verifications.step(1)
    killed = EnvironmentProblem("a worker process was killed")
    assert verifications.take_event(Ended(1, problem=killed, lost=True))
    verifications.step(1)
    assert pool.started == [ONE, ONE]
    assert dataset(database, ONE).problem_text == ""


def test_what_was_found_prepared_says_so_of_every_step(database: Database) -> None:
    found = datasets.steps(database, ONE, "v1")
    assert [one.name for one in found] == list(STEPS)
    assert {(one.state, one.note) for one in found} == {(StepState.SKIPPED, "was found prepared")}
