"""Taking reports in: once each, and no directory's trouble is another's."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.placements import AttemptStatus, Placements
from mlebench_console.engine.placements.model import JobEnd
from mlebench_console.engine.places import Places
from mlebench_console.engine.runs.intake import Intake
from mlebench_console.environment.container.output import Ending, ServiceRestarted
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import (
    AgentStarted,
    Collected,
    Heartbeat,
    Shortfall,
    SubmissionRefused,
    SubmissionTaken,
)
from mlebench_console.foundation import files, jsonlines
from mlebench_console.foundation.measurements import Hardware, UsageSample
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.state import database, events, runs, submissions, transitions
from mlebench_console.state.database import Database, UnusableState
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Attempt, Grade, Run
from mlebench_console.state.usage import network_use, samples
from mlebench_console.state.usage.samples import Samples
from tests.clocks import HandClock
from tests.conditions import changed, spec_of
from tests.engine.states import new_sweep
from tests.environment.runner.orders import order_with


class World:
    """A state with live attempts, and an intake over it that can be made anew like after a kill."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.clock = HandClock(100.0)
        self.logged: list[str] = []
        places = Places(state_dir / "config.toml", state_dir / "data", state_dir)
        self.placements = Placements(places, self.clock, self.log)
        self.state: Database = database.open_for_writing(state_dir)
        self.samples = Samples(state_dir, writable=True)
        spec = spec_of("agent", "", ("one", "two"), 1, 60.0)
        new_sweep(self.state, spec, concurrency=2)
        self.attempts = [self._launch(run) for run in runs.of_sweep(self.state, "s")]
        self.intake = self.fresh_intake()

    def log(self, text: str, _error: BaseException | None = None) -> None:
        self.logged.append(text)

    def fresh_intake(self) -> Intake:
        return Intake(
            self.state,
            self.samples,
            self.state_dir,
            self.placements,
            self.clock,
            self.log,
            TextRedactor(),
        )

    def _launch(self, run: Run) -> Attempt:
        token = transitions.new_token()
        directory = protocol.attempt_folder("s", run.competition_id, 1, 1, token)
        attempt = transitions.launch(
            self.state, run.id, directory=directory, runtime="plain", now=2, token=token
        )
        (self.state_dir / directory).mkdir(parents=True)
        self.placements.here.place(attempt)
        return attempt

    def folder(self, number: int) -> Path:
        return self.state_dir / self.attempts[number].directory

    def run(self, number: int) -> Run:
        return runs.get(self.state, self.attempts[number].run_id)

    def step_for(self, seconds: float, *, every: float = 6.0) -> None:
        """Let the intake look again and again until so much time has passed."""
        until = self.clock.moment + seconds
        while self.clock.moment < until:
            self.intake.step()
            self.clock.moment += every

    def final(self, number: int) -> tuple[int, str]:
        found = submissions.final_of(self.state, self.attempts[number].id)
        assert found is not None
        return found.sequence, found.sha256

    def use(self, number: int, *, at: float) -> None:
        jsonlines.append(self.folder(number) / protocol.USAGE, [USAGE | {"at": at}])

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
REFUSED = SubmissionRefused(12, "submission.csv was not read: is a symbolic link", "not_regular")
USAGE: dict[str, Any] = {"cpu_percent": None, "memory_bytes": 1, "disk_bytes": 2, "processes": 3}


def grade_of(submission_id: int, score: float) -> Grade:
    return Grade(submission_id, 15.0, "v1", score, True, Outcome.BELOW_MEDIAN, "")


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
    assert not world.placements.here.is_placed(world.attempts[0])
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


def test_a_kind_and_a_field_that_this_version_does_not_know_are_passed_over(world: World) -> None:
    lines = [
        {"kind": "nobody knows it", "at": 21},
        {"kind": "ended", "at": 20, "reason": "deadline", "exit_code": None, "signal": 9, "started_at": 10}
        | {"ended_at": 20, "weather": "rain"},
    ]
    jsonlines.append(world.folder(0) / protocol.EVENTS, lines)
    world.intake.step()
    attempt = runs.attempt(world.state, world.attempts[0].id)
    assert (attempt.ended_at, attempt.exit_reason, attempt.exit_signal) == (20, "deadline", 9)


