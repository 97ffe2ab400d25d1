"""A sweep is removed only when it is dead and holds nothing that counts, whole, and through any kill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import RemoveSweep
from mlebench_console.engine.sweeps.removal import LEAVING, SweepRemoval, loss_of, wait_for_removal
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.state import database, events, experiments, runs, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome
from mlebench_console.state.usage.samples import Samples
from tests.engine.scoreboard.worlds import SPEC, fail, finish, start, sweep


@dataclass
class Place:
    places: Places
    state: Database
    samples: Samples
    removal: SweepRemoval

    def remove(self, sweep_id: str, **more: Any) -> None:
        with self.state.transaction():
            self.removal.remove(RemoveSweep(sweep_id=sweep_id, **more), "me@here")

    def files(self, sweep_id: str) -> Path:
        (attempt,) = runs.attempts_of_sweep(self.state, sweep_id)
        folder = self.places.state_dir / attempt.directory
        (folder / "code" / "closed").mkdir(parents=True)
        (folder / "run.log").write_text("hello")
        (folder / "code" / "closed" / "x").write_text("x")
        (folder / "code" / "link").symlink_to("/etc/passwd")
        (folder / "code" / "closed").chmod(0)
        return folder

    def step_until_gone(self) -> None:
        for _ in range(1000):
            self.removal.step()
            if not list((self.places.state_dir / LEAVING).iterdir()):
                return
        raise AssertionError("it is still there")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    places = Places(tmp_path / "config.toml", tmp_path / "data", tmp_path / "state")
    places.state_dir.mkdir()
    state = database.open_for_writing(places.state_dir)
    samples = Samples(places.state_dir, writable=True)
    errors: list[BaseException | None] = []
    yield Place(
        places, state, samples, SweepRemoval(state, samples, places, lambda _, error: errors.append(error))
    )
    assert errors == []
    samples.close()
    state.close()
    for closed in tmp_path.rglob("closed"):
        closed.chmod(0o700)  # so that who is not root can remove the test's folder


def test_a_removed_sweep_leaves_nothing_but_the_event_that_says_so(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    (attempt,) = runs.attempts(place.state, run.id)
    place.samples.add(attempt.id, [UsageSample(1.0, 1.0, 1, 1, 1)])
    (kept,) = sweep(place.state, "kept", SPEC)
    fail(place.state, kept)
    place.files("old")
    place.files("kept")
    place.remove("old")
    place.step_until_gone()
    assert [known.id for known in sweeps.all_sweeps(place.state)] == ["kept"]
    assert [path.name for path in place.places.runs_dir.iterdir()] == ["kept"]
    assert [event.kind for event in events.newest(place.state, run_id=run.id)] == []
    assert place.samples.of_attempt(attempt.id) == []
    told = events.newest(place.state)[0]
    assert told.kind == "sweep.removed" and "old" in told.text and "me@here" in told.text
    assert [run.failure_text for run in runs.of_sweep(place.state, "kept")] == ["exit code 1"]


def test_a_sweep_that_comes_after_has_nothing_of_the_removed_one(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    finish(place.state, run, Outcome.GOLD, score=0.1)
    place.remove("old", with_results=True)
    (again,) = sweep(place.state, "old", SPEC)
    assert again.attempts == 0
    assert runs.attempts(place.state, again.id) == []
    assert loss_of(place.state, "old").results == 0


def test_a_live_sweep_is_not_removed(place: Place) -> None:
    (run,) = sweep(place.state, "live", SPEC)
    start(place.state, run)
    with pytest.raises(UsageProblem, match="1 of its runs are live"):
        place.remove("live", with_results=True)
    assert sweeps.find(place.state, "live") is not None


@pytest.mark.parametrize("how", ["graded", "part of a row"])
def test_results_are_removed_only_when_it_is_said(place: Place, how: str) -> None:
    (run,) = sweep(place.state, "good", SPEC)
    if how == "graded":
        finish(place.state, run, Outcome.BRONZE, score=0.1)
    else:
        fail(place.state, run)
        experiments.assign(place.state, "row", "good", now=1.0)
    folder = place.files("good")
    with pytest.raises(UsageProblem, match="has results") as told:
        place.remove("good")
    assert ("1 result, 1 with medals" if how == "graded" else "its part in row") in str(told.value)
    assert (folder / "run.log").exists()
    place.remove("good", with_results=True)
    assert sweeps.find(place.state, "good") is None


def test_a_kill_before_the_removal_was_decided_gives_the_files_back(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    folder = place.files("old")
    with pytest.raises(KeyboardInterrupt), place.state.transaction():
        place.removal.remove(RemoveSweep(sweep_id="old"), "me")
        assert not folder.exists()
        raise KeyboardInterrupt
    again = SweepRemoval(place.state, place.samples, place.places, lambda *_: None)
    again.step()
    assert (folder / "run.log").read_text() == "hello"
    assert [one.state for one in runs.of_sweep(place.state, "old")] == ["failed"]


def test_files_of_a_removed_sweep_never_come_to_a_later_one_of_its_name(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    place.files("old")
    place.remove("old")
    sweep(place.state, "old", SPEC)  # its runs wait for a slot, so that it has no files of its own yet
    place.step_until_gone()
    assert not place.places.runs_dir.exists() or not list(place.places.runs_dir.iterdir())


def test_a_removal_that_was_not_decided_gives_back_what_the_sweep_has_gone_on_without(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    folder = place.files("old")
    with pytest.raises(KeyboardInterrupt), place.state.transaction():
        place.removal.remove(RemoveSweep(sweep_id="old"), "me")
        raise KeyboardInterrupt
    transitions.requeued(place.state, run.id, by="me", now=4.0)
    fail(place.state, run)
    later = place.state.path.parent / runs.attempts(place.state, run.id)[-1].directory
    later.mkdir(parents=True)
    place.step_until_gone()
    assert (folder / "run.log").read_text() == "hello" and later.is_dir()


def test_a_kill_in_the_middle_of_removing_files_is_gone_on_with(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    place.files("old")
    place.remove("old")
    place.removal = SweepRemoval(place.state, place.samples, place.places, lambda *_: None)
    place.step_until_gone()
    assert not list(place.places.runs_dir.iterdir())


def test_what_can_not_be_removed_is_told_with_its_reason_and_its_place(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    place.files("old")
    place.remove("old")
    assert not wait_for_removal(place.state, "old", seconds=0)
    unlink = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "x":
            raise OSError(1, "Operation not permitted")
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    place.removal.step()
    with pytest.raises(
        EnvironmentProblem, match=r"/leaving/\w+-old: .*code/closed/x: Operation not permitted"
    ):
        wait_for_removal(place.state, "old", seconds=0)
    place.removal.step()
    assert [event.kind for event in events.newest(place.state)].count("sweep.remains") == 1
    monkeypatch.undo()
    place.removal = SweepRemoval(place.state, place.samples, place.places, lambda *_: None)
    place.step_until_gone()  # the next engine tries again
    assert wait_for_removal(place.state, "old", seconds=0)
    assert wait_for_removal(place.state, "never", seconds=0)


def test_files_too_deep_for_any_path_are_removed(place: Place) -> None:
    (run,) = sweep(place.state, "old", SPEC)
    fail(place.state, run)
    here = os.open(place.files("old") / "code", os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 255, dir_fd=here)
        inside = os.open("d" * 255, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    os.close(here)
    place.remove("old")
    place.step_until_gone()
