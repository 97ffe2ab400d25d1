"""Taking reports in: once each, and no directory's trouble is another's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.runs.intake import Intake
from engine.runs.launching import inbox_file
from environment.container.output import Ending
from environment.container.redaction import TextRedactor
from environment.runner import protocol
from environment.runner.protocol import AgentStarted, Collected, InboxEntry, SubmissionTaken
from foundation import jsonlines
from foundation.hardware import Hardware
from state import database, events, runs, submissions, transitions
from state.database import Database
from state.lifecycle import FailureClass, Outcome, RunState
from state.records import Attempt, Run, SweepSpec
from state.samples import Samples
from tests.clocks import HandClock
from tests.engine.states import new_sweep
from tests.environment.runner.orders import order_with


class World:
    """A state with live attempts, and an intake over it that can be made anew like after a kill."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.clock = HandClock(100.0)
        self.logged: list[str] = []
        self.state: Database = database.open_for_writing(state_dir)
        self.samples = Samples(state_dir, writable=True)
        spec = SweepSpec("agent", "", ("one", "two"), 1, 60.0)
        new_sweep(self.state, spec, concurrency=2)
        self.attempts = [self._launch(run) for run in runs.of_sweep(self.state, "s")]
        self.intake = self.fresh_intake()

    def fresh_intake(self) -> Intake:
        return Intake(
            self.state,
            self.samples,
            self.state_dir,
            self.clock,
            lambda text, _error: self.logged.append(text),
            TextRedactor(),
        )

    def _launch(self, run: Run) -> Attempt:
        token = transitions.new_token()
        directory = protocol.attempt_folder("s", run.competition_id, 1, 1, token)
        attempt = transitions.launch(
            self.state, run.id, directory=directory, runtime="plain", now=2, token=token
        )
        (self.state_dir / directory).mkdir(parents=True)
        protocol.inbox(self.state_dir).mkdir(parents=True, exist_ok=True)
        protocol.write(inbox_file(self.state_dir, attempt), InboxEntry(attempt.id, directory))
        return attempt

    def folder(self, number: int) -> Path:
        return self.state_dir / self.attempts[number].directory

    def run(self, number: int) -> Run:
        return runs.get(self.state, self.attempts[number].run_id)

    def report(self, number: int, *events: protocol.RunEvent) -> None:
        path = self.folder(number) / protocol.EVENTS
        jsonlines.append(path, [protocol.event_to_line(event) for event in events])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.samples.close()
    made.state.close()


TAKEN = SubmissionTaken(12, 1, 2.0, "abc", 3, "snapshots/1.csv")
ENDED = Ending("exited", 0, None, 10, 20, submission_sequence=1)


def test_reports_are_taken_in_as_they_come_and_each_once(world: World) -> None:
    world.report(0, AgentStarted(10, isolated=True))
    world.intake.step()
    assert world.run(0).state is RunState.RUNNING
    world.report(0, TAKEN)
    world.intake.step()
    world.fresh_intake().step()
    world.report(
        0, AgentStarted(10, isolated=True), TAKEN, ENDED
    )  # a killed runner's successor may tell it again
    world.intake.step()
    assert world.run(0).state is RunState.COLLECTING
    assert world.run(0).submissions == 1
    protocol.write(world.folder(0) / protocol.EXIT, ENDED)
    world.report(0, Collected(21))
    world.intake.step()
    assert world.run(0).state is RunState.GRADING
    assert submissions.of_attempt(world.state, world.attempts[0].id)[0].final
    assert not inbox_file(world.state_dir, world.attempts[0]).exists()
    assert world.run(1).state is RunState.STARTING
    assert world.logged == []


def test_a_directory_that_holds_another_attempt_is_not_taken_in_and_told_once(world: World) -> None:
    theirs = order_with(attempt_id=world.attempts[0].id, token="another")
    protocol.write(world.folder(0) / protocol.ORDER, theirs)
    world.report(0, AgentStarted(10, isolated=True), TAKEN, ENDED)
    protocol.write(world.folder(0) / protocol.EXIT, ENDED)
    own = world.attempts[1]
    protocol.write(world.folder(1) / protocol.ORDER, order_with(attempt_id=own.id, token=own.token))
    world.report(1, AgentStarted(10, isolated=True))
    for _ in range(3):
        world.intake.step()
    assert [world.run(number).state for number in (0, 1)] == [RunState.STARTING, RunState.RUNNING]
    told = [one for one in events.newest(world.state) if one.kind == "run.foreign"]
    assert [one.run_id for one in told] == [world.run(0).id]
    assert "is the order of another" in told[0].text