@pytest.mark.parametrize("at", [1e300, -1e300, math.inf, math.nan, 7300.0])
def test_nothing_has_happened_in_the_future_or_never_whatever_a_nodes_clock_or_an_agent_says(
    world: World, at: float
) -> None:
    world.use(0, at=at)
    world.report(0, AgentStarted(at, isolated=False), replace(TAKEN, at=at, elapsed_seconds=at))
    world.intake.step()
    run, attempt = world.run(0), runs.attempt(world.state, world.attempts[0].id)
    (taken,) = submissions.of_attempt(world.state, attempt.id)
    assert (run.started_at, attempt.started_at, taken.taken_at) == (100.0, 100.0, 100.0)
    assert run.last_activity_at == 100.0
    assert 0 <= taken.elapsed_seconds < 1e9
    world.report(0, replace(ENDED, ended_at=at))
    world.intake.step()
    assert runs.attempt(world.state, attempt.id).ended_at == 100.0


def test_a_submission_is_graded_from_its_own_directory_whatever_its_event_says(world: World) -> None:
    taken = replace(TAKEN, path="../../../../../two/prepared/private/test.csv")
    world.report(0, AgentStarted(10, isolated=False), taken)
    world.intake.step()
    (kept,) = submissions.of_attempt(world.state, world.attempts[0].id)
    assert kept.path == f"{world.attempts[0].directory}/snapshots/1.csv"


