"""A hand-over that a disk refuses is tried again; the run neither fails nor stays starting for ever."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.agent_snapshots import take
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.engine.runs.scheduling import GpuPool, Retrier
from mlebench_console.engine.runs.starting import Starter, ask_to_stop, read_order
from mlebench_console.engine.settings import EngineSettings
from mlebench_console.environment.container import output
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.protocol import Stop
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.state import database, datasets, runs, sweeps, transitions
from mlebench_console.state.database import UnusableState
from mlebench_console.state.lifecycle import FailureClass, RunState, SweepState
from mlebench_console.state.records import Attempt, DatasetState, Run
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.outages import CallEnd, CallFailure
from mlebench_console.state.usage.samples import Samples
from tests.clocks import HandClock
from tests.conditions import changed, spec_of
from tests.engine.harness import COMPETITION
from tests.engine.states import new_sweep


class World:
    """Two sweeps that may start, and a runner's inbox that takes nothing while there is `trouble`."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trouble: Exception | None = None
        self.logged: list[str] = []
        self.put = Starter._pass_on
        monkeypatch.setattr(Starter, "_pass_on", self._put)
        self.places = Places(folder / "config.toml", folder / "data", folder)
        self.state = database.open_for_writing(folder)
        self.clock = HandClock()
        spec = spec_of("dummy", "", (COMPETITION,), 3, 60.0, runtime="plain", cpus=0.1)
        version = take(own_agents_folder() / "dummy", folder)
        for name in ("s", "other"):
            new_sweep(self.state, spec, name=name, concurrency=2, agent_version=version)
        datasets.set_state(self.state, COMPETITION, "v1", DatasetState.PREPARED, now=1.0)
        self.starter = self.fresh_starter()

    def fresh_starter(self) -> Starter:
        return Starter(
            self.state,
            self.places,
            Placements(self.places, self.clock, lambda _text, _error: None),
            self.clock,
            lambda text, _error: self.logged.append(text),
            TextRedactor(),
            GpuPool(tuple, self.clock),
            EngineSettings(cpus=10.0, memory_gb=1.0),
            Samples(self.places.state_dir, writable=True),
        )

    def _put(self, *arguments: object) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.put(self.starter, *arguments)  # type: ignore[arg-type]  # as they came

    def step_for(self, seconds: float) -> None:
        until = self.clock.moment + seconds
        while self.clock.moment < until:
            self.starter.step()
            self.clock.moment += 1.0

    def live(self) -> list[tuple[Run, Attempt]]:
        found = runs.live_attempts(self.state)
        return [(runs.get(self.state, attempt.run_id), attempt) for attempt in found]

    def inbox(self) -> int:
        return len(list(protocol.inbox(self.places.state_dir).glob("*.json")))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(tmp_path, monkeypatch)
    yield made
    for _, attempt in made.live():
        secrets.discard(made.places.state_dir / attempt.directory)  # no runner takes them here
    made.state.close()


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_run_that_a_full_disk_kept_from_its_runner_starts_once_there_is_room(world: World) -> None:
    world.trouble = FULL
    world.step_for(300)
    waiting = world.live()
    assert {run.state for run, _ in waiting} == {RunState.STARTING}
    assert {run.sweep_id for run, _ in waiting} == {"s", "other"}
    assert "passed to its runner yet: [Errno 28] No space left" in world.starter.problem
    assert all(sweep.state is SweepState.ACTIVE for sweep in sweeps.all_sweeps(world.state))
    world.trouble = None
    world.step_for(120)
    assert world.starter.problem == ""
    assert world.inbox() == len(world.live()) == 4
    assert {attempt.number for _, attempt in world.live()} == {1}
    assert waiting[0] in world.live()


def test_an_order_that_a_killed_engine_left_half_written_is_gone_when_it_is_written_again(
    world: World,
) -> None:
    world.trouble = FULL
    world.step_for(5)
    for _, attempt in world.live():
        folder = world.places.state_dir / attempt.directory
        protocol.make_folders(folder)
        (folder / f".{protocol.ORDER}.2ad2dc88.partial").write_text('{"version"')
    world.trouble = None
    world.step_for(120)
    for _, attempt in world.live():
        folder = world.places.state_dir / attempt.directory
        assert (folder / protocol.ORDER).exists()
        assert not list(folder.glob(".*"))


def test_a_sweep_starts_nothing_more_while_a_run_of_it_waits(world: World) -> None:
    world.trouble = FULL
    world.step_for(300)
    started = {run.sweep_id: 0 for run, _ in world.live()}
    for run, _ in world.live():
        started[run.sweep_id] += 1
    assert max(started.values()) <= 2
    assert runs.queued_count(world.state) >= 2


