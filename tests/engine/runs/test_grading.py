"""Trouble of the grader, the dataset or the machine is a state of a run and never its outcome."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from mlebench_console.competitions.grader import Grader, GradeResult
from mlebench_console.competitions.judging import GradeRequest, Judgement
from mlebench_console.competitions.kit.checks import quoted
from mlebench_console.engine.grading.report import Report
from mlebench_console.engine.runs import grading
from mlebench_console.engine.runs.grading import LiveGrading
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import EnvironmentProblem, StateProblem
from mlebench_console.state import events, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Attempt, Run
from mlebench_console.state.submissions import Snapshot
from mlebench_console.state.transitions import Failure
from tests.clocks import HandClock
from tests.conditions import spec_of
from tests.engine.harness import COMPETITION, eventually

KILLED = EnvironmentProblem("a submission could not be graded", "something killed its grader")


class StandInGrader(Grader):
    """Gives what a test says as the result of everything that it was asked to grade."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[GradeRequest] = []
        self.answer: Judgement | EnvironmentProblem = KILLED
        self._open = 0

    def start(self, request: GradeRequest) -> int:
        self.asked.append(request)
        self._open = len(self.asked)
        return self._open

    def poll(self) -> list[GradeResult]:
        number, self._open = self._open, 0
        if number == 0:
            return []
        answer = self.answer
        if isinstance(answer, Judgement):
            return [GradeResult(number, answer)]
        return [GradeResult(number, None, answer)]


class World:
    """One run whose agent has ended and left a submission."""

    def __init__(self, state: Database, data_dir: Path) -> None:
        self.state = state
        self.state_dir = state.path.parent
        self.clock = HandClock(1000.0)
        self.logged: list[str] = []
        self.redaction = TextRedactor()
        spec = spec_of(
            "dummy", "/agents", (COMPETITION,), seeds=40, time_limit_seconds=60, data_dir=str(data_dir)
        )
        sweeps.create(
            state,
            sweep_id="s",
            name="s",
            spec=spec,
            agent_version="1",
            concurrency=1,
            now=1.0,
        )
        self.file = self.state_dir / "runs/1/snapshots/1.csv"
        self.file.parent.mkdir(parents=True)
        shutil.copyfile(data_dir / COMPETITION / "prepared/public/sample_submission.csv", self.file)
        sha256 = hashlib.sha256(self.file.read_bytes()).hexdigest()
        self.attempt: Attempt = transitions.launch(state, 1, directory="runs/1", runtime="process", now=2.0)
        transitions.started(state, self.attempt.id, isolated=True, at=2.0, now=2.0)
        transitions.agent_ended(state, self.attempt.id, EndReason.EXITED, exit_code=0, at=3.0, now=3.0)
        snapshot = Snapshot(1, 2.5, 0.5, sha256, 1, "runs/1/snapshots/1.csv")
        with state.transaction():
            submissions.add(state, self.attempt.id, snapshot)
            submissions.set_final(state, self.attempt.id, 1)
            transitions.collected(state, self.attempt.id, now=3.0)

    def grading(self, grader: Grader) -> LiveGrading:
        return LiveGrading(
            self.state,
            grader,
            self.state_dir,
            self.clock,
            self.log,
            self.redaction,
            at_once=2,
        )

    def log(self, text: str, _error: BaseException | None = None) -> None:
        self.logged.append(text)

    def run(self) -> Run:
        return runs.get(self.state, 1)


@pytest.fixture
def world(state: Database, prepared_data: Path) -> World:
    return World(state, prepared_data)


@pytest.fixture
def grader() -> Iterator[StandInGrader]:
    with StandInGrader() as stand_in:
        yield stand_in


def step(live: LiveGrading) -> None:
    live.step()
    live.take_results()