def test_what_a_heartbeat_tells_of_is_waited_for_before_an_end_is_taken_in(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocol.write(world.folder(0) / protocol.ORDER, changed(order_with(), **ordered(world.attempts[0])))
    ended = protocol.event_to_line(replace(ENDED, submission_sequence=None))
    events_bytes = jsonlines.append(world.folder(0) / protocol.EVENTS, [ended])
    protocol.write(world.folder(0) / protocol.EXIT, replace(ENDED, submission_sequence=None))
    # A file system between hosts shows the end already, and not yet all calls.
    beat = Heartbeat(3, "n1", "7", events_bytes, 0, model_calls=10, ended=True)
    monkeypatch.setattr(
        world.placements.here, "status", lambda _attempt: AttemptStatus(1, events_bytes, 10, beat)
    )
    world.intake.step()
    assert world.run(0).is_live
    (world.folder(0) / protocol.MODEL_CALLS).write_text(f"{{}}{' ' * 20}\n")
    world.step_for(30)
    assert not world.run(0).is_live


def ordered(attempt: Attempt) -> dict[str, Any]:
    """By which an order is that of an attempt."""
    return {"token": attempt.token, "attempt_id": attempt.id}


def test_a_final_submission_that_is_told_of_late_is_waited_for_and_graded(world: World) -> None:
    second = replace(TAKEN, sequence=2, sha256="def", path="snapshots/2.csv")
    world.report(0, AgentStarted(10, isolated=True), TAKEN)
    protocol.write(world.folder(0) / protocol.EXIT, replace(ENDED, submission_sequence=2))
    world.step_for(20)
    assert world.run(0).state is RunState.RUNNING
    assert "has no event of snapshots/2.csv" in world.intake.problem
    world.report(0, second, ENDED)
    world.step_for(60)
    assert world.run(0).state is RunState.GRADING
    assert world.final(0) == (2, "def")
    assert world.intake.problem == ""


def test_a_final_submission_that_no_event_tells_of_any_more_is_graded_from_its_file(world: World) -> None:
    world.report(0, AgentStarted(10, isolated=True), TAKEN)
    with (world.folder(0) / protocol.EVENTS).open("a") as stream:
        stream.write('{"kind": "submission", "sequence": 2, "at": 1\0\0\0\n')
    snapshot = world.folder(0) / protocol.snapshot_name(2)
    snapshot.parent.mkdir()
    snapshot.write_bytes(b"a,b\n1,2\n")
    protocol.write(world.folder(0) / protocol.EXIT, replace(ENDED, submission_sequence=2))
    world.step_for(200)
    assert world.run(0).state is RunState.GRADING
    assert world.final(0) == (2, hashlib.sha256(b"a,b\n1,2\n").hexdigest())
    ungraded = submissions.ungraded(world.state)
    assert [(found.sequence, found.final) for found in ungraded] == [(2, True)]


def test_the_submission_that_the_end_names_is_graded_though_a_later_one_was(world: World) -> None:
    later = replace(TAKEN, sequence=2, sha256="def", path="snapshots/2.csv")
    world.report(0, AgentStarted(10, isolated=True), TAKEN, later)
    world.intake.step()
    first, second = submissions.of_attempt(world.state, world.attempts[0].id)
    submissions.add_grade(world.state, grade_of(second.id, 0.9), now=15.0)
    assert world.run(0).score == 0.9
    protocol.write(world.folder(0) / protocol.EXIT, ENDED)
    world.intake.step()
    assert world.final(0) == (1, "abc")
    assert world.run(0).score is None
    assert [found.id for found in submissions.ungraded(world.state)] == [first.id]
    submissions.add_grade(world.state, grade_of(first.id, 0.1), now=16.0)
    assert world.run(0).score == 0.1


def test_a_final_submission_whose_file_is_lost_too_fails_its_run_at_last(world: World) -> None:
    protocol.write(world.folder(0) / protocol.EXIT, ENDED)
    world.step_for(50)
    assert world.run(0).is_live
    world.step_for(100)
    assert world.run(0).failure_class is FailureClass.INFRASTRUCTURE
    assert "snapshots/1.csv, is missing" in world.run(0).failure_text
    assert not world.placements.here.is_placed(world.attempts[0])


def test_an_exit_alone_is_enough(world: World) -> None:
    protocol.write(world.folder(0) / protocol.EXIT, Ending("exited", 0, None, None, 20))
    world.intake.step()
    assert world.run(0).outcome is Outcome.NO_SUBMISSION


def test_an_end_of_which_nothing_readable_is_left_fails_its_own_run_and_no_other(world: World) -> None:
    (world.folder(0) / protocol.EXIT).write_text("{")
    protocol.write(world.folder(1) / protocol.EXIT, Ending("exited", 0, None, None, 20))
    world.intake.step()
    assert world.run(1).state is RunState.FINISHED
    broken = world.run(0)
    assert broken.state is RunState.FAILED
    assert broken.failure_class is FailureClass.INFRASTRUCTURE
    assert "damaged" in broken.failure_text
    assert world.logged


def test_an_end_whose_record_is_damaged_is_read_from_the_events(world: World) -> None:
    world.report(0, AgentStarted(10, isolated=True), TAKEN, ENDED)
    (world.folder(0) / protocol.EXIT).write_text("{")
    world.intake.step()
    assert world.run(0).state is RunState.GRADING
    assert world.final(0) == (1, "abc")


@pytest.mark.parametrize("name", [protocol.EVENTS, protocol.USAGE])
def test_reports_that_can_not_be_read_end_no_run(world: World, name: str) -> None:
    (world.folder(0) / name).symlink_to("/dev/zero")
    world.report(1, AgentStarted(10, isolated=True))
    world.step_for(3600)
    assert world.run(0).state is RunState.STARTING
    assert world.run(1).state is RunState.RUNNING
    assert f"run {world.run(0).id}" in world.intake.problem
    (world.folder(0) / name).unlink()
    world.report(0, AgentStarted(10, isolated=True))
    world.step_for(120)
    assert world.run(0).state is RunState.RUNNING
    assert world.intake.problem == ""


def test_a_damaged_inbox_file_keeps_no_report_waiting(world: World) -> None:
    (protocol.inbox(world.state_dir) / "99.json").write_text("nonsense")
    world.report(0, AgentStarted(10, isolated=True))
    world.intake.step()
    assert world.run(0).state is RunState.RUNNING
    assert "99.json" in world.placements.problem


def test_samples_that_are_locked_for_minutes_wait_and_end_nothing(world: World) -> None:
    world.use(0, at=5.0)
    world.samples.add(9, [])  # so that there is a file
    other = sqlite3.connect(world.state_dir / samples.DATABASE_NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    world.report(0, AgentStarted(10, isolated=True))
    world.step_for(300, every=30.0)
    assert world.run(0).state is RunState.RUNNING
    assert "samples.db can't be used: database is locked" in world.intake.problem
    other.execute("ROLLBACK")
    other.close()
    world.step_for(60)
    assert [sample.at for sample in world.samples.of_attempt(world.attempts[0].id)] == [5.0]
    assert world.intake.problem == ""


def test_samples_of_runs_that_are_over_are_no_trouble_any_more(world: World) -> None:
    world.use(0, at=5.0)
    world.samples.add(9, [])
    other = sqlite3.connect(world.state_dir / samples.DATABASE_NAME, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    world.step_for(60)
    assert "samples.db can't be used" in world.intake.problem
    for attempt in world.attempts:
        transitions.stopped(world.state, attempt.run_id, by="me", now=3.0)
    world.step_for(60)
    other.close()
    assert world.intake.problem == ""


@pytest.mark.parametrize("damage", ["garbage", "a damaged page", "other tables"])
def test_damaged_samples_are_set_aside_and_made_anew_and_end_nothing(world: World, damage: str) -> None:
    filled = [UsageSample(float(at), 1.0, 1, 1, 1) for at in range(2000)]
    world.samples.add(9, filled)
    world.samples.close()
    path = world.state_dir / samples.DATABASE_NAME
    if damage == "garbage":
        path.write_bytes(b"no database at all " * 1000)
    elif damage == "a damaged page":
        with path.open("r+b") as stream:
            stream.seek(4096)
            stream.write(b"\xff" * (path.stat().st_size - 4096))
    else:
        path.unlink()
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE usage (something)")
    world.report(0, AgentStarted(10, isolated=True))
    world.use(0, at=5.0)
    world.intake.step()
    assert "is kept as samples.db.damaged-" in world.intake.problem
    world.step_for(300)
    assert world.run(0).state is RunState.RUNNING
    assert world.intake.problem == ""
    assert [sample.at for sample in world.samples.of_attempt(world.attempts[0].id)] == [5.0]
    assert len([kept for kept in world.state_dir.glob("samples.db.damaged-*") if kept.suffix[-1] == "Z"]) == 1
    assert [event.kind for event in events.newest(world.state)].count("samples.damaged") == 1


def test_odd_lines_of_usage_are_passed_over(world: World) -> None:
    path = world.folder(0) / protocol.USAGE
    odd: list[dict[str, Any]] = [
        {"at": "yesterday"},
        USAGE | {"at": 1.0, "memory_bytes": 1 << 70},
        USAGE | {"at": float("nan")},
        {},
    ]
    jsonlines.append(path, odd)
    with path.open("a") as stream:
        stream.write("[" * 100_000 + "\nnull\n" + "x" * (5 << 20) + "\n")
    world.use(0, at=5.0)
    world.intake.step()
    world.intake.step()
    world.report(0, AgentStarted(10, isolated=True))
    world.intake.step()
    assert [sample.at for sample in world.samples.of_attempt(world.attempts[0].id)] == [5.0]
    assert world.run(0).state is RunState.RUNNING
    assert world.intake.problem == ""


def test_refusals_without_end_fill_no_state(world: World) -> None:
    world.report(0, AgentStarted(10, isolated=True))
    for part in range(10):
        refused = (replace(REFUSED, at=part, text=f"refusal {part}/{n}") for n in range(500))
        world.report(0, *refused)
        world.intake.step()
    told = [event for event in events.newest(world.state) if event.kind == "submission.refused"]
    assert len(told) == 20
    assert (told[0].text, told[0].times) == ("refusal 9/499", 4981)
    assert (told[-1].text, told[-1].times) == ("refusal 0/0", 1)


def test_notes_of_runners_without_end_or_of_any_length_fill_no_state(world: World) -> None:
    world.report(0, AgentStarted(10, isolated=False))
    for part in range(4):
        world.report(
            0, *(Shortfall(part, protocol.UNMEASURED, f"{part}/{n} {'x' * 100_000}") for n in range(30))
        )
        world.report(0, *(ServiceRestarted(part, "the proxy", "y" * 100_000, False) for _ in range(30)))
        world.intake.step()
    told = events.newest(world.state, limit=1000, run_id=world.run(0).id)
    assert len(told) <= 45
    assert sum(len(event.text) for event in told) < 100_000
    (last, *_) = (event for event in told if event.kind == "run.unmeasured")
    assert last.text.startswith("3/29 xxx")
    assert last.times == 101


def test_a_state_on_a_full_disk_delays_reports_and_ends_no_attempt(world: World) -> None:
    connection = world.state._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute("PRAGMA cache_size = 5")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    world.report(0, AgentStarted(10, isolated=True), *([replace(REFUSED, text="x" * 5000)] * 40))
    for _ in range(10):
        with pytest.raises(UnusableState, match="the disk is full"):
            world.intake.step()
        world.clock.moment += 60
    assert world.run(0).state is RunState.STARTING
    connection.execute("PRAGMA max_page_count = 100000")
    world.intake.step()
    assert world.run(0).state is RunState.RUNNING


def test_what_the_state_has_done_with_is_taken_out_of_the_runners_hands(world: World) -> None:
    now = world.clock.now()
    for attempt in world.attempts:
        failure = transitions.Failure(FailureClass.UNKNOWN, "x")
        transitions.failed(world.state, attempt.id, failure, now=now)
    protocol.write(world.folder(0) / protocol.EXIT, Ending("exited", 0, None, None, 20))
    world.intake.step()
    assert not world.placements.here.is_placed(world.attempts[0])
    assert world.placements.here.is_placed(world.attempts[1])
    assert (world.folder(1) / protocol.STOP).exists()


def test_usage_is_taken_in_once(world: World) -> None:
    line = {"at": 5.0, "cpu_percent": None, "memory_bytes": 1, "disk_bytes": 2, "processes": 3}
    jsonlines.append(world.folder(0) / protocol.USAGE, [line])
    world.intake.step()
    jsonlines.append(world.folder(0) / protocol.USAGE, [line | {"at": 10.0}])
    world.intake.step()
    world.fresh_intake().step()
    assert [sample.at for sample in world.samples.of_attempt(world.attempts[0].id)] == [5.0, 10.0]


def test_traffic_is_kept_as_it_grows_each_byte_once(world: World) -> None:
    path = world.folder(0) / protocol.TRAFFIC
    path.parent.mkdir()
    for received in (200, 5000):
        files.write_json(
            path,
            {"hosts": {"api.example.org": {"connections": 2, "sent_bytes": 100, "received_bytes": received}}},
        )
        world.intake.step()
    world.fresh_intake().step()
    run_id = world.run(0).id
    assert network_use.of_run(world.state, run_id) == [
        network_use.NetworkUse(world.attempts[0].id, "api.example.org", 2, 100, 5000)
    ]
    assert network_use.latest_by_run(world.state) == {run_id: (100, 5000)}


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


def test_what_was_not_searched_or_measured_is_told_on_the_run(world: World) -> None:
    shortfalls = (Shortfall(11, protocol.UNSEARCHED, "code/a"), Shortfall(12, protocol.UNMEASURED, "code/b"))
    world.report(0, AgentStarted(10, isolated=True), *shortfalls)
    world.intake.step()
    told = {event.kind: event.text for event in events.newest(world.state, run_id=world.run(0).id)}
    assert (told["run.unsearched"], told["run.unmeasured"]) == ("code/a", "code/b")


@pytest.mark.parametrize(
    ("job", "isolated", "kind"),
    [
        (JobEnd("CANCELLED", "job 7 on n1: CANCELLED"), True, FailureClass.INFRASTRUCTURE),
        # What an agent can bring about gets no free relaunch.
        (JobEnd("CANCELLED", "job 7 on n1: CANCELLED"), False, FailureClass.UNKNOWN),
        (JobEnd("OUT_OF_MEMORY", "job 7 on n1: OUT_OF_MEMORY", by_memory=True), True, FailureClass.MEMORY),
        (
            JobEnd("PREEMPTED", "job 7 on n1: PREEMPTED", problem=ProblemCode.PREEMPTED),
            False,
            FailureClass.INFRASTRUCTURE,
        ),
    ],
)
def test_why_a_batch_system_ended_a_job_is_waited_for_and_decides(
    world: World, monkeypatch: pytest.MonkeyPatch, job: JobEnd, isolated: bool, kind: FailureClass
) -> None:
    world.report(0, AgentStarted(10, isolated=isolated))
    ended = Ending("lost", None, None, 10, 20, problem="the batch system ended its job 7 on n1")
    protocol.write(world.folder(0) / protocol.EXIT, ended)
    known = [AttemptStatus(revision=1), AttemptStatus(revision=2, ended=job)]
    monkeypatch.setattr(world.placements.here, "status", lambda _attempt: known[0])
    world.intake.step()
    assert world.run(0).is_live
    del known[0]
    world.intake.step()
    assert world.run(0).failure_class is kind
    assert job.text in runs.attempt(world.state, world.attempts[0].id).evidence