def test_a_run_that_is_stopped_while_it_waits_is_stopped_without_a_runner(world: World) -> None:
    world.trouble = FULL
    world.step_for(10)
    for _, attempt in world.live():
        ask_to_stop(world.places.state_dir, attempt, Stop("me@here", 1.0))
    for sweep in sweeps.all_sweeps(world.state):
        sweeps.set_state(world.state, sweep.id, SweepState.PAUSED, now=1.0)
    stopped = [run.id for run, _ in world.live()]
    world.step_for(120)
    assert world.live() == []
    assert {runs.get(world.state, run_id).state for run_id in stopped} == {RunState.STOPPED}
    assert world.starter.problem == ""


def test_what_no_disk_is_guilty_of_fails_the_run_and_pauses_its_sweep(world: World) -> None:
    world.trouble = EnvironmentProblem("the agent is broken")
    world.step_for(1)
    failed = [run for run in runs.of_all_sweeps(world.state) if run.state is RunState.FAILED]
    assert {run.failure_class for run in failed} == {FailureClass.INFRASTRUCTURE}
    assert all(sweep.state is SweepState.PAUSED for sweep in sweeps.all_sweeps(world.state))
    assert [run.sweep_id for run in failed] == ["other", "s"]  # the others would have met the same


def test_a_placement_that_config_no_longer_has_is_told_of_and_not_logged_all_the_time(world: World) -> None:
    spec = changed(sweeps.get(world.state, "s").spec, placement="slurm:gone")
    new_sweep(world.state, spec, name="elsewhere", concurrency=2, agent_version="1")
    world.step_for(600)
    assert "placement slurm:gone" in world.starter.problem
    assert 1 <= sum("slurm:gone" in text for text in world.logged) <= 20
    assert len(world.live()) == 4
    sweeps.set_state(world.state, "elsewhere", SweepState.PAUSED, now=1.0)
    world.step_for(1)
    assert world.starter.problem == ""


def test_a_failure_that_a_full_state_can_not_take_is_not_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_more: object) -> None:
        raise UnusableState("state.db can't be written", "the disk is full")

    world.trouble = EnvironmentProblem("the agent is broken")
    with monkeypatch.context() as patched:
        patched.setattr(transitions, "failed", refuse)
        with pytest.raises(UnusableState):
            world.starter.step()
    ((run, _),) = world.live()
    world.step_for(1)
    assert runs.get(world.state, run.id).state is RunState.FAILED


def test_a_restarted_engine_fails_no_run_whose_agent_lives(world: World) -> None:
    world.step_for(1)
    for _, attempt in world.live():
        assert output.claim(world.places.state_dir / attempt.directory / protocol.CLAIM)
    before = world.live()
    world.trouble = EnvironmentProblem("the agent is broken")
    world.starter = world.fresh_starter()
    world.starter.recover()
    world.step_for(30)
    assert world.live() == before
    world.trouble = FULL
    world.step_for(30)
    assert world.live() == before


def test_nothing_starts_or_is_tried_again_while_there_is_no_connection_to_its_provider(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-operator")
    folder = world.places.state_dir
    version = take(own_agents_folder() / "dummy", folder)
    spec = spec_of(
        "dummy", "", (COMPETITION,), 3, 60.0, runtime="plain", cpus=0.1, gateway=("openai",), retries=5
    )
    new_sweep(world.state, spec, name="calls", concurrency=1, agent_version=version)
    first, *_ = runs.of_sweep(world.state, "calls")
    attempt = transitions.launch(world.state, first.id, directory="runs/x", runtime="plain", now=1.0)
    away = [CallEnd("openai", world.clock.moment, CallFailure.UNREACHABLE)] * 3
    outages.note(world.state, attempt.id, away, now=world.clock.now())
    failure = Failure(FailureClass.INFRASTRUCTURE, "the provider can't be reached")
    transitions.failed(world.state, attempt.id, failure, now=world.clock.now())

    retrier = Retrier(world.state, world.clock)

    def states() -> list[str]:
        return [run.state.value for run in runs.of_sweep(world.state, "calls")]

    for _ in range(50):
        world.clock.moment += 10.0
        world.starter.step()
        retrier.step()
    assert states() == ["failed", "queued", "queued"]
    assert {run.sweep_id for run, _ in world.live()} == {"s", "other"}
    world.clock.moment += 200.0
    outages.settle(world.state, now=world.clock.now())
    retrier.step()
    world.starter.step()
    assert sorted(states()) == ["queued", "queued", "starting"]


def test_what_images_are_built_from_is_not_hashed_for_a_runtime_without_images(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(
        "mlebench_console.engine.images.building.content_digest", lambda folder, **_: hashed.append(folder)
    )
    world.step_for(2.0)
    found = [read_order(world.places.state_dir, attempt) for _, attempt in world.live()]
    orders = [order for order in found if order is not None]
    assert {(order.conditions.runtime, order.image_labels, order.grader_labels) for order in orders} == {
        (protocol.PLAIN, (), ())
    }
    assert not hashed