def test_what_an_attempt_ran_in_and_on_is_kept_with_it(world: World) -> None:
    told = Hardware("A processor", 36, 440 << 30, ("NVIDIA A10, 24 GiB",))
    world.report(0, AgentStarted(10, isolated=True, image="sha256:abc", hardware=told))
    world.report(1, AgentStarted(10, isolated=True))
    world.intake.step()
    known, unknown = (runs.attempt(world.state, attempt.id) for attempt in world.attempts)
    assert (known.image, known.hardware) == ("sha256:abc", told)
    assert (unknown.image, unknown.hardware) == ("", None)


def test_events_of_older_runners_are_understood(world: World) -> None:
    older = [
        {"kind": "started", "at": 10, "isolated": True},
        {"kind": "submission", "at": 21, "sequence": 1, "elapsed_seconds": 2.0, "sha256": "abc", "bytes": 3}
        | {"path": "snapshots/1.csv", "final": True},
        {"kind": "ended", "at": 20, "reason": "deadline", "exit_code": None, "signal": 9},
        {"kind": "nobody knows it", "at": 21},
    ]
    jsonlines.append(world.folder(0) / protocol.EVENTS, older)
    world.intake.step()
    attempt = runs.attempt(world.state, world.attempts[0].id)
    assert (attempt.ended_at, attempt.exit_reason, attempt.exit_signal) == (20, "deadline", 9)
    assert world.run(0).submissions == 1


def test_a_final_submission_that_was_never_reported_fails_its_run(world: World) -> None:
    protocol.write(world.folder(0) / protocol.EXIT, ENDED)
    for _ in range(10):
        world.intake.step()
        world.clock.moment += 6
    assert world.run(0).failure_class is FailureClass.INFRASTRUCTURE
    assert "no snapshot 1" in world.run(0).failure_text


def test_an_exit_alone_is_enough(world: World) -> None:
    protocol.write(world.folder(0) / protocol.EXIT, Ending("exited", 0, None, None, 20))
    world.intake.step()
    assert world.run(0).outcome is Outcome.NO_SUBMISSION


def test_one_damaged_directory_fails_its_own_run_and_no_other(world: World) -> None:
    (world.folder(0) / protocol.EXIT).write_text("{")
    protocol.write(world.folder(1) / protocol.EXIT, Ending("exited", 0, None, None, 20))
    for _ in range(10):
        world.intake.step()
        world.clock.moment += 6
    assert world.run(1).state is RunState.FINISHED
    broken = world.run(0)
    assert broken.state is RunState.FAILED
    assert broken.failure_class is FailureClass.INFRASTRUCTURE
    assert "damaged" in broken.failure_text
    assert world.logged


def test_what_the_state_has_done_with_is_taken_out_of_the_runners_hands(world: World) -> None:
    now = world.clock.now()
    for attempt in world.attempts:
        failure = transitions.Failure(FailureClass.UNKNOWN, "x")
        transitions.failed(world.state, attempt.id, failure, now=now)
    protocol.write(world.folder(0) / protocol.EXIT, Ending("exited", 0, None, None, 20))
    world.intake.step()
    assert not inbox_file(world.state_dir, world.attempts[0]).exists()
    assert inbox_file(world.state_dir, world.attempts[1]).exists()
    assert (world.folder(1) / protocol.STOP).exists()


def test_usage_is_taken_in_once(world: World) -> None:
    line = {"at": 5.0, "cpu_percent": None, "memory_bytes": 1, "disk_bytes": 2, "processes": 3}
    jsonlines.append(world.folder(0) / protocol.USAGE, [line])
    world.intake.step()
    jsonlines.append(world.folder(0) / protocol.USAGE, [line | {"at": 10.0}])
    world.intake.step()
    world.fresh_intake().step()
    assert [sample.at for sample in world.samples.of_attempt(world.attempts[0].id)] == [5.0, 10.0]


def test_a_secret_that_an_agent_prints_is_not_in_the_evidence(world: World) -> None:
    redaction = TextRedactor()
    redaction.learn(["KEY", "SHORT", "MISSING"], {"KEY": "sk-123456", "SHORT": "a"})
    assert redaction.clean("a key sk-123456!") == "a key [secret]!"


def test_when_something_last_happened_is_kept_with_the_run(world: World) -> None:
    usage = world.folder(0) / protocol.USAGE
    line = {"cpu_percent": 0.0, "memory_bytes": 1, "disk_bytes": None, "processes": 1}
    jsonlines.append(
        usage, [line | {"at": 50.0, "idle_seconds": 1.0}, line | {"at": 60.0, "idle_seconds": 11.0}]
    )
    world.intake.step()
    assert world.run(0).last_activity_at == 49.0
    jsonlines.append(usage, [line | {"at": 70.0, "idle_seconds": 21.0}])
    world.intake.step()
    assert world.run(0).last_activity_at == 49.0
