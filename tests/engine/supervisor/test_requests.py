"""What may be asked of the engine: all or nothing, with a reason for every refusal."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.engine.agent_snapshots import AgentSnapshots
from mlebench_console.engine.control import Answer, EngineStatus, RefusedRequest
from mlebench_console.engine.datasets import Capacity, DatasetQueue
from mlebench_console.engine.datasets.requests import DatasetRequests
from mlebench_console.engine.needs.causes import read_causes
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import (
    AcknowledgeCause,
    AnnotateRuns,
    AnnotateSweep,
    AssignExperiment,
    ChosenRun,
    ClassifyRuns,
    PauseSweep,
    PrepareDatasets,
    RegradeRuns,
    RelaunchRuns,
    Request,
    ResumeSweep,
    SetBudget,
    SetConcurrency,
    StopRuns,
    StopSweep,
    VerifyDatasets,
    WithdrawAcknowledgement,
    file_request,
)
from mlebench_console.engine.scoreboard.own_runs import trial_of
from mlebench_console.engine.supervisor.requests import RequestDispatcher
from mlebench_console.engine.sweeps.checks import HostCapacity
from mlebench_console.engine.sweeps.forecast import Forecast, forecast
from mlebench_console.engine.sweeps.launch import SweepLaunches
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import EnvironmentProblem, ProblemRecord, UsageProblem
from mlebench_console.foundation.workers import WorkerPool
from mlebench_console.state import (
    acknowledgements,
    database,
    datasets,
    events,
    experiments,
    requests,
    runs,
    sweeps,
    transitions,
)
from mlebench_console.state.annotations import Annotation
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import DatasetState, PreparationOptions, RequestState, Run
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import budgets, model_calls
from mlebench_console.state.usage.budgets import BudgetScope
from mlebench_console.state.usage.model_calls import ModelUse
from tests.engine.harness import COMPETITION, launch_of
from tests.environment.runner.orders import order_with

HOST = HostCapacity(cpus=4, memory_bytes=8 * 10**9, gpus=0)
USUAL = {"agent_id": "dummy", "competitions": (COMPETITION,), "seeds": 2, "time_limit_seconds": 60}


class Requests:
    """The handlers of requests over a state, without an engine's loop around them."""

    def __init__(self, places: Places) -> None:
        places.state_dir.mkdir()
        self.places = places
        self.state = database.open_for_writing(places.state_dir)
        self.errors: list[str] = []
        clock = SystemClock()
        pool = WorkerPool()
        capacity = Capacity(downloads=1, preparations=1)
        dataset_queue = DatasetQueue(
            self.state, pool, clock, data_dir=places.data_dir, capacity=capacity, patience=60
        )
        asked = DatasetRequests(self.state, dataset_queue, places.data_dir, clock)
        agents = AgentSnapshots(self.state, places.state_dir, clock, self._log)
        self._desk = RequestDispatcher(
            self.state,
            places,
            Placements(places, clock, self._log),
            clock,
            self._log,
            SweepLaunches(self.state, places, clock, agents, lambda: HOST),
            asked.handlers,
        )

    def _log(self, text: str, error: BaseException | None) -> None:
        self.errors.append(f"{text}: {error!r}")

    def file(self, request: Request, *, now: float | None = None, not_before: float | None = None) -> int:
        now = time.time() if now is None else now
        return file_request(self.state, request, author="tester@here", now=now, not_before=not_before)

    def ask(self, request: Request) -> Answer:
        return self.answer_to(self.file(request))

    def answer_to(self, number: int) -> Answer:
        self._desk.step()
        self.until_answered()
        answered = requests.get(self.state, number)
        assert answered is not None
        if answered.state is RequestState.REFUSED:
            raise RefusedRequest.because(ProblemRecord(**answered.answer))
        assert answered.state is RequestState.DONE
        return Answer(**answered.answer)

    def step(self) -> None:
        self._desk.step()

    def until_answered(self) -> None:
        while self._desk.is_waiting:
            time.sleep(0.01)
            self._desk.step()

    def state_of(self, number: int) -> RequestState:
        found = requests.get(self.state, number)
        assert found is not None
        return found.state

    def shown(self, *chosen: Run) -> tuple[ChosenRun, ...]:
        """Name runs in a request as they are now."""
        now = [runs.get(self.state, run.id) for run in chosen]
        return tuple(ChosenRun(run.id, run.attempts, transitions.is_reroll(run)) for run in now)

    def launch(self, **arguments: Any) -> Answer:
        return self.ask(launch_of(**(USUAL | arguments)))

    def dry_run(self, **arguments: Any) -> Forecast:
        """What is told beforehand of a launch that this engine is asked for."""
        engine = EngineStatus(
            running=True,
            slots=HOST.cpus,
            memory_for_runs=HOST.memory_bytes,
            gpus=HOST.gpus,
            data_dir=str(self.places.data_dir),
        )
        own = {"data_dir": str(self.places.data_dir)}
        return forecast(launch_of(**(USUAL | own | arguments)), self.places, engine)


