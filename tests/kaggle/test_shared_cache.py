"""Engines of several users on one data directory do the work once, wait for each other, and outlive each other."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import PrepareDatasets
from mlebench_console.state import database, datasets
from mlebench_console.state.records import Dataset, DatasetState, PreparationOptions
from tests.conformance.trees import VECTORS, Vector, describe
from tests.engine.harness import Harness, eventually
from tests.kaggle.loopback import Fault, Loopback

NAMES = ("spaceship-titanic", "spooky-author-identification", "tweet-sentiment-extraction")
ONE = NAMES[0]

Make = Callable[[str], Harness]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def engine_of(tmp_path: Path, shared: Path, loopback: Loopback) -> Iterator[Make]:
    """An engine with a state of its own on the shared data, for each user."""
    made: list[Harness] = []

    def make(user: str) -> Harness:
        places = Places(tmp_path / f"{user}.toml", shared, tmp_path / user)
        made.append(Harness(places, tmp_path / "agents"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def ask(engine: Harness, *names: str) -> None:
    engine.start()
    engine.ask(PrepareDatasets(competition_ids=tuple(names), options=PreparationOptions(verify=False)))


def known(engine: Harness) -> dict[str, Dataset]:
    state = database.open_for_reading(engine.places.state_dir)
    try:
        return {dataset.competition_id: dataset for dataset in datasets.all_datasets(state)}
    finally:
        state.close()


def all_prepared(engine: Harness, *names: str) -> None:
    eventually(lambda: all(known(engine)[name].state is DatasetState.PREPARED for name in names))


def is_exact(shared: Path, name: str) -> bool:
    expected = Vector(VECTORS / name).expected
    found = describe(shared / name / "prepared", expected)
    return all(found[side] == expected[side] for side in ("public", "private"))


def test_two_engines_do_the_work_once_and_both_have_it(
    loopback: Loopback, engine_of: Make, shared: Path
) -> None:
    for name in NAMES:
        loopback.add(name)
    ours, theirs = engine_of("ours"), engine_of("theirs")
    ask(ours, *NAMES)
    ask(theirs, *reversed(NAMES))
    for engine in (ours, theirs):
        all_prepared(engine, *NAMES)
    for name in NAMES:
        assert is_exact(shared, name)
        # Each may look once whether it may have the data; one of them brings them.
        assert sum(asked.what == "storage" and asked.competition == name for asked in loopback.asked) <= 3
        left = {path.name for path in (shared / name).iterdir()}
        assert left == {"prepared", f"{name}.zip", f".{name}.zip.md5.json"}


def test_who_holds_a_dataset_is_told_and_taken_over_from_when_killed(
    loopback: Loopback, engine_of: Make, shared: Path
) -> None:
    shelf = loopback.add(ONE, faults=[Fault(), Fault(stall=True)])  # the first answers the check
    ours, theirs = engine_of("ours"), engine_of("theirs")
    ask(ours, ONE)
    eventually((shared / ONE / f"{ONE}.zip.partial").exists)
    ask(theirs, ONE)
    eventually(lambda: "another process works on it" in known(theirs)[ONE].problem_text)
    assert known(theirs)[ONE].state is DatasetState.WAITING
    assert not shelf.faults
    ours.kill_engine()
    all_prepared(theirs, ONE)
    assert is_exact(shared, ONE)
    ours.start()
    all_prepared(ours, ONE)


@pytest.mark.parametrize(("mode", "wanted"), [(0o755, 0o4), (0o2770, 0o6)], ids=["own", "a group's"])
def test_what_is_made_can_be_read_by_the_group_and_gone_on_with_where_it_may_write(
    loopback: Loopback, engine_of: Make, shared: Path, mode: int, wanted: int
) -> None:
    shared.chmod(mode)
    loopback.add(ONE)
    engine = engine_of("ours")
    before = os.umask(0o077)
    try:
        ask(engine, ONE)
    finally:
        os.umask(before)
    all_prepared(engine, ONE)
    for path in (shared / ONE, *(shared / ONE).rglob("*")):
        rights = (path.stat().st_mode & stat.S_IRWXG) >> 3
        # What is prepared is only read; what is beside it others may go on with.
        needed = wanted & 0o4 if path.is_relative_to(shared / ONE / "prepared") else wanted
        assert rights & needed == needed, (path, oct(path.stat().st_mode))
        assert not path.is_dir() or rights & 0o1, (path, oct(path.stat().st_mode))