def test_a_run_whose_grader_is_killed_again_and_again_waits_longer_and_longer_and_never_ends(
    world: World, grader: StandInGrader
) -> None:
    live = world.grading(grader)
    tried_at = []
    for _ in range(4000):
        before = len(grader.asked)
        step(live)
        if len(grader.asked) > before:
            tried_at.append(world.clock.moment)
        world.clock.moment += 1.0
    waits = [after - before for before, after in pairwise(tried_at)]
    assert waits == sorted(waits)
    assert waits[0] == 30
    assert max(waits) == 900
    run = world.run()
    assert (run.state, run.outcome, run.attempts) == (RunState.GRADING, None, 1)
    assert "killed its grader" in run.grading_problem
    assert run.grading_fails_since == 1000.0
    assert run.grading_retry_at is not None and run.grading_retry_at > world.clock.moment
    told = [event.kind for event in events.newest(world.state, run_id=1)]
    assert told.count("grading.failed") == 1


@pytest.mark.parametrize("most", [1000, 60])
def test_a_message_that_quotes_a_secret_from_the_submission_is_kept_without_it(
    world: World, grader: StandInGrader, most: int
) -> None:
    secret = "sk-" + "0123456789abcdef" * 6
    world.redaction.learn(["MODEL_KEY"], {"MODEL_KEY": secret})
    live = world.grading(grader)
    grader.answer = Judgement("rejected", None, f"the id {quoted(f'row {secret}', most)} is unknown")
    for _ in range(3):
        step(live)
    assert world.run().outcome is Outcome.INVALID
    stored = b"".join(path.read_bytes() for path in world.state_dir.glob("state.db*"))
    assert secret[:10].encode() not in stored
    assert b"[secret]" in stored and b"is unknown" in stored


def test_a_run_is_finished_as_soon_as_grading_works_again(world: World, grader: StandInGrader) -> None:
    live = world.grading(grader)
    step(live)
    grader.answer = Judgement.scored(0.9, "")
    step(live)
    assert world.run().state is RunState.GRADING
    world.clock.moment += 31
    step(live)
    step(live)
    assert world.run().state is RunState.FINISHED
    assert (world.run().score, world.run().grading_problem, world.run().grading_retry_at) == (0.9, "", None)


def test_a_request_grades_at_once_what_would_wait_also_after_a_restart_of_the_engine(
    world: World, grader: StandInGrader
) -> None:
    step(world.grading(grader))
    grader.answer = Judgement.scored(0.9, "")
    restarted = world.grading(grader)
    step(restarted)
    assert world.run().state is RunState.GRADING
    transitions.regrade(world.state, 1, by="ann", now=world.clock.now())
    step(restarted)
    step(restarted)
    assert world.run().state is RunState.FINISHED
    with pytest.raises(StateProblem, match="can't be graded again"):
        transitions.regrade(world.state, 1, by="ann", now=world.clock.now())


def test_a_clock_that_was_set_back_delays_no_grading_for_long(world: World, grader: StandInGrader) -> None:
    live = world.grading(grader)
    step(live)
    world.clock.moment -= 100_000
    grader.answer = Judgement.scored(0.9, "")
    step(live)
    step(live)
    assert world.run().state is RunState.FINISHED


@pytest.mark.parametrize("harm", ["changed", "removed", "unprepared", "unreadable answers"])
def test_nothing_that_happened_to_files_of_ours_is_held_against_a_submission(
    world: World, harm: str, tmp_path: Path
) -> None:
    data = tmp_path / "data" / COMPETITION
    shutil.copytree(
        Path(sweeps.get(world.state, "s").spec.data_dir) / COMPETITION / "prepared", data / "prepared"
    )
    with world.state.transaction():
        world.state.execute(
            "UPDATE sweeps SET spec = json_set(spec, '$.data_dir', ?)", (str(tmp_path / "data"),)
        )
    answers = data / "prepared/private/test.csv"
    match harm:
        case "changed":
            world.file.write_text("PassengerId,Transported\n")
        case "removed":
            world.file.unlink()
        case "unprepared":
            answers.unlink()
        case _:
            answers.write_bytes(b"\xff\xfe not a table")
    with Grader() as real:
        live = world.grading(real)

        def has_failed() -> bool:
            step(live)
            return bool(world.run().grading_problem)

        eventually(has_failed)
    assert world.run().state is RunState.GRADING
    assert world.run().outcome is None


