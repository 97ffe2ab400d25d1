"""What runs is what the sweep was launched with: a snapshot of the agent's folder, kept while a sweep uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.agent_snapshots import FOLDER, AgentSnapshots, agent_of_sweep, take, version_of
from mlebench_console.engine.requests import RelaunchRuns
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import database, runs, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import Sweep
from tests.clocks import HandClock
from tests.conditions import spec_of
from tests.engine.harness import SUBMIT, Harness, eventually, shown


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "state").mkdir()
    opened = database.open_for_writing(tmp_path / "state")
    yield opened
    opened.close()


def agent(tmp_path: Path, script: str = "true") -> Path:
    folder = tmp_path / "agents" / "mine"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "start.sh").write_text(script)
    (folder / "config.yaml").write_text("mine:\n  start: mine/start.sh\n")
    return folder


def launched(state: Database, folder: Path, version: str) -> Sweep:
    return sweeps.create(
        state,
        sweep_id="s",
        name="s",
        spec=spec_of("mine", str(folder.parent), ("c",), 1, 60.0),
        agent_version=version,
        concurrency=1,
        now=1.0,
    )


def until_taken(snapshots: AgentSnapshots, folder: Path) -> str:
    while (version := snapshots.take(folder)) is None:
        time.sleep(0.01)
    return version


def test_a_sweep_reads_its_agent_as_it_was_at_its_launch(state: Database, tmp_path: Path) -> None:
    folder = agent(tmp_path, "old")
    home = state.path.parent
    version = take(folder, home)
    assert version == version_of(folder)
    sweep = launched(state, folder, version)
    agent(tmp_path, "new")
    kept = agent_of_sweep(home, sweep)
    assert (kept.folder / kept.start_below_folder).read_text() == "old"
    assert kept.image_name == "mine"


def test_the_same_content_is_kept_once(state: Database, tmp_path: Path) -> None:
    home = state.path.parent
    assert take(agent(tmp_path), home) == take(agent(tmp_path), home)
    assert len(list((home / FOLDER).iterdir())) == 1


def test_a_folder_that_is_too_large_is_told_and_leaves_nothing(state: Database, tmp_path: Path) -> None:
    home = state.path.parent
    with pytest.raises(DataProblem, match="mine is too large"):
        take(agent(tmp_path), home, most_bytes=5)
    assert list((home / FOLDER).iterdir()) == []


def test_what_no_sweep_uses_is_removed_and_nothing_else(state: Database, tmp_path: Path) -> None:
    home = state.path.parent
    clock = HandClock(0.0)
    logged: list[str] = []
    snapshots = AgentSnapshots(state, home, clock, lambda text, _error: logged.append(text))
    used = until_taken(snapshots, agent(tmp_path, "used"))
    launched(state, tmp_path / "agents" / "mine", used)
    unused = until_taken(snapshots, agent(tmp_path, "unused"))
    (home / FOLDER / ".killed.partial").mkdir()
    snapshots.step()
    until_taken(snapshots, agent(tmp_path, "used"))  # one thread does all: what was to be removed is
    assert [path.name for path in (home / FOLDER).iterdir()] == [used] != [unused]
    sweeps.remove(state, "s")
    clock.moment += 100
    snapshots.step()
    until_taken(snapshots, agent(tmp_path, "later"))
    assert used not in {path.name for path in (home / FOLDER).iterdir()}
    assert logged == []


def test_a_snapshot_that_nobody_asked_for_again_is_not_given_to_a_later_launch(
    state: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock(0.0)
    snapshots = AgentSnapshots(state, state.path.parent, clock, lambda *_: None)
    home = state.path.parent / FOLDER
    may_end = threading.Event()
    may_end.set()

    def take_when_it_may(folder: Path, state_dir: Path) -> str:
        version = take(folder, state_dir)
        assert may_end.wait(60)
        return version

    monkeypatch.setattr("mlebench_console.engine.agent_snapshots.take", take_when_it_may)

    def kept() -> set[str]:
        return {path.name for path in home.glob("[!.]*")}

    before = version_of(agent(tmp_path, "before"))
    may_end.clear()
    assert snapshots.take(tmp_path / "agents" / "mine") is None  # of a launch that is refused meanwhile
    may_end.set()
    eventually(lambda: before in kept())
    clock.moment += 100
    snapshots.step()
    assert not snapshots.is_taking
    folder = agent(tmp_path, "after")
    assert until_taken(snapshots, folder) == version_of(folder)
    again = version_of(agent(tmp_path, "again"))
    may_end.clear()
    assert snapshots.take(folder) is None
    may_end.set()
    eventually(lambda: again in kept())
    clock.moment += 100
    folder = agent(tmp_path, "at last")
    assert until_taken(snapshots, folder) == version_of(folder)


def test_a_sweep_whose_snapshot_is_gone_is_refused(state: Database, tmp_path: Path) -> None:
    folder = agent(tmp_path)
    for version in ("0" * 64, ""):  # an imported sweep has none
        with pytest.raises(DataProblem, match="the files of agent 'mine' are gone"):
            agent_of_sweep(state.path.parent, replace(launched(state, folder, "1"), agent_version=version))
        sweeps.remove(state, "s")


def test_an_agent_that_is_edited_after_the_launch_runs_as_it_was(harness: Harness) -> None:
    harness.agent("edited", SUBMIT)
    harness.start()
    sweep_id = harness.launch("edited", seeds=2, concurrency=1)
    (harness.agents_dir / "edited" / "start.sh").write_text("exit 3\n")
    assert {run.outcome for run in harness.ended()} == {Outcome.BELOW_MEDIAN}
    opened = database.open_for_reading(harness.places.state_dir)
    version = sweeps.get(opened, sweep_id).agent_version
    assert len(runs.of_sweep(opened, sweep_id)) == 2
    opened.close()
    assert version != version_of(harness.agents_dir / "edited")


def test_a_snapshot_that_was_changed_does_not_run(harness: Harness) -> None:
    harness.agent("changed", SUBMIT)
    harness.start()
    harness.launch("changed", name="first")
    (run,) = harness.ended()
    (script,) = (harness.places.state_dir / FOLDER).glob("*/changed/start.sh")
    script.chmod(0o600)
    script.write_text(f"{script.read_text()}# changed\n")
    harness.ask(RelaunchRuns(runs=shown(run, reroll=True)))
    eventually(lambda: harness.runs()[0].attempts == 2)
    (run,) = harness.ended()
    assert run.failure_class is FailureClass.INFRASTRUCTURE
    assert "is not the agent that the sweep was launched with" in run.failure_text
    harness.launch("changed", name="second")  # keeps the files anew
    assert [run.outcome for run in harness.ended() if run.sweep_id == "second"] == [Outcome.BELOW_MEDIAN]
