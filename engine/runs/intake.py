"""Take what runners report into the state: each line once, in the transaction that moves the offset.

A problem with reports says nothing about the agent: it is shown, retried, and ends no attempt. An attempt is given up
only if it has ended (`exit.json` exists) and nothing readable says how.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from mlebench_console.engine.model_costs import use_of
from mlebench_console.engine.options.sweep import RELAUNCH
from mlebench_console.engine.placements import AttemptStatus, Placements
from mlebench_console.engine.placements.model import Lost
from mlebench_console.engine.runs.failures import Conclusion, classify, last_lines, suspicion
from mlebench_console.engine.runs.starting import ForeignDirectory, read_order
from mlebench_console.environment.container.output import Ending, ServiceRestarted
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.container.traffic import Traffic
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.environment.gateway.records import CallOutcome, ModelCall
from mlebench_console.environment.gateway.records import from_line as call_from_line
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import (
    AgentStarted,
    Order,
    RunEvent,
    Shortfall,
    Staged,
    Stop,
    SubmissionRefused,
    SubmissionTaken,
)
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.backoff import Retries
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import HERE, MOST_OF_BUDGET, Amounts
from mlebench_console.foundation.daemons import Log
from mlebench_console.foundation.jsonlines import Lines
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.foundation.problems import DataProblem, Problem
from mlebench_console.foundation.text import gigabytes, visible
from mlebench_console.state import events, runs, submissions, sweeps, transitions
from mlebench_console.state.database import Database, UnusableState
from mlebench_console.state.event_records import EventKind
from mlebench_console.state.lifecycle import ENGINE, FailureClass, Outcome, RunState, SweepState
from mlebench_console.state.records import Attempt, Run
from mlebench_console.state.submissions import Snapshot
from mlebench_console.state.transitions import Failure
from mlebench_console.state.usage import model_calls, network_use, outages
from mlebench_console.state.usage.model_calls import ModelUse
from mlebench_console.state.usage.network_use import NetworkUse
from mlebench_console.state.usage.outages import CallEnd, CallFailure
from mlebench_console.state.usage.samples import DamagedSamples, Samples, UnusableSamples, samples_of

_TIDY_SECONDS = 10.0
# Other hosts write only as often as their heartbeats: with thousands of attempts there, they are read less often.
_ELSEWHERE_SECONDS = 1.0
_ELSEWHERE_SECONDS_EACH = 0.001
# How long to wait for the events of an ended attempt that `exit.json` refers to and that are missing.
_PATIENCE_SECONDS = 60.0
# Events of one kind per attempt, and characters. Runners report less, but an agent that nothing isolates can write
# these files itself.
_MOST_EVENTS = 20
_LONGEST_TEXT = 1000
_SAMPLES = "samples"
_JOBS = "jobs"
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_KEY_REFUSED = (401, 402, 403)
# An agent that ends within this time after a failed call is taken to have ended because of it.
_PROVIDER_SECONDS = 600.0
_OVER_BUDGET = {
    EventKind.RUN_BUDGET_USED_UP: CallOutcome.BUDGET,
    EventKind.RUN_SHARED_BUDGET_USED_UP: CallOutcome.SHARED_BUDGET,
}
# Before its end is recorded, while its agent may be running.
_WITH_AGENT = (RunState.STARTING, RunState.RUNNING)
_SHORTFALLS = {
    protocol.UNSEARCHED: EventKind.RUN_UNSEARCHED,
    protocol.UNMEASURED: EventKind.RUN_UNMEASURED,
    protocol.UNREMOVED: EventKind.RUN_UNREMOVED,
    protocol.CODE_NOT_KEPT: EventKind.RUN_CODE_NOT_KEPT,
}


class _Lost(Exception):
    """An attempt has ended, and the record of how is lost for good."""


class Intake:
    """Reads the directories of all live attempts; a problem with one of them does not delay the others."""

    def __init__(
        self,
        database: Database,
        samples: Samples,
        state_dir: Path,
        placements: Placements,
        clock: Clock,
        log: Log,
        redaction: TextRedactor,
    ) -> None:
        self._database = database
        self._samples = samples
        self._state_dir = state_dir
        self._placements = placements
        self._clock = clock
        self._log = log
        self._redaction = redaction
        self._retries: Retries[int | str] = Retries(clock)  # by attempt, or of the samples
        self._tidy_at = 0.0
        self._look_elsewhere_at = 0.0
        self._revisions: dict[int, Hashable] = {}  # of the reports taken in from attempts on other hosts
        # Attempts whose directories are known to be their own, and known to be another attempt's.
        self._own: set[int] = set()
        self._foreign: set[int] = set()
        # The modification time of each attempt's traffic file when it was last taken in.
        self._traffic_times: dict[int, int] = {}

    @property
    def problem(self) -> str:
        """What can't be taken in at the moment; empty without a problem."""
        return str(self._retries)

    def step(self) -> None:
        """Take in the reports of every live attempt once."""
        now = self._clock.monotonic()
        if now < self._look_elsewhere_at:
            live = runs.live_attempts_on(self._database, HERE)
        else:
            live = runs.live_attempts(self._database)
            self._look_elsewhere_at = now + max(_ELSEWHERE_SECONDS, _ELSEWHERE_SECONDS_EACH * len(live))
            if now >= self._tidy_at:
                self._tidy(live)
        elsewhere = [attempt for attempt in live if attempt.placement != HERE]
        if elsewhere:
            what = "the job states of the batch system can't be taken in"
            self._try(_JOBS, what, partial(self._note_jobs, elsewhere))
        for attempt in live:
            what = f"the reports of run {attempt.run_id} can't be taken in"
            self._try(attempt.id, what, partial(self._take_in, attempt))

    def _note_jobs(self, elsewhere: Sequence[Attempt]) -> None:
        """Record changed facts of jobs in one transaction: estimates of very many jobs change together."""
        changed = {}
        for attempt in elsewhere:
            try:
                status = self._placements.of(attempt).status(attempt)
            except Problem:
                continue  # its profile is gone from config.toml: `_take_in` meets and reports the same problem
            if status.job != attempt.job_facts:
                changed[attempt.id] = status.job
        if changed:
            runs.note_jobs(self._database, changed)

    def _tidy(self, live: Sequence[Attempt]) -> None:
        """Forget attempts that are not live any more, and have placements end what is left of them."""
        self._tidy_at = self._clock.monotonic() + _TIDY_SECONDS
        numbers = {attempt.id for attempt in live}
        self._own &= numbers
        self._foreign &= numbers
        self._traffic_times = {key: at for key, at in self._traffic_times.items() if key in numbers}
        self._revisions = {number: seen for number, seen in self._revisions.items() if number in numbers}
        self._placements.keep_only(live, partial(runs.knows_attempt, self._database))
        # Without live attempts no samples are written, so nothing would clear this problem.
        self._retries.keep_only(
            {*numbers, *map(_usage_key, numbers), *([_SAMPLES, _JOBS] if numbers else [])}
        )
        outages.settle(self._database, now=self._clock.now())

    def _try(self, key: int | str, what: str, do: Callable[[], None]) -> None:
        """Call `do` unless it failed a moment ago; note its failure and go on."""
        if self._retries.must_wait(key):
            return
        try:
            do()
        except UnusableState:
            raise  # not a problem of this attempt: all wait until the state can be used again
        except Exception as error:  # noqa: BLE001 - isolated from the others, logged, shown, and tried again
            self._log(what, error)
            cause = error.cause if isinstance(error, Problem) else f"{type(error).__name__}: {error}"
            self._retries.note(key, f"{what}: {cause}")
        else:
            self._retries.clear(key)

    def _take_in(self, attempt: Attempt) -> None:
        placement = self._placements.of(attempt)
        status = placement.status(attempt)
        if status.revision is None or self._revisions.get(attempt.id) != status.revision:
            self._take_from_directory(attempt, status)
            if status.revision is not None and self._is_whole(attempt, status):
                self._revisions[attempt.id] = status.revision
        if status.lost is not None and not (self._state_dir / attempt.directory / protocol.EXIT).exists():
            self._give_up(attempt, status.lost)
            placement.forget(attempt)

    def _give_up(self, attempt: Attempt, lost: Lost) -> None:
        """End an attempt that its placement has lost."""
        run, now = runs.get(self._database, attempt.run_id), self._clock.now()
        stop = protocol.read_if_there(self._state_dir / attempt.directory / protocol.STOP, Stop)
        with self._database.transaction():
            if stop is not None and stop.by != ENGINE:
                transitions.stopped(self._database, run.id, by=stop.by, now=now)
                return
            transitions.failed(self._database, attempt.id, lost.failure, now=now)
            if lost.pauses and sweeps.get(self._database, run.sweep_id).state is SweepState.ACTIVE:
                sweeps.set_state(self._database, run.sweep_id, SweepState.PAUSED, now=now)

    def _take_from_directory(self, attempt: Attempt, status: AttemptStatus) -> None:
        folder = self._state_dir / attempt.directory
        run = runs.get(self._database, attempt.run_id)
        if run.state is RunState.GRADING or not self._is_own(run, attempt):
            return
        # Checked before the events are read, so that they contain everything reported before the end.
        has_ended = (
            status.heartbeat.ended if status.heartbeat is not None else (folder / protocol.EXIT).exists()
        )
        is_overdue = has_ended and self._retries.seconds(attempt.id) >= _PATIENCE_SECONDS
        for what, take in (
            ("events", self._take_events),
            ("model calls", self._take_calls),
            ("traffic", self._take_traffic),
        ):
            try:
                take(attempt, folder, status)
            except (OSError, DataProblem) as error:
                if not is_overdue:
                    raise
                self._log(f"the {what} of run {run.id} are given up", error)
        self._take_usage(attempt, folder, status)
        if has_ended and not is_overdue and not self._is_whole(attempt, status):
            raise DataProblem(
                f"{folder} lacks what its runner has written", "its file system does not show all of it yet"
            )
        if has_ended:
            self._close(runs.get(self._database, run.id), attempt, folder, status, is_overdue=is_overdue)

    def _is_whole(self, attempt: Attempt, status: AttemptStatus) -> bool:
        """Return whether everything that the placement knows of an attempt has been taken in."""
        events_offset, _ = runs.report_offsets(self._database, attempt.id)
        if events_offset < status.events_bytes:
            return False
        return (
            status.model_calls_bytes == 0
            or model_calls.offset(self._database, attempt.id) >= status.model_calls_bytes
        )

    def _take_events(self, attempt: Attempt, folder: Path, status: AttemptStatus) -> None:
        path = folder / protocol.EVENTS
        offset, usage_offset = runs.report_offsets(self._database, attempt.id)
        size = _known_size(path, status.events_bytes, status)
        for lines in _added(path, offset, size):
            with self._database.transaction():
                for line in lines.values:
                    event = protocol.event_from_line(line)
                    if event is not None:
                        self._apply(runs.get(self._database, attempt.run_id), attempt, event)
                runs.set_report_offsets(self._database, attempt.id, lines.offset, usage_offset)

    def _is_own(self, run: Run, attempt: Attempt) -> bool:
        """Return whether an attempt's directory is its own, and record an event if it is another attempt's."""
        if attempt.id in self._own:
            return True
        try:
            if read_order(self._state_dir, attempt) is not None:
                self._own.add(attempt.id)
        except ForeignDirectory as problem:
            if attempt.id not in self._foreign:
                self._foreign.add(attempt.id)
                now, text = self._clock.now(), problem.in_one_line()
                with self._database.transaction():
                    kind = EventKind.RUN_FOREIGN
                    events.append(self._database, now, kind, text, run=run, attempt_id=attempt.id)
            return False
        return True

    def _apply(self, run: Run, attempt: Attempt, event: RunEvent) -> None:
        now = self._clock.now()
        match event:
            case AgentStarted() if run.state is RunState.STARTING:
                transitions.started(
                    self._database,
                    attempt.id,
                    isolated=event.isolated,
                    at=_moment(event.at, now),
                    now=now,
                    image=event.image,
                    hardware=event.hardware,
                    unenforced=event.unenforced,
                    recipe=event.recipe,
                    runtime=event.runtime or attempt.runtime,
                )
            case Staged():
                how = "was there already" if event.reused else f"took {event.seconds:,.0f} s to copy"
                text = f"on {visible(event.node)}: its dataset, {gigabytes(event.bytes)}, {how}"
                self._note(run, attempt, EventKind.RUN_STAGED, text)
            case SubmissionTaken():
                at = _moment(event.at, now)
                is_plausible = 0 <= event.elapsed_seconds <= now
                snapshot = Snapshot(
                    event.sequence,
                    at,
                    event.elapsed_seconds if is_plausible else max(0.0, at - (run.started_at or at)),
                    event.sha256,
                    event.bytes,
                    # Not the event's own word: without isolation an agent may have written that.
                    f"{attempt.directory}/{protocol.snapshot_name(event.sequence)}",
                )
                submissions.add(self._database, attempt.id, snapshot)
            case SubmissionRefused():
                self._note(run, attempt, EventKind.SUBMISSION_REFUSED, event.text, event.times)
            case ServiceRestarted():
                self._note(run, attempt, EventKind.RUN_SERVICE, f"{event.service} {event.text}")
            case Shortfall():
                self._note(run, attempt, _SHORTFALLS[event.kind], event.text)
            case Ending() if run.state in _WITH_AGENT:
                self._end(attempt, event)
            case _:
                pass  # reported again by a new runner, as the one before was killed before it could record that

    def _note(
        self,
        run: Run,
        attempt: Attempt,
        kind: EventKind,
        text: str,
        times: int = 1,
        *,
        most: int = _MOST_EVENTS,
    ) -> None:
        now, text = self._clock.now(), text[:_LONGEST_TEXT]
        events.append_or_count(
            self._database, now, kind, text, run=run, attempt_id=attempt.id, most=most, times=times
        )

    def _end(self, attempt: Attempt, ending: Ending) -> None:
        now = self._clock.now()
        transitions.agent_ended(
            self._database,
            attempt.id,
            EndReason(ending.reason),
            exit_code=ending.exit_code,
            signal=ending.signal,
            at=_moment(ending.ended_at, now),
            now=now,
        )

    def _take_usage(self, attempt: Attempt, folder: Path, status: AttemptStatus) -> None:
        """Save new resource samples; a failure is noted and delays nothing else."""
        offset, usage_offset = runs.report_offsets(self._database, attempt.id)
        size = _size(folder / protocol.USAGE) if status.heartbeat is None else status.heartbeat.usage
        if size <= usage_offset:
            self._retries.clear(_usage_key(attempt.id))
        elif not self._retries.must_wait(_SAMPLES):
            take = partial(self._take_samples, attempt, folder, offset, usage_offset)
            what = f"the resource use of run {attempt.run_id} can't be read"
            self._try(_usage_key(attempt.id), what, take)

    def _take_samples(self, attempt: Attempt, folder: Path, offset: int, usage_offset: int) -> None:
        lines = jsonlines.read(folder / protocol.USAGE, usage_offset)
        if lines.offset == usage_offset:
            return  # half a line, which its writer completes
        samples = samples_of(lines.values)
        if samples:
            try:
                self._samples.add(attempt.id, samples)
            except UnusableSamples as problem:
                self._log("resource samples can't be saved now", problem)
                self._retries.note(_SAMPLES, problem.cause)
                if isinstance(problem, DamagedSamples):
                    with self._database.transaction():
                        kind = EventKind.SAMPLES_DAMAGED
                        events.append(self._database, self._clock.now(), kind, problem.cause)
                return
            self._retries.clear(_SAMPLES)
        with self._database.transaction():
            if samples:
                at = _moment(samples[-1].at - samples[-1].idle_seconds, self._clock.now())
                runs.note_activity(self._database, attempt.run_id, at)
            runs.set_report_offsets(self._database, attempt.id, offset, lines.offset)

    def _take_traffic(self, attempt: Attempt, folder: Path, status: AttemptStatus) -> None:
        """Save the traffic of the attempt's proxy, if it has changed since the last time."""
        if status.heartbeat is not None and not status.heartbeat.has_traffic:
            return
        path = folder / protocol.TRAFFIC
        try:
            written = os.lstat(path).st_mtime_ns
        except FileNotFoundError:
            return
        if self._traffic_times.get(attempt.id) == written:
            return
        hosts = protocol.read(path, Traffic).hosts
        network_use.set_use(
            self._database,
            [
                NetworkUse(attempt.id, host, one.connections, one.sent_bytes, one.received_bytes)
                for host, one in hosts.items()
            ],
        )
        self._traffic_times[attempt.id] = written

    def _take_calls(self, attempt: Attempt, folder: Path, status: AttemptStatus) -> None:
        """Count the model calls that have ended since the last time."""
        path = folder / protocol.MODEL_CALLS
        offset = model_calls.offset(self._database, attempt.id)
        size = _known_size(path, status.model_calls_bytes, status)
        if size <= offset:
            return
        order = protocol.read(folder / protocol.ORDER, Order)
        prices = price_table({pattern: TokenPrice(**values) for pattern, values in order.model_prices})
        for lines in _added(path, offset, size):
            calls = [call for line in lines.values if (call := call_from_line(line)) is not None]
            uses = [use_of(attempt.id, call, prices) for call in calls]
            with self._database.transaction():
                before = model_calls.of_attempt(self._database, attempt.id)
                model_calls.add(self._database, attempt.id, uses, lines.offset)
                self._note_budget(attempt, order, before, calls)
                self._note_providers(attempt, calls)

    def _note_providers(self, attempt: Attempt, calls: Sequence[ModelCall]) -> None:
        """Record that a provider fails or rate-limits calls: one event for a run, with a count."""
        run = runs.get(self._database, attempt.run_id)
        now = self._clock.now()
        ends = [replace(end, at=_moment(end.at, now)) for call in calls if (end := _end_of(call)) is not None]
        outages.note(self._database, attempt.id, ends, now=now)
        for end in ends:
            if end.failure is not None:
                answers = f"answers {end.status}" if end.status else "does not answer"
                text = f"the provider {end.provider} {answers}: {end.problem}"
                self._note(run, attempt, EventKind.RUN_PROVIDER, text, most=1)

    def _note_budget(
        self, attempt: Attempt, order: Order, before: Sequence[ModelUse], calls: Sequence[ModelCall]
    ) -> None:
        """Record when most of an attempt's budget of model calls is used, and when calls are refused because of it."""
        run = runs.get(self._database, attempt.run_id)
        share = _share_of_budget(order, before)
        now_used = _share_of_budget(order, model_calls.of_attempt(self._database, attempt.id))
        if share < MOST_OF_BUDGET <= now_used:
            text = f"{now_used:.0%} of its budget of model calls is used"
            self._note(run, attempt, EventKind.RUN_BUDGET, text)
        for kind, outcome in _OVER_BUDGET.items():
            over = [call for call in calls if call.outcome is outcome]
            if over:
                self._note(run, attempt, kind, f"a model call was not made: {over[-1].problem}", most=1)

    def _close(
        self, run: Run, attempt: Attempt, folder: Path, status: AttemptStatus, *, is_overdue: bool
    ) -> None:
        """Classify the end of an attempt whose reports are taken in, and have its placement forget it."""
        now = self._clock.now()
        try:
            ending = self._ending(folder)
            ending = replace(ending, ended_at=_moment(ending.ended_at, now))
            if ending.reason == EndReason.LOST and status.revision is not None and status.ended is None:
                return  # the next answer of its batch system will say why
            if ending.reason == EndReason.LOST and status.ended is not None and status.ended.by_memory:
                ending = replace(ending, reason=EndReason.MEMORY, problem=status.ended.text)
            final = self._final_submission(attempt, ending, folder, is_overdue=is_overdue)
        except _Lost as lost:
            failure = Failure(FailureClass.INFRASTRUCTURE, str(lost))
            transitions.failed(self._database, attempt.id, failure, now=now)
            self._placements.of(attempt).forget(attempt)
            return
        tail = self._redaction.clean(self._last_lines(folder))
        with self._database.transaction():
            if run.state in _WITH_AGENT:
                self._end(attempt, ending)
            if ending.submission_sequence is not None:
                if final is not None:
                    submissions.add(self._database, attempt.id, final)
                submissions.set_final(self._database, attempt.id, ending.submission_sequence)
            isolated = runs.attempt(self._database, attempt.id).isolated
            over_budget = any(events.has(self._database, attempt, kind) for kind in _OVER_BUDGET)
            met = outages.met_at_last(self._database, attempt.id)
            outage = next((one for one in met if ending.ended_at - one.last_at <= _PROVIDER_SECONDS), None)
            evicted = None if status.ended is None else status.ended.problem
            match classify(
                ending, tail, isolated=isolated, over_budget=over_budget, outage=outage, evicted=evicted
            ):
                case Conclusion.STOPPED:
                    transitions.stopped(self._database, run.id, by=_stopped_by(folder), now=now)
                case Conclusion.NO_SUBMISSION:
                    transitions.collected(self._database, attempt.id, now=now)
                    transitions.finished(self._database, attempt.id, Outcome.NO_SUBMISSION, now=now)
                case Conclusion.TOO_LARGE:
                    transitions.collected(self._database, attempt.id, now=now)
                    transitions.finished(
                        self._database, attempt.id, Outcome.INVALID, now=now, why=ending.submission_problem
                    )
                case Conclusion.GRADED:
                    suspected, _evidence = suspicion(ending, tail, outage) or (None, "")
                    transitions.collected(self._database, attempt.id, now=now, suspected=suspected)
                case Failure() as failure:
                    # Its calls were refused by a shared budget, in a sweep that relaunches such runs.
                    excused = (
                        failure.kind is FailureClass.BUDGET
                        and events.has(self._database, attempt, EventKind.RUN_SHARED_BUDGET_USED_UP)
                        and sweeps.get(self._database, run.sweep_id).spec.over_budget == RELAUNCH
                    )
                    of_job = "" if status.ended is None else status.ended.text
                    evidence = "\n".join(filter(None, (of_job, failure.evidence)))
                    failure = replace(failure, excused=excused, evidence=evidence)
                    transitions.failed(self._database, attempt.id, failure, now=now)
        self._placements.of(attempt).forget(attempt)

    def _ending(self, folder: Path) -> Ending:
        """Read how an attempt ended, from its events if `exit.json` is damaged.

        Raises:
            _Lost: neither can be read.
        """
        try:
            return protocol.read(folder / protocol.EXIT, Ending)
        except protocol.DamagedRecord as damage:
            self._log(f"{folder}: the end is read from {protocol.EVENTS}", damage)
        ending, path = None, folder / protocol.EVENTS
        for lines in _added(path, 0, sys.maxsize):
            for line in lines.values:
                event = protocol.event_from_line(line)
                ending = event if isinstance(event, Ending) else ending
        if ending is None:
            raise _Lost(f"{protocol.EXIT} is damaged, and nothing else says how it ended")
        return ending

    def _final_submission(
        self, attempt: Attempt, ending: Ending, folder: Path, *, is_overdue: bool
    ) -> Snapshot | None:
        """Make the snapshot of the final submission from its file, if its event is missing for too long.

        Raises:
            DataProblem: the event may still appear, or the file can't be read now.
            _Lost: the file does not exist.
        """
        sequence = ending.submission_sequence
        if sequence is None or submissions.is_known(self._database, attempt.id, sequence):
            return None
        name = protocol.snapshot_name(sequence)
        if not is_overdue:
            raise DataProblem(f"{protocol.EVENTS} has no event of {name}", "it is the final submission")
        try:
            with (folder / name).open("rb") as stream:
                sha256, size = hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()
        except FileNotFoundError as error:
            raise _Lost(f"its final submission, {name}, is missing") from error
        elapsed = ending.ended_at - (ending.started_at or ending.ended_at)
        return Snapshot(sequence, ending.ended_at, elapsed, sha256, size, f"{attempt.directory}/{name}")

    def _last_lines(self, folder: Path) -> str:
        try:
            return last_lines(folder / protocol.LOG)
        except (OSError, DataProblem) as error:
            self._log(f"{folder}: its log can't be read", error)
            return ""  # the end is classified without the log


