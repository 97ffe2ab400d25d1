"""What runners report, taken into the state: each line once, in the transaction that moves the offset."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from engine.runs import launching
from engine.runs.failures import Conclusion, classify, last_lines, suspicion
from environment.container.output import Ending
from environment.container.redaction import TextRedactor
from environment.runner import protocol
from environment.runner.protocol import (
    AgentStarted,
    InboxEntry,
    RunEvent,
    Stop,
    SubmissionRefused,
    SubmissionTaken,
)
from foundation import jsonlines
from foundation.clock import Clock
from foundation.daemon_log import Log
from state import events, runs, submissions, transitions
from state.database import Database, UnusableState
from state.lifecycle import FailureClass, Outcome, RunState
from state.records import Attempt, Run, UsageSample
from state.samples import Samples
from state.submissions import Snapshot
from state.transitions import Failure

_GIVE_UP_AFTER = 6
_TIDY_SECONDS = 10.0
_BACK_OFF_SECONDS = 5.0
_UNSTARTED = (RunState.STARTING, RunState.RUNNING)


@dataclass
class _Trouble:
    times: int
    retry_at: float


class Intake:
    """Reads the directories of all live attempts; trouble with one of them does not keep the others waiting."""

    def __init__(
        self,
        database: Database,
        samples: Samples,
        state_dir: Path,
        clock: Clock,
        log: Log,
        redaction: TextRedactor,
    ) -> None:
        self._database = database
        self._samples = samples
        self._state_dir = state_dir
        self._clock = clock
        self._log = log
        self._redaction = redaction
        self._trouble: dict[int, _Trouble] = {}
        self._tidy_at = 0.0
        # Whose directories are known to be their own, or not to be.
        self._own: set[int] = set()
        self._foreign: set[int] = set()

    def step(self) -> None:
        """Look at every live attempt once."""
        live = runs.live_attempts(self._database)
        if self._clock.monotonic() >= self._tidy_at:
            self._tidy_at = self._clock.monotonic() + _TIDY_SECONDS
            self._own &= {attempt.id for attempt in live}
            self._tidy({launching.inbox_file(self._state_dir, attempt) for attempt in live})
        for attempt in live:
            trouble = self._trouble.get(attempt.id)
            if trouble is not None and self._clock.monotonic() < trouble.retry_at:
                continue
            try:
                self._take_in(attempt)
                self._trouble.pop(attempt.id, None)
            except UnusableState:
                raise  # no attempt's own trouble: all wait until the state can be written again
            except Exception as error:  # noqa: BLE001 - isolated from the other attempts, logged
                self._log(f"taking in {attempt.directory}", error)
                self._note_trouble(attempt, error)

    def _take_in(self, attempt: Attempt) -> None:
        folder = self._state_dir / attempt.directory
        run = runs.get(self._database, attempt.run_id)
        if run.state is RunState.GRADING or not self._is_own(run, attempt):
            return
        offset, usage_offset = runs.report_offsets(self._database, attempt.id)
        while _size(folder / protocol.EVENTS) > offset:
            lines = jsonlines.read(folder / protocol.EVENTS, offset)
            if lines.offset == offset:
                break  # half a line, which its writer completes
            with self._database.transaction():
                for line in lines.values:
                    event = protocol.event_from_line(line)
                    if event is not None:
                        self._apply(runs.get(self._database, run.id), attempt, event)
                runs.set_report_offsets(self._database, attempt.id, lines.offset, usage_offset)
            offset = lines.offset
        if _size(folder / protocol.USAGE) > usage_offset:
            self._take_usage(attempt, folder, offset, usage_offset)
        if (folder / protocol.EXIT).exists():
            self._close(runs.get(self._database, run.id), attempt, folder)

    def _is_own(self, run: Run, attempt: Attempt) -> bool:
        """Whether what lies in an attempt's directory may be its own; an event tells of one that is another's."""
        if attempt.id in self._own:
            return True
        try:
            if launching.read_order(self._state_dir, attempt) is not None:
                self._own.add(attempt.id)
        except launching.ForeignDirectory as problem:
            if attempt.id not in self._foreign:
                self._foreign.add(attempt.id)
                now, text = self._clock.now(), problem.in_one_line()
                with self._database.transaction():
                    events.append(self._database, now, "run.foreign", text, run=run, attempt_id=attempt.id)
            return False
        return True

    def _apply(self, run: Run, attempt: Attempt, event: RunEvent) -> None:
        match event:
            case AgentStarted() if run.state is RunState.STARTING:
                transitions.started(
                    self._database,
                    attempt.id,
                    isolated=event.isolated,
                    at=event.at,
                    now=self._clock.now(),
                    image=event.image,
                    hardware=event.hardware,
                )
            case SubmissionTaken():
                snapshot = Snapshot(
                    event.sequence,
                    event.at,
                    event.elapsed_seconds,
                    event.sha256,
                    event.bytes,
                    f"{attempt.directory}/{event.path}",
                )
                submissions.add(self._database, attempt.id, snapshot)
            case SubmissionRefused():
                now = self._clock.now()
                kind = "submission.refused"
                events.append(self._database, now, kind, event.text, run=run, attempt_id=attempt.id)
            case Ending() if run.state in _UNSTARTED:
                self._end(attempt, event)
            case _:
                pass  # reported before, by a runner that was killed before it could know so

    def _end(self, attempt: Attempt, ending: Ending) -> None:
        transitions.agent_ended(
            self._database,
            attempt.id,
            ending.reason,
            exit_code=ending.exit_code,
            signal=ending.signal,
            at=ending.ended_at,
            now=self._clock.now(),
        )

    def _take_usage(self, attempt: Attempt, folder: Path, offset: int, usage_offset: int) -> None:
        lines = jsonlines.read(folder / protocol.USAGE, usage_offset)
        if not lines.values:
            return  # half a line, which its writer completes
        last = lines.values[-1]
        samples = [{**line, "attempt_id": attempt.id} for line in lines.values]
        self._samples.add(msgspec.convert(samples, list[UsageSample]))
        with self._database.transaction():
            runs.note_activity(self._database, attempt.run_id, last["at"] - last.get("idle_seconds", 0.0))
            runs.set_report_offsets(self._database, attempt.id, offset, lines.offset)

    def _close(self, run: Run, attempt: Attempt, folder: Path) -> None:
        """Decide what the end of an attempt that is gathered means, and take it out of the runner's inbox."""
        ending = protocol.read(folder / protocol.EXIT, Ending)
        tail = self._redaction.clean(last_lines(folder / protocol.LOG))
        now = self._clock.now()
        with self._database.transaction():
            if run.state in _UNSTARTED:
                self._end(attempt, ending)
            if ending.submission_sequence is not None:
                submissions.set_final(self._database, attempt.id, ending.submission_sequence)
            isolated = runs.attempt(self._database, attempt.id).isolated
            match classify(ending, tail, isolated=isolated):
                case Conclusion.STOPPED:
                    stop = protocol.read_if_there(folder / protocol.STOP, Stop)
                    by = stop.by if stop else "the host"
                    transitions.stopped(self._database, run.id, by=by, now=now)
                case Conclusion.NO_SUBMISSION:
                    transitions.collected(self._database, attempt.id, now=now)
                    transitions.finished(self._database, attempt.id, Outcome.NO_SUBMISSION, now=now)
                case Conclusion.GRADED:
                    suspected, _line = suspicion(ending, tail) or ("", "")
                    transitions.collected(self._database, attempt.id, now=now, suspected=suspected)
                case Failure() as failure:
                    transitions.failed(self._database, attempt.id, failure, now=now)
        launching.remove_from_inbox(self._state_dir, attempt)

    def _tidy(self, live: set[Path]) -> None:
        """Take attempts that the state is done with out of the runner's inbox, ending what still runs of them."""
        for path in protocol.inbox(self._state_dir).glob("[!.]*.json"):
            if path in live:
                continue
            folder = self._state_dir / protocol.read(path, InboxEntry).directory
            if (folder / protocol.EXIT).exists() or not folder.exists():
                path.unlink()
            elif not (folder / protocol.STOP).exists():
                protocol.write(folder / protocol.STOP, Stop("engine", self._clock.now()))

    def _note_trouble(self, attempt: Attempt, error: Exception) -> None:
        times = self._trouble[attempt.id].times + 1 if attempt.id in self._trouble else 1
        self._trouble[attempt.id] = _Trouble(times, self._clock.monotonic() + _BACK_OFF_SECONDS)
        if times >= _GIVE_UP_AFTER:
            text = f"its reports can't be taken in: {error}".replace("\n", " ")
            failure = Failure(FailureClass.INFRASTRUCTURE, text)
            transitions.failed(self._database, attempt.id, failure, now=self._clock.now())
            del self._trouble[attempt.id]


def _size(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0