@pytest.fixture
def requester(tmp_path: Path, prepared_data: Path) -> Iterator[Requests]:
    made = Requests(Places(tmp_path / "config.toml", prepared_data, tmp_path / "state"))
    yield made
    assert made.errors == []
    made.state.close()


def fail(state: Database, run_id: int, kind: FailureClass) -> None:
    """Let a run be launched and fail."""
    run = runs.get(state, run_id)
    directory = f"runs/{run_id}-{run.attempts + 1}"
    attempt = transitions.launch(state, run_id, directory=directory, runtime="plain", now=1)
    transitions.failed(state, attempt.id, Failure(kind, "it failed"), now=2)


def test_a_launch_makes_a_readable_name_its_runs_and_its_experiment(requester: Requests) -> None:
    assert requester.launch().sweep_id == "dummy-1"
    assert requester.launch(experiment="mine").sweep_id == "dummy-2"
    assert requester.launch(name="named").sweep_id == "named"
    assert [run.seed for run in runs.of_sweep(requester.state, "dummy-1")] == [1, 2]
    assert experiments.of_sweep(requester.state, "dummy-2") == ("mine",)
    found = datasets.find(requester.state, COMPETITION, "v1")
    assert found is not None
    assert found.state is DatasetState.PREPARED


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        ({"agent_id": "dumy"}, "Did you mean 'dummy'"),
        ({"competitions": ("spaceship-titanik",)}, "spaceship-titanic"),
        ({"competitions": ("leaf-classification",)}, "not prepared"),
        ({"competitions": (COMPETITION, "leaf-classification"), "prepare_missing": True}, "no raw data"),
        ({"seeds": 0}, "'seeds' must be a whole number from 1 to 1000, not 0"),
        ({"time_limit_seconds": 0}, "time_limit_seconds"),
        ({"cpus": 5}, "this engine has 4"),
        ({"memory_bytes": 9 * 10**9}, "this engine has 8.0 GB"),
        ({"start_ramp_seconds": -1}, "'start_ramp_seconds'"),
        ({"gpus": 1}, "does not support gpus"),
        ({"edition": "v2"}, "no edition 'v2'"),
        ({"runtime": "slurm"}, "no runtime 'slurm'"),
        ({"network": "some"}, "no network 'some'"),
        ({"name": "../escape"}, "is not a valid name of a sweep"),
        ({"data_dir": "/elsewhere"}, "data directory"),
        ({"concurrency": 0}, "'concurrency'"),
    ],
)
def test_a_launch_that_can_not_work_creates_nothing_and_a_dry_run_says_the_same(
    requester: Requests, arguments: dict[str, Any], telling: str
) -> None:
    with pytest.raises(RefusedRequest) as refused:
        requester.launch(**arguments)
    assert telling in str(refused.value)
    wrong = [check for check in requester.dry_run(**arguments).checks if not check.allows_work]
    assert str(refused.value) == str(UsageProblem(wrong[0].text, "", wrong[0].next_step))
    assert sweeps.all_sweeps(requester.state) == []
    assert datasets.all_datasets(requester.state) == []
    assert events.newest(requester.state) == []