def _share_of_budget(order: Order, uses: Sequence[ModelUse]) -> float:
    """Return the used share of an attempt's budget, of the unit that is nearest to its limit."""
    return sum((use.amounts for use in uses), Amounts()).share_of(order.conditions.models.budget)


def _end_of(call: ModelCall) -> CallEnd | None:
    """Return what a call says about its provider; None where it says nothing."""
    at = call.at + call.seconds
    problem = f"{call.problem} ({call.model or call.asked_model})"
    match call.outcome:
        case CallOutcome.OK:
            return CallEnd(call.provider, at)
        case CallOutcome.UNREACHABLE:
            return CallEnd(call.provider, at, CallFailure.UNREACHABLE, 0, problem)
        case CallOutcome.CUT:
            return CallEnd(call.provider, at, CallFailure.FAILED, 0, problem)
        case CallOutcome.ERROR if call.status == _TOO_MANY_REQUESTS:
            return CallEnd(call.provider, at, CallFailure.LIMITED, call.status, problem)
        case CallOutcome.ERROR if call.status >= _SERVER_ERROR or call.status in _KEY_REFUSED:
            return CallEnd(call.provider, at, CallFailure.FAILED, call.status, problem)
        case CallOutcome.ERROR:
            return CallEnd(call.provider, at)  # the request was wrong; the provider answered
    return None


def _added(path: Path, offset: int, size: int) -> Iterator[Lines]:
    """Yield the lines from an offset on until so much was read; half a line waits for its writer to complete it."""
    while offset < size:
        lines = jsonlines.read(path, offset)
        if lines.offset == offset:
            return
        yield lines
        offset = lines.offset


def _moment(at: float, now: float) -> float:
    """Return when something happened, by the clock of its node or an unisolated agent's word; at the latest now."""
    return at if 0 <= at <= now else now


def _usage_key(attempt_id: int) -> str:
    return f"usage of {attempt_id}"


def _stopped_by(folder: Path) -> str:
    try:
        stop = protocol.read_if_there(folder / protocol.STOP, Stop)
    except protocol.DamagedRecord:
        return "somebody"
    return stop.by if stop else "the host"


def _known_size(path: Path, at_least: int, status: AttemptStatus) -> int:
    """Return the size that a file is known to have; one whose runner sends heartbeats is not looked at."""
    return at_least if status.heartbeat is not None else max(_size(path), at_least)


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0