def test_a_bug_of_ours_keeps_no_other_submission_from_being_graded(
    world: World, grader: StandInGrader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> GradeRequest:
        raise KeyError("a bug")

    monkeypatch.setattr(grading, "request_for", broken)
    step(world.grading(grader))
    assert world.run().state is RunState.GRADING
    assert "KeyError" in world.run().grading_problem
    assert world.logged


@pytest.mark.parametrize("meanwhile", ["launched again", "removed"])
def test_trouble_with_a_grade_that_nobody_waits_for_any_more_keeps_no_other_waiting(
    world: World, grader: StandInGrader, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    def broken(*_arguments: object) -> Report:
        raise KeyError("a bug")

    live = world.grading(grader)
    live.step()
    transitions.failed(world.state, world.attempt.id, Failure(FailureClass.CRASH, "it died"), now=4.0)
    if meanwhile == "removed":
        sweeps.remove(world.state, "s")
    else:
        transitions.requeued(world.state, 1, by="me", now=5.0)
        transitions.launch(world.state, 1, directory="runs/2", runtime="process", now=6.0)
    grader.answer = Judgement.scored(0.9, "")
    monkeypatch.setattr(grading, "report_on", broken)
    live.take_results()
    assert live.working == 0
    assert world.logged
    if meanwhile == "launched again":
        assert not world.run().grading_problem


def test_a_limit_that_the_submission_itself_exceeds_makes_it_invalid_and_says_which(
    world: World, grader: StandInGrader
) -> None:
    message = "Grading the submission takes more than 1,800 s of processor time."
    grader.answer = Judgement("limits_exceeded", None, message)
    live = world.grading(grader)
    step(live)
    step(live)
    assert world.run().outcome is Outcome.INVALID
    (graded,) = submissions.of_attempt(world.state, world.attempt.id)
    assert graded.message == message


def test_submissions_that_are_not_due_cost_no_queries_of_their_own(
    world: World, grader: StandInGrader
) -> None:
    grader.answer = Judgement.scored(0.9, "")
    live = world.grading(grader)
    step(live)

    def submitted(sequence: int) -> None:
        with world.state.transaction():
            for attempt in runs.live_attempts(world.state):
                path = f"{attempt.directory}/{sequence}.csv"
                submissions.add(world.state, attempt.id, Snapshot(sequence, 2.5, 0.5, "", 1, path))

    def queries() -> int:
        counted: list[str] = []
        world.state._connection.set_trace_callback(counted.append)
        live.step()
        world.state._connection.set_trace_callback(None)
        return len(counted)

    def launch(count: int) -> None:
        for run in [run for run in runs.of_sweep(world.state, "s") if run.state is RunState.QUEUED][:count]:
            attempt = transitions.launch(
                world.state, run.id, directory=f"runs/{run.id}", runtime="process", now=4.0
            )
            transitions.started(world.state, attempt.id, isolated=True, at=4.0, now=4.0)

    def cost_of(count: int, sequence: int) -> int:
        launch(count)
        submitted(sequence)
        for _ in range(count):
            step(live)  # each of them is tried once, and in trouble
        submitted(sequence + 1)
        return queries()

    few = cost_of(3, 2)
    assert cost_of(20, 4) == few


def test_a_run_that_waits_for_its_grade_holds_no_slot_memory_or_gpu(world: World) -> None:
    assert runs.occupying_counts(world.state) == {}
    assert runs.occupying_attempts(world.state) == {}
    assert runs.live_counts(world.state) == {"s": 1}