def test_a_daemon_that_does_not_answer_keeps_no_other_request_waiting(
    requester: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    requester.launch()
    answers = threading.Event()

    def hang(_timeout_seconds: int) -> None:
        answers.wait(20)
        raise EnvironmentProblem("Docker can't be used", "the daemon does not answer")

    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.connect", hang)
    launch = requester.file(launch_of(**USUAL, runtime="docker"))
    other = requester.file(PauseSweep(sweep_id="dummy-1"))
    begun = time.monotonic()
    requester.step()
    assert time.monotonic() - begun < 10
    assert requester.state_of(other) is RequestState.DONE
    assert requester.state_of(launch) is RequestState.FILED
    answers.set()
    requester.until_answered()
    assert requester.state_of(launch) is RequestState.REFUSED
    with pytest.raises(RefusedRequest, match="Docker can't be used"):
        requester.launch(runtime="docker")


def test_a_launch_without_its_secrets_is_refused_by_their_name(requester: Requests, tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "keyed"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text("true\n")
    config = "keyed:\n  start: keyed/start.sh\n  env_vars:\n    KEY: ${{ secrets.MISSING_KEY }}\n"
    (folder / "config.yaml").write_text(config)
    with pytest.raises(RefusedRequest, match="MISSING_KEY"):
        requester.launch(agent_id="keyed", agents_dir=str(tmp_path / "agents"))
    assert sweeps.all_sweeps(requester.state) == []


def test_an_agents_folder_that_can_not_be_kept_is_refused_before_and_at_the_launch(
    requester: Requests, tmp_path: Path
) -> None:
    folder = tmp_path / "agents" / "linked"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text("true\n")
    (folder / "config.yaml").write_text("linked:\n  start: linked/start.sh\n")
    (folder / "out").symlink_to("../../elsewhere")
    asked = {"agent_id": "linked", "agents_dir": str(tmp_path / "agents")}
    (wrong,) = (check for check in requester.dry_run(**asked).checks if not check.allows_work)
    with pytest.raises(RefusedRequest, match="which is not in linked") as refused:
        requester.launch(**asked)
    assert str(refused.value) == f"{wrong.text}\n{wrong.next_step}"


def test_a_gateway_beside_agents_that_are_not_isolated_is_told_to_hide_no_key(
    requester: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    forecast = requester.dry_run(runtime="plain", gateway=["openai"])
    warnings = [check.text for check in forecast.checks if check.warns]
    assert any("not isolated can read OPENAI_API_KEY" in text for text in warnings)


def test_more_gpus_than_the_host_has_are_refused_before_and_at_the_launch(
    requester: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.connect", lambda _seconds: None)
    monkeypatch.setattr("mlebench_console.engine.sweeps.checks.images_of_runs", lambda _agent: ())
    asked = {"runtime": "docker", "gpus": 1}
    (wrong,) = (check for check in requester.dry_run(**asked).checks if not check.allows_work)
    with pytest.raises(RefusedRequest, match="a run takes 1 GPU, this host has 0"):
        requester.launch(**asked)
    assert "this host has 0" in wrong.text


def test_the_same_launch_again_is_the_same_sweep_and_another_of_its_name_is_refused(
    requester: Requests,
) -> None:
    requester.launch(name="named")
    again = requester.launch(name="named")
    assert again.sweep_id == "named" and "nothing was launched" in again.text
    assert len(runs.of_sweep(requester.state, "named")) == 2
    with pytest.raises(RefusedRequest, match="already a sweep 'named': it differs in seeds"):
        requester.launch(name="named", seeds=3)
    (_, same) = requester.dry_run(name="named").checks
    assert same.allows_work and same.warns and "nothing would be launched" in same.text
    (_, other, *_) = requester.dry_run(name="named", seeds=3).checks
    assert not other.allows_work and "already a sweep 'named': it differs in seeds" in other.text
    assert len(sweeps.all_sweeps(requester.state)) == 1


SPEC = asdict(launch_of(**USUAL).spec)


@pytest.mark.parametrize(
    ("kind", "arguments", "telling"),
    [
        ("sweep.explode", {}, "this engine knows no request 'sweep.explode'"),
        ("sweep.pause", {}, "sweep.pause needs 'sweep_id'"),
        ("sweep.pause", {"sweep_id": "s", "colour": "red"}, "sweep.pause has no argument 'colour'"),
        ("run.stop", {"runs": [True]}, "a list of records with id, attempt, reroll"),
        (
            "run.classify",
            {"runs": [], "failure_class": "weather"},
            "'failure_class' of run.classify is not one of",
        ),
        ("sweep.launch", {"spec": {**SPEC, "competitions": []}}, "list of texts"),
        ("sweep.launch", {"spec": {**SPEC, "seeds": "3"}}, "whole number"),
        ("sweep.launch", {"spec": {**SPEC, "conditions": {"time_limit_seconds": None}}}, "not a number"),
        (
            "sweep.launch",
            {"spec": {**SPEC, "conditions": {"time_limit_seconds": math.nan}}},
            "not a number of at most 18 digits",
        ),
    ],
)
def test_a_request_of_another_version_is_refused_with_what_is_not_known(
    requester: Requests, kind: str, arguments: dict[str, Any], telling: str
) -> None:
    number = requests.file(requester.state, kind, arguments, text=kind, author="t", now=time.time())
    with pytest.raises(RefusedRequest, match=re.escape(telling)):
        requester.answer_to(number)


def test_a_run_that_does_not_exist_is_not_stopped(requester: Requests) -> None:
    with pytest.raises(RefusedRequest, match="no run 99"):
        requester.ask(StopRuns(runs=(ChosenRun(99, 0),)))


def test_a_sweep_is_paused_resumed_and_given_more_room(requester: Requests) -> None:
    requester.launch()
    requester.ask(PauseSweep(sweep_id="dummy-1"))
    assert sweeps.get(requester.state, "dummy-1").state is SweepState.PAUSED
    requester.ask(ResumeSweep(sweep_id="dummy-1"))
    assert sweeps.get(requester.state, "dummy-1").state is SweepState.ACTIVE
    requester.ask(SetConcurrency(sweep_id="dummy-1", value=7))
    assert sweeps.get(requester.state, "dummy-1").concurrency == 7
    with pytest.raises(RefusedRequest, match="starts nothing"):
        requester.ask(SetConcurrency(sweep_id="dummy-1", value=0))


def test_stopping_a_sweep_stops_what_waits_and_asks_what_runs(requester: Requests) -> None:
    requester.launch()
    live, queued = runs.of_sweep(requester.state, "dummy-1")
    directory = protocol.attempt_folder("dummy-1", COMPETITION, 1, 1, "abc")
    attempt = transitions.launch(requester.state, live.id, directory=directory, runtime="plain", now=1)
    transitions.started(requester.state, attempt.id, isolated=False, at=1, now=1)
    requester.ask(StopSweep(sweep_id="dummy-1"))
    assert runs.get(requester.state, queued.id).state is RunState.STOPPED
    assert runs.get(requester.state, live.id).state is RunState.RUNNING
    stop = protocol.read(requester.places.state_dir / directory / protocol.STOP, protocol.Stop)
    assert stop.by == "tester@here"


def test_a_run_whose_directory_holds_another_attempt_is_stopped_at_once(requester: Requests) -> None:
    requester.launch()
    live, _ = runs.of_sweep(requester.state, "dummy-1")
    directory = protocol.attempt_folder("dummy-1", COMPETITION, 1, 1, "abc")
    attempt = transitions.launch(
        requester.state, live.id, directory=directory, runtime="plain", now=1, token="abc"
    )
    folder = requester.places.state_dir / directory
    folder.mkdir(parents=True)
    protocol.write(folder / protocol.ORDER, order_with(attempt_id=attempt.id, token="another"))
    requester.ask(StopRuns(runs=requester.shown(live)))
    assert runs.get(requester.state, live.id).state is RunState.STOPPED
    assert not (folder / protocol.STOP).exists()


def test_some_of_several_that_can_not_be_stopped_stop_none(requester: Requests) -> None:
    requester.launch()
    failed, queued = runs.of_sweep(requester.state, "dummy-1")
    fail(requester.state, failed.id, FailureClass.CRASH)
    with pytest.raises(RefusedRequest, match="it is failed"):
        requester.ask(StopRuns(runs=requester.shown(queued, failed)))
    assert runs.get(requester.state, queued.id).state is RunState.QUEUED


def test_a_relaunch_counts_as_a_reroll_only_when_it_was_the_agents_own_failure(requester: Requests) -> None:
    requester.launch()
    ours, theirs = runs.of_sweep(requester.state, "dummy-1")
    fail(requester.state, ours.id, FailureClass.INFRASTRUCTURE)
    fail(requester.state, theirs.id, FailureClass.CRASH)
    requester.ask(RelaunchRuns(runs=requester.shown(ours, theirs)))
    again = [runs.get(requester.state, run.id) for run in (ours, theirs)]
    assert [run.state for run in again] == [RunState.QUEUED, RunState.QUEUED]
    assert [run.rerolls for run in again] == [0, 1]
    with pytest.raises(RefusedRequest, match=f"run {ours.id} has changed meanwhile: it is now queued"):
        requester.ask(RelaunchRuns(runs=requester.shown(ours)))


def test_a_relaunch_that_was_free_when_it_was_asked_never_becomes_a_reroll(requester: Requests) -> None:
    """While the question was open, the engine's own retry ended by the agent's doing, or the class was corrected."""
    requester.launch()
    retried, corrected = runs.of_sweep(requester.state, "dummy-1")
    for run in (retried, corrected):
        fail(requester.state, run.id, FailureClass.INFRASTRUCTURE)
    questions = [requester.shown(run) for run in (retried, corrected)]
    transitions.requeued(requester.state, retried.id, by="engine", now=3)
    fail(requester.state, retried.id, FailureClass.CRASH)
    requester.ask(ClassifyRuns(runs=requester.shown(corrected), failure_class=FailureClass.CRASH))
    with pytest.raises(
        RefusedRequest, match=r"has changed meanwhile: it is now failed \(crash\), attempt 2"
    ) as told:
        requester.ask(RelaunchRuns(runs=questions[0]))
    assert told.value.next_step == "Check it, then try again."
    with pytest.raises(RefusedRequest, match="relaunching it would re-roll its seed"):
        requester.ask(RelaunchRuns(runs=questions[1]))
    assert [run.rerolls for run in runs.of_sweep(requester.state, "dummy-1")] == [0, 0]
    requester.ask(RelaunchRuns(runs=requester.shown(corrected)))
    assert runs.get(requester.state, corrected.id).rerolls == 1


@pytest.mark.parametrize(
    "request_for", [StopRuns, partial(ClassifyRuns, failure_class=FailureClass.INFRASTRUCTURE)]
)
def test_what_was_decided_about_one_attempt_does_not_meet_the_next(
    requester: Requests, request_for: Callable[..., Request]
) -> None:
    requester.launch()
    (run, _) = runs.of_sweep(requester.state, "dummy-1")
    fail(requester.state, run.id, FailureClass.INFRASTRUCTURE)
    shown = requester.shown(run)
    transitions.requeued(requester.state, run.id, by="engine", now=3)
    attempt = transitions.launch(requester.state, run.id, directory="again", runtime="plain", now=4)
    if request_for is not StopRuns:
        transitions.failed(requester.state, attempt.id, Failure(FailureClass.CRASH, "it failed"), now=5)
    before = runs.get(requester.state, run.id)
    with pytest.raises(RefusedRequest, match=f"run {run.id} has changed meanwhile"):
        requester.ask(request_for(runs=shown))
    assert runs.get(requester.state, run.id) == before


def test_a_relaunch_wakes_a_stopped_sweep(requester: Requests) -> None:
    requester.launch()
    requester.ask(StopSweep(sweep_id="dummy-1"))
    (first, _) = runs.of_sweep(requester.state, "dummy-1")
    requester.ask(RelaunchRuns(runs=requester.shown(first)))
    assert sweeps.get(requester.state, "dummy-1").state is SweepState.ACTIVE
    assert runs.get(requester.state, first.id).state is RunState.QUEUED


def test_what_can_not_be_graded_is_graded_again_when_somebody_asks(requester: Requests) -> None:
    requester.launch()
    run, other = runs.of_sweep(requester.state, "dummy-1")
    attempt = transitions.launch(requester.state, run.id, directory="d", runtime="plain", now=1)
    transitions.agent_ended(requester.state, attempt.id, EndReason.EXITED, exit_code=0, at=2, now=2)
    transitions.collected(requester.state, attempt.id, now=2)
    transitions.grading_failed(requester.state, attempt.id, "killed", retry_at=900, now=3)
    requester.ask(RegradeRuns(runs=requester.shown(runs.get(requester.state, run.id))))
    waiting = runs.get(requester.state, run.id)
    assert (waiting.state, waiting.grading_retry_at) == (RunState.GRADING, None)
    assert waiting.grading_problem == "killed"
    with pytest.raises(RefusedRequest, match="its grading has not failed"):
        requester.ask(RegradeRuns(runs=requester.shown(other)))


def test_a_class_is_corrected_by_hand_with_a_note(requester: Requests) -> None:
    requester.launch()
    failed, queued = runs.of_sweep(requester.state, "dummy-1")
    fail(requester.state, failed.id, FailureClass.CRASH)
    correction = partial(ClassifyRuns, failure_class=FailureClass.INFRASTRUCTURE, note="the rack lost power")
    requester.ask(correction(runs=requester.shown(failed)))
    corrected = runs.get(requester.state, failed.id)
    assert corrected.failure_class is FailureClass.INFRASTRUCTURE
    assert corrected.failure_text == "the rack lost power"
    with pytest.raises(RefusedRequest, match="queued, not failed"):
        requester.ask(correction(runs=requester.shown(queued)))


def test_a_dataset_that_is_there_needs_no_work(requester: Requests) -> None:
    answer = requester.ask(PrepareDatasets(competition_ids=(COMPETITION,)))
    assert answer.text == "1 dataset is already prepared"
    with pytest.raises(RefusedRequest, match="leaf-classification: there are no raw data"):
        requester.ask(PrepareDatasets(competition_ids=("leaf-classification",)))


def test_runs_wait_for_data_that_are_about_to_be_replaced(requester: Requests, tmp_path: Path) -> None:
    requester.ask(
        PrepareDatasets(
            competition_ids=(COMPETITION,), again=True, options=PreparationOptions(source=str(tmp_path))
        )
    )
    requester.launch()
    assert runs.next_ready(requester.state, "dummy-1", "v1", limit=1) == []
    requester.ask(
        PrepareDatasets(
            competition_ids=(COMPETITION,), again=True, options=PreparationOptions(source=str(tmp_path))
        )
    )
    with pytest.raises(RefusedRequest, match="is being prepared"):
        requester.ask(VerifyDatasets(competition_ids=(COMPETITION,)))
    found = datasets.find(requester.state, COMPETITION, "v1")
    assert found is not None and found.state is DatasetState.WAITING


def test_an_experiment_gets_a_sweep(requester: Requests) -> None:
    requester.launch()
    requester.ask(AssignExperiment(experiment_id="row", sweep_id="dummy-1"))
    assert experiments.of_sweep(requester.state, "dummy-1") == ("row",)


def test_a_grading_run_can_not_be_stopped(requester: Requests) -> None:
    requester.launch()
    (run, _) = runs.of_sweep(requester.state, "dummy-1")
    directory = protocol.attempt_folder("dummy-1", COMPETITION, 1, 1, "abc")
    attempt = transitions.launch(requester.state, run.id, directory=directory, runtime="plain", now=1)
    transitions.agent_ended(requester.state, attempt.id, EndReason.EXITED, exit_code=0, at=2, now=2)
    transitions.collected(requester.state, attempt.id, now=2)
    with pytest.raises(RefusedRequest, match="it is grading"):
        requester.ask(StopRuns(runs=requester.shown(run)))
    transitions.finished(requester.state, attempt.id, Outcome.GOLD, now=3)


def test_raising_a_budget_queues_again_for_free_what_its_end_had_excused(requester: Requests) -> None:
    requester.launch(name="s")
    requester.ask(AssignExperiment(sweep_id="s", experiment_id="row"))
    assert (
        "12 calls"
        in requester.ask(SetBudget(scope=BudgetScope.SWEEP, name="s", limits=Budget(calls=12, usd=0))).text
    )
    state = requester.state
    first, second = runs.of_sweep(state, "s")[:2]
    for run, excused in ((first, True), (second, False)):
        attempt = transitions.launch(state, run.id, directory=f"runs/{run.id}", runtime="plain", now=1)
        model_calls.add(state, attempt.id, [ModelUse(attempt.id, "openai", "m", calls=12)], 0)
        failure = Failure(FailureClass.BUDGET, "used up", excused=excused)
        transitions.failed(state, attempt.id, failure, now=2)
    assert [trial_of(runs.get(state, run.id)).earned for run in (first, second)] == [None, frozenset()]
    assert (
        "queued"
        not in requester.ask(SetBudget(scope=BudgetScope.SWEEP, name="s", limits=Budget(calls=24))).text
    )
    requester.ask(SetBudget(scope=BudgetScope.EXPERIMENT, name="row", limits=Budget(calls=20)))
    assert (
        "queued"
        not in requester.ask(SetBudget(scope=BudgetScope.SWEEP, name="s", limits=Budget(calls=100))).text
    )
    raised = requester.ask(
        SetBudget(scope=BudgetScope.EXPERIMENT, name="row", limits=Budget(calls=100, tokens=10**6))
    )
    assert raised.text == (
        "the runs of experiment row share a budget of model calls: 100 calls, 1,000,000 tokens; 1 run is queued again"
    )
    again = runs.get(state, first.id)
    assert (again.state, again.rerolls) == (RunState.QUEUED, 0)
    assert transitions.is_reroll(runs.get(state, second.id))
    requester.ask(SetBudget(scope=BudgetScope.SWEEP, name="s", limits=Budget(calls=0)))
    assert [one.scope for one in budgets.all_budgets(state)] == ["experiment"]


@pytest.mark.parametrize(
    ("scope", "name", "calls", "told"),
    [
        (BudgetScope.SWEEP, "s", -1, "a budget can.t be negative"),
        (BudgetScope.EXPERIMENT, "x", 1, "there is no experiment 'x'"),
        (BudgetScope.SWEEP, "nobody", 1, "there is no sweep 'nobody'"),
    ],
)
def test_a_budget_of_nothing_or_nobody_is_refused(
    requester: Requests, scope: BudgetScope, name: str, calls: int, told: str
) -> None:
    requester.launch(name="s")
    with pytest.raises(RefusedRequest, match=told):
        requester.ask(SetBudget(scope=scope, name=name, limits=Budget(calls=calls)))


def test_a_request_that_waits_is_done_once_at_its_time_and_never_when_it_was_withdrawn(
    requester: Requests,
) -> None:
    requester.launch()
    one, other = runs.of_all_sweeps(requester.state)
    now = time.time()

    def stop_later(run: Run, *, at: float) -> int:
        return requester.file(StopRuns(runs=requester.shown(run)), now=now, not_before=at)

    kept, undone = stop_later(one, at=now + 60), stop_later(other, at=now + 60)
    requester.step()
    waiting = requests.waiting(requester.state)
    assert [(request.id, request.text) for request in waiting] == [
        (kept, "stopping 1 run"),
        (undone, "stopping 1 run"),
    ]
    assert requests.withdraw(requester.state, undone, by="tester@here", now=now)
    # As the clock comes to it, whatever has become of the console.
    with requester.state.transaction():
        requester.state.execute("UPDATE requests SET not_before = ?", (now,))
    requester.step()
    assert (requester.state_of(kept), requester.state_of(undone)) == (
        RequestState.DONE,
        RequestState.WITHDRAWN,
    )
    assert runs.get(requester.state, one.id).state is RunState.STOPPED
    assert runs.get(requester.state, other.id).state is RunState.QUEUED
    assert not requests.withdraw(requester.state, kept, by="tester@here", now=now)
    assert requests.waiting(requester.state) == []


def test_a_request_that_is_withdrawn_while_others_are_answered_is_not_done(requester: Requests) -> None:
    requester.launch()
    one, other = runs.of_all_sweeps(requester.state)
    numbers = [requester.file(StopRuns(runs=requester.shown(run)), now=1.0) for run in (one, other)]
    opened = requests.open_requests(requester.state, now=2.0)
    assert requests.withdraw(requester.state, numbers[1], by="t", now=2.0)
    for request in opened:
        requester._desk._answer(request)
    assert [runs.get(requester.state, run.id).state for run in (one, other)] == [
        RunState.STOPPED,
        RunState.QUEUED,
    ]


def test_notes_and_tags_are_kept_with_who_and_when_and_as_events(requester: Requests) -> None:
    sweep_id = requester.launch().sweep_id
    one, other = runs.of_all_sweeps(requester.state)
    both = (one.id, other.id)
    requester.ask(
        AnnotateRuns(run_ids=both, change=Annotation("GPU\n lost \u202e twice", ("GPU", "look", "gpu")))
    )
    answer = requester.ask(
        AnnotateRuns(run_ids=(one.id,), change=Annotation(None, ("night",), ("look", "unknown")))
    )
    assert answer.text == "1 run is tagged night and no longer tagged look, unknown"
    requester.ask(AnnotateSweep(sweep_id=sweep_id or "", change=Annotation("baseline", ("final",))))
    noted = runs.get(requester.state, one.id)
    assert (noted.note, noted.noted_by) == ("GPU lost twice", "tester@here")
    assert noted.noted_at == pytest.approx(time.time(), abs=60)
    assert [(tag.name, tag.by) for tag in noted.tags] == [("gpu", "tester@here"), ("night", "tester@here")]
    sweep = sweeps.get(requester.state, sweep_id or "")
    assert (sweep.note, [tag.name for tag in sweep.tags]) == ("baseline", ["final"])
    told = [event.text for event in events.newest(requester.state, run_id=one.id)]
    assert told[:2] == [
        "tagged night; no longer tagged look, by tester@here",
        "tagged gpu, look; note: GPU lost twice, by tester@here",
    ]
    requester.ask(AnnotateRuns(run_ids=both, change=Annotation("")))
    assert {run.note for run in runs.of_all_sweeps(requester.state)} == {""}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (Annotation("x" * 2001), "the note has 2,001 characters (at most 2,000)"),
        (Annotation(add=("two words",)), "'two words' can't be a tag"),
        (Annotation(add=("\x1b[31mred",)), "can't be a tag"),
        (Annotation(add=tuple(f"t{number}" for number in range(21))), "more than 20 tags"),
        (Annotation(), "neither a note nor a tag"),
    ],
)
def test_notes_and_tags_that_cannot_be_kept_are_refused_and_nothing_is_changed(
    requester: Requests, change: Annotation, why: str
) -> None:
    requester.launch()
    one, other = runs.of_all_sweeps(requester.state)
    with pytest.raises(RefusedRequest, match=re.escape(why)):
        requester.ask(AnnotateRuns(run_ids=(one.id, other.id), change=change))
    assert runs.of_all_sweeps(requester.state) == [one, other]


def test_a_cause_is_acknowledged_with_a_reason_and_shown_again(requester: Requests) -> None:
    launched = requester.launch()
    assert launched.sweep_id is not None
    run = runs.of_sweep(requester.state, launched.sweep_id)[0]
    fail(requester.state, run.id, FailureClass.INFRASTRUCTURE)
    (group,) = read_causes(requester.state, time.time())
    with pytest.raises(RefusedRequest, match="needs a reason"):
        requester.ask(AcknowledgeCause(key=group.key, reason=" "))
    with pytest.raises(RefusedRequest, match="no run has the cause 'crash-0'"):
        requester.ask(AcknowledgeCause(key="crash-0", reason="x", text="made up"))
    with pytest.raises(RefusedRequest, match="30 days"):
        requester.ask(AcknowledgeCause(key=group.key, reason="x", seconds=1e9))
    requester.ask(AcknowledgeCause(key=group.key, reason="driver \x1breset"))
    (group,) = read_causes(requester.state, time.time())
    said = group.acknowledgement
    assert said is not None and group.is_acknowledged(time.time())
    assert (said.author, said.reason, said.until) == ("tester@here", "driver \\u001breset", None)
    snoozed = requester.ask(AcknowledgeCause(key=group.key, reason="later", seconds=60.0))
    assert snoozed.text.startswith("snoozed until")
    others = {"key": "host-0123", "text": "the disk is full"}
    requester.ask(AcknowledgeCause(reason="it is being cleaned", seconds=9.0, **others))
    assert set(acknowledgements.all_acknowledgements(requester.state)) == {group.key, "host-0123"}
    requester.ask(WithdrawAcknowledgement(key=group.key))
    assert read_causes(requester.state, time.time())[0].acknowledgement is None
    with pytest.raises(RefusedRequest, match="not acknowledged"):
        requester.ask(WithdrawAcknowledgement(key=group.key))
    requester.ask(RelaunchRuns(runs=requester.shown(run)))
    assert read_causes(requester.state, time.time()) == ()
    late = "relaunched while this was typed"
    requester.ask(AcknowledgeCause(key=group.key, reason=late, text="it failed"))
    kinds = [event.kind for event in events.newest(requester.state) if event.kind.startswith("cause.")]
    assert kinds == [
        "cause.acknowledged",
        "cause.taken_back",
        "cause.snoozed",
        "cause.snoozed",
        "cause.acknowledged",
    ]
