"""Handle requests of consoles and commands: one method per class, in one transaction together with the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from mlebench_console.engine.needs.causes import read_causes
from mlebench_console.engine.needs.need import is_about_runs
from mlebench_console.engine.placements import Placements
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import (
    AcknowledgeCause,
    AnnotateRuns,
    AnnotateSweep,
    Answer,
    AssignExperiment,
    ClassifyRuns,
    Handlers,
    LaunchSweep,
    PauseSweep,
    RegradeRuns,
    RelaunchRuns,
    ResumeSweep,
    RunsRequest,
    SetBudget,
    SetConcurrency,
    SetPriority,
    StopRuns,
    StopSweep,
    SweepRequest,
    WithdrawAcknowledgement,
    read_request,
)
from mlebench_console.engine.runs.starting import ForeignDirectory, ask_to_stop
from mlebench_console.engine.sweeps.launch import SweepLaunches
from mlebench_console.environment.runner.protocol import Stop
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.problems import Problem, UsageProblem
from mlebench_console.foundation.text import plural, visible
from mlebench_console.state import acknowledgements, events, experiments, requests, runs, sweeps, transitions
from mlebench_console.state.annotations import Annotation, annotate
from mlebench_console.state.causes import cause_key
from mlebench_console.state.database import Database, UnusableState
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import FailureClass, RunState, SweepState
from mlebench_console.state.records import IMPORTED, Acknowledgement, FiledRequest, RequestState, Run
from mlebench_console.state.usage import budgets
from mlebench_console.state.usage.budgets import BudgetScope

_PAUSED = "paused: live runs continue, and no more are started"
_LONGEST_SNOOZE_SECONDS = 30 * 86_400.0
_LONGEST_TEXT = 300


class RequestDispatcher:
    """Executes and answers the requests that consoles and commands have filed."""

    def __init__(
        self,
        database: Database,
        places: Places,
        placements: Placements,
        clock: Clock,
        log: Log,
        launches: SweepLaunches,
        handlers: Handlers,
    ) -> None:
        self._database = database
        self._places = places
        self._placements = placements
        self._clock = clock
        self._log = log
        self._launches = launches
        # Whether there are requests that wait for their time and can still be withdrawn.
        self._has_later = False
        self._handlers: Handlers = {
            LaunchSweep: launches.launch,
            PauseSweep: partial(self._set_state, SweepState.PAUSED, _PAUSED),
            ResumeSweep: partial(self._set_state, SweepState.ACTIVE, "active"),
            StopSweep: self._stop_sweep,
            SetConcurrency: self._set_concurrency,
            SetPriority: self._set_priority,
            AnnotateSweep: self._annotate_sweep,
            AssignExperiment: self._assign,
            SetBudget: self._set_budget,
            RelaunchRuns: self._relaunch,
            StopRuns: self._stop_runs,
            RegradeRuns: self._regrade,
            ClassifyRuns: self._classify,
            AnnotateRuns: self._annotate_runs,
            AcknowledgeCause: self._acknowledge,
            WithdrawAcknowledgement: self._withdraw_acknowledgement,
            **handlers,
        }

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits for work of this engine, or for its time."""
        return self._launches.is_busy or self._has_later

    def step(self) -> None:
        """Answer all open requests that are due, oldest first."""
        for filed in requests.open_requests(self._database, now=self._clock.now()):
            self._answer(filed)
        self._has_later = bool(requests.waiting(self._database))

    def _answer(self, filed: FiledRequest) -> None:
        try:
            with self._database.transaction():
                now = requests.get(self._database, filed.id)
                if now is None or now.state is not RequestState.FILED:
                    return  # withdrawn since it was read
                request = read_request(filed.kind, filed.arguments)
                answer = self._handlers[type(request)](request, filed.author)
                if answer is not None:
                    self._write(filed, RequestState.DONE, asdict(answer))
        except UnusableState:
            raise  # the request stays open until the state can be used again
        except Problem as problem:
            self._refuse(filed, problem)
        except Exception as error:  # noqa: BLE001 - one bad request must not keep the others from their answers
            self._log(f"request {filed.id} ({filed.text})", error)
            why = f"{type(error).__name__} in the engine"
            self._refuse(filed, Problem(f"{filed.text} failed", why, f"See {self._places.engine_log}."))

    def _refuse(self, filed: FiledRequest, problem: Problem) -> None:
        self._write(filed, RequestState.REFUSED, asdict(problem.record))

    def _write(self, filed: FiledRequest, state: RequestState, answer: dict[str, Any]) -> None:
        requests.answer(self._database, filed.id, state, answer, now=self._clock.now())

    def _set_state(self, state: SweepState, text: str, request: SweepRequest, _by: str) -> Answer:
        sweep = sweeps.get(self._database, request.sweep_id)
        sweeps.set_state(self._database, sweep.id, state, now=self._clock.now())
        return Answer(f"sweep {sweep.id} is {text}", sweep.id)

    def _stop_sweep(self, request: StopSweep, by: str) -> Answer:
        sweep = sweeps.get(self._database, request.sweep_id)
        sweeps.set_state(self._database, sweep.id, SweepState.STOPPED, now=self._clock.now())
        stopped = [
            run
            for run in runs.of_sweep(self._database, sweep.id)
            if not run.has_ended and run.state is not RunState.GRADING
        ]
        for run in stopped:
            self._stop(run, by)
        return Answer(f"sweep {sweep.id} is stopped with {plural(len(stopped), 'run')}", sweep.id)

    def _set_concurrency(self, request: SetConcurrency, _by: str) -> Answer:
        sweep = sweeps.get(self._database, request.sweep_id)
        if request.value < 1:
            raise UsageProblem(
                f"a concurrency of {request.value} starts nothing", "", "Pause the sweep instead."
            )
        sweeps.set_concurrency(self._database, sweep.id, request.value, now=self._clock.now())
        return Answer(f"sweep {sweep.id} runs at most {request.value} at once", sweep.id)

    def _set_priority(self, request: SetPriority, _by: str) -> Answer:
        sweep = sweeps.get(self._database, request.sweep_id)
        sweeps.set_priority(self._database, sweep.id, request.value, now=self._clock.now())
        return Answer(f"sweep {sweep.id} has priority {request.value}", sweep.id)

    def _relaunch(self, request: RelaunchRuns, by: str) -> Answer:
        chosen = self._chosen(request)
        now = self._clock.now()
        for run, seen in zip(chosen, request.runs, strict=True):
            if sweeps.get(self._database, run.sweep_id).spec.conditions.runtime == IMPORTED:
                raise UsageProblem(f"run {run.id} can't be relaunched", "it was imported, not run here")
            if not run.has_ended:
                raise _has_changed(run)
            if transitions.is_reroll(run) and not seen.reroll:
                raise _has_changed(run, ", and relaunching it would re-roll its seed")
        for run in chosen:
            transitions.requeued(self._database, run.id, by=by, now=now)
            if sweeps.get(self._database, run.sweep_id).state is SweepState.STOPPED:
                sweeps.set_state(self._database, run.sweep_id, SweepState.ACTIVE, now=now)
        return Answer(f"{_runs(len(chosen))} queued again", chosen[0].sweep_id)

    def _stop_runs(self, request: StopRuns, by: str) -> Answer:
        chosen = self._chosen(request)
        for run in chosen:
            if run.has_ended or run.state is RunState.GRADING:
                raise UsageProblem(f"run {run.id} can't be stopped", f"it is {run.state}")
        for run in chosen:
            self._stop(run, by)
        return Answer(f"{_runs(len(chosen))} asked to stop", chosen[0].sweep_id)

    def _chosen(self, request: RunsRequest) -> list[Run]:
        """Read the runs of a request.

        Raises:
            UsageProblem: one has had another attempt since the operator saw it.
        """
        chosen = [runs.get(self._database, seen.id) for seen in request.runs]
        for run, seen in zip(chosen, request.runs, strict=True):
            if run.attempts != seen.attempt:
                raise _has_changed(run)
        return chosen

    def _stop(self, run: Run, by: str) -> None:
        """Stop a run: a queued one at once, a live one by requesting that its runner ends the agent."""
        now = self._clock.now()
        if run.state is RunState.QUEUED:
            transitions.stopped(self._database, run.id, by=by, now=now)
            return
        attempt = runs.latest_attempt(self._database, run.id)
        assert attempt is not None  # a live run has one
        try:
            ask_to_stop(self._places.state_dir, attempt, Stop(by, now))
        except ForeignDirectory:
            transitions.stopped(self._database, run.id, by=by, now=now)
            return
        self._placements.of(attempt).end(attempt)
        text = f"stop requested by {by}"
        kind = EventKind.RUN_STOP_REQUESTED
        events.append(self._database, now, kind, text, run=run, attempt_id=attempt.id)

    def _classify(self, request: ClassifyRuns, by: str) -> Answer:
        now = self._clock.now()
        chosen = self._chosen(request)
        for run in chosen:
            transitions.classified(
                self._database, run.id, request.failure_class, note=request.note, by=by, now=now
            )
        return Answer(f"{_runs(len(chosen))} classified as {request.failure_class}")

    def _regrade(self, request: RegradeRuns, by: str) -> Answer:
        chosen = self._chosen(request)
        for run in chosen:
            transitions.regrade(self._database, run.id, by=by, now=self._clock.now())
        return Answer(f"{_runs(len(chosen))} graded again", chosen[0].sweep_id)

    def _annotate_runs(self, request: AnnotateRuns, by: str) -> Answer:
        for run_id in request.run_ids:
            run = runs.get(self._database, run_id)
            annotate(self._database, run, request.change, by=by, now=self._clock.now())
        return Answer(f"{_runs(len(request.run_ids))} {_annotated(request.change)}")

    def _annotate_sweep(self, request: AnnotateSweep, by: str) -> Answer:
        sweep = sweeps.get(self._database, request.sweep_id)
        annotate(self._database, sweep, request.change, by=by, now=self._clock.now())
        return Answer(f"sweep {sweep.id} is {_annotated(request.change)}", sweep.id)

    def _assign(self, request: AssignExperiment, _by: str) -> Answer:
        sweep = sweeps.get(self._database, request.sweep_id)
        if not request.experiment_id.strip():
            raise UsageProblem("an experiment needs a name")
        experiments.assign(self._database, request.experiment_id, sweep.id, now=self._clock.now())
        return Answer(f"sweep {sweep.id} belongs to experiment {request.experiment_id}", sweep.id)

    def _set_budget(self, request: SetBudget, by: str) -> Answer:
        """Change a shared budget; queue excused runs again that had failed because it was used up."""
        scope, name = request.scope, request.name
        if scope is BudgetScope.SWEEP:
            name = sweeps.get(self._database, name).id
        elif name not in {one.id for one in experiments.all_experiments(self._database)}:
            raise UsageProblem(f"there is no experiment '{name}'", "", "Assign a sweep to it first.")
        if any(limit < 0 for limit in request.limits.limits.values()):
            raise UsageProblem(
                "a budget can't be negative", "", "Give a number above 0, or 0 to remove the limit."
            )
        limits = budgets.of_group(self._database, scope, name).changed_by(request.limits)
        now = self._clock.now()
        budgets.set_limits(self._database, scope, name, limits, now=now, by=by)
        queued = self._requeue_excused(budgets.sweeps_of(self._database, scope, name), by, now)
        text = f"the runs of {scope} {name} share a budget of model calls: {limits.in_words()}"
        return Answer(
            text + (f"; {_runs(queued)} queued again" if queued else ""),
            name if scope is BudgetScope.SWEEP else None,
        )

    def _acknowledge(self, request: AcknowledgeCause, by: str) -> Answer:
        now, reason = self._clock.now(), visible(request.reason).strip()
        if not reason:
            raise UsageProblem(
                "an acknowledgement needs a reason", "", "Say what is known or being done: others see it."
            )
        if request.seconds is not None and not 0 < request.seconds <= _LONGEST_SNOOZE_SECONDS:
            raise UsageProblem(
                f"{request.seconds:.0f} s is not a valid time to snooze",
                "expected more than 0, up to 30 days",
            )
        groups = {one.key: one for one in read_causes(self._database, now)}
        group = groups.get(request.key)
        text = request.text if group is None else group.text
        if group is None and not self._may_be_acknowledged(request):
            raise UsageProblem(
                f"no run has the cause '{request.key}'", "", "'mlebench-console runs causes' lists them."
            )
        text = visible(text)[:_LONGEST_TEXT]
        until = None if request.seconds is None else now + request.seconds
        acknowledgement = Acknowledgement(request.key, text, by, now, reason[:_LONGEST_TEXT], until)
        sweep_ids = () if group is None else group.sweep_ids
        sweep_id = sweep_ids[0] if len(sweep_ids) == 1 else None
        acknowledgements.acknowledge(self._database, acknowledgement, sweep_id=sweep_id)
        if until is None:
            return Answer("acknowledged: hidden until a new run joins it")
        return Answer(f"snoozed until {time.strftime('%Y-%m-%d %H:%M', time.localtime(until))}")

    def _may_be_acknowledged(self, request: AcknowledgeCause) -> bool:
        """Return whether the key is no cause of runs, or one whose runs were relaunched since the operator saw it."""
        if not request.text:
            return False
        if not is_about_runs(request.key):
            return True
        return request.key in {cause_key(*past) for past in runs.past_causes(self._database)}

    def _withdraw_acknowledgement(self, request: WithdrawAcknowledgement, by: str) -> Answer:
        if not acknowledgements.take_back(self._database, request.key, by=by, now=self._clock.now()):
            raise UsageProblem(f"'{request.key}' is not acknowledged")
        return Answer("no longer acknowledged")

    def _requeue_excused(self, sweep_ids: Sequence[str], by: str, now: float) -> int:
        """Queue excused runs again in those of some sweeps whose budgets all have room; return how many runs."""
        queued = 0
        for sweep_id in sweep_ids:
            has_room = all(one.has_room for one in budgets.all_budgets(self._database, sweep_id))
            if not has_room or sweeps.get(self._database, sweep_id).state is SweepState.STOPPED:
                continue
            for run in runs.failed(self._database, sweep_id, FailureClass.BUDGET):
                if run.excused:
                    transitions.requeued(self._database, run.id, by=by, now=now)
                    queued += 1
        return queued


def _has_changed(run: Run, means: str = "") -> UsageProblem:
    """Return the problem that a run has changed since the operator saw it."""
    attempt = f", attempt {run.attempts}" if run.attempts else ""
    state = f"{run.state} ({run.failure_class})" if run.failure_class is not None else run.state
    return UsageProblem(
        f"run {run.id} has changed meanwhile",
        f"it is now {state}{attempt}{means}",
        "Check it, then try again.",
    )


def _annotated(change: Annotation) -> str:
    """Describe a change of notes and tags, as the end of a sentence with "is" or "are"."""
    parts = [f"tagged {', '.join(change.add)}"] if change.add else []
    parts += [f"no longer tagged {', '.join(change.remove)}"] if change.remove else []
    if change.note is not None:
        parts.append("noted" if change.note.strip() else "without a note")
    return " and ".join(parts)


def _runs(count: int) -> str:
    return f"{plural(count, 'run')} {'is' if count == 1 else 'are'}"
