"""One attempt in the runner's hands: started or adopted, watched, ended on time, gathered; all from its directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from enum import Enum
from pathlib import Path

from engine.runs import jsonlines, protocol, reports, secrets
from engine.runs.protocol import AgentEnd, Exit, Order, Started
from engine.runs.reports import (
    AgentEnded,
    AgentStarted,
    Collected,
    RunReport,
    SubmissionRefused,
    SubmissionTaken,
)
from engine.runs.runner import processes
from engine.runs.runner.submissions import SubmissionWatch
from engine.runs.runner.usage import UsageMeter
from foundation import locks
from foundation.clock import Clock
from foundation.problems import DataProblem

OVERDUE_SECONDS = 60.0
START_TRIES = 3


class Stage(Enum):
    """How far an attempt is."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"


class RunnerAttempt:
    """Everything here may be done again by another runner after a kill at any point."""

    def __init__(
        self, folder: Path, clock: Clock, start_shim: Callable[[Path], subprocess.Popen[bytes]]
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._start_shim = start_shim
        self._order = protocol.read(folder / protocol.ORDER, Order)
        self._reported = [
            report
            for line in jsonlines.read(folder / protocol.EVENTS).values
            if (report := reports.from_line(line)) is not None
        ]
        taken = [report for report in self._reported if isinstance(report, SubmissionTaken)]
        self._submissions = SubmissionWatch(
            folder,
            limit_bytes=self._order.submission_limit_bytes,
            every_seconds=self._order.snapshot_every_seconds,
            last=taken[-1] if taken else None,
        )
        self._started: Started | None = None
        self._shim: subprocess.Popen[bytes] | None = None
        self._tries = 0
        self._overdue = False
        self.meter = UsageMeter(folder)
        self.stage = Stage.DONE if (folder / protocol.EXIT).exists() else Stage.NEW

    def look(self) -> None:
        """Do what is to be done now."""
        if self.stage is Stage.DONE:
            return
        # The lock first: what a shim wrote before it let go is then not missed.
        alive = self._shim_lives()
        ending = protocol.read_if_there(self.folder / protocol.ENDING, AgentEnd)
        if ending is not None and not alive:
            self._gather(ending)
        elif alive:
            self._watch()
        elif (self.folder / protocol.CLAIM).exists():
            self._gather(None)
        else:
            self._begin()

    def shim_pid(self) -> int | None:
        """The process below which everything of the attempt is, while it runs."""
        return self._started.pid if self._started is not None and self.stage is Stage.RUNNING else None

    def _begin(self) -> None:
        if (self.folder / protocol.STOP).exists():
            self._give_up("stopped", "")
        elif self._shim is None or self._shim.poll() is not None:
            if self._tries == START_TRIES:
                self._give_up("unstarted", f"its shim does not start, see {protocol.SHIM_LOG}")
                return
            self._tries += 1
            (self.folder / protocol.SNAPSHOTS).mkdir(exist_ok=True)
            self._shim = self._start_shim(self.folder)
            self.stage = Stage.STARTING

    def _give_up(self, reason: str, problem: str) -> None:
        """End an attempt before its agent has run; claimed by us, so that no shim on its way starts it."""
        now = self._clock.now()
        with suppress(FileExistsError):
            os.close(os.open(self.folder / protocol.CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._gather(AgentEnd(reason, None, None, now, now, problem=problem))

    def _shim_lives(self) -> bool:
        return locks.is_held(self.folder / protocol.LOCK)

    def _watch(self) -> None:
        if self._started is None:
            self._started = protocol.read_if_there(self.folder / protocol.STARTED, Started)
            if self._started is None:
                return
            self.stage = Stage.RUNNING
            self._report_once(AgentStarted(self._started.at, self._started.isolated))
        if (self.folder / protocol.STOP).exists():
            self._signal_shim(signal.SIGTERM)
        elif self._is_overdue(self._started):
            self._overdue = True
            self._signal_shim(signal.SIGKILL)
            return
        try:
            taken = self._submissions.look(self._clock.now(), self._started.at)
        except DataProblem as problem:
            self._report(SubmissionRefused(self._clock.now(), str(problem)))
        else:
            if taken is not None:
                self._report(taken)

    def _is_overdue(self, started: Started) -> bool:
        """Whether the shim should long have ended the agent; the monotonic clock tells it within one boot."""
        limit = self._order.time_limit_seconds + self._order.grace_seconds + OVERDUE_SECONDS
        return started.boot_id == processes.boot_id() and time.monotonic() - started.monotonic > limit

    def _signal_shim(self, number: int) -> None:
        """Signal the shim; the process that holds its lock can be no other."""
        text = (self.folder / protocol.LOCK).read_text().strip()
        if text.isdigit() and self._shim_lives():
            with suppress(ProcessLookupError):  # it ended in between, which the next look sees
                os.kill(int(text), number)

    def _gather(self, ending: AgentEnd | None) -> None:
        """The agent is gone: take what it left, tell how it ended, and leave nothing of it running."""
        # A warden leaves nothing behind; only where it could not is it worth a look at every process.
        leftovers = processes.of_attempt(self.folder) if ending is None or ending.survivors else []
        if leftovers:
            processes.kill(leftovers)
            return  # the next look goes on once they are gone
        started = protocol.read_if_there(self.folder / protocol.STARTED, Started)
        if started is not None:
            self._report_once(AgentStarted(started.at, started.isolated))
        now = self._clock.now()
        exited = self._exit(ending, started, now)
        self._report_once(AgentEnded(exited.ended_at, exited.reason, exited.exit_code, exited.signal))
        for name in (protocol.SCRATCH, protocol.GRADER):
            if (self.folder / name).exists():
                _remove(self.folder / name)
        secrets.discard(self.folder)
        protocol.write(self.folder / protocol.EXIT, exited)
        self._report_once(Collected(now))
        self.stage = Stage.DONE

    def _exit(self, ending: AgentEnd | None, started: Started | None, now: float) -> Exit:
        sequence, problem = self._final_submission(started, now)
        started_at = started.at if started else None
        if ending is None:
            reason, text = self._how_lost()
            return Exit(
                reason, None, None, started_at, now,
                submission_sequence=sequence, submission_problem=problem, problem=text,
            )  # fmt: skip
        return Exit(
            "lost" if ending.reason == "unstarted" else ending.reason,
            ending.exit_code,
            ending.signal,
            started_at,
            ending.ended_at,
            oom_kills=ending.oom_kills,
            submission_sequence=sequence,
            submission_problem=problem,
            problem=ending.problem or ending.log_error,
        )

    def _how_lost(self) -> tuple[str, str]:
        """Nobody was left to see how the agent ended: we may have been the ones who wanted it to."""
        if self._overdue:
            return "deadline", ""
        if (self.folder / protocol.STOP).exists():
            return "stopped", ""
        return "lost", "its sandbox was killed from outside"

    def _final_submission(self, started: Started | None, now: float) -> tuple[int | None, str]:
        try:
            taken = self._submissions.take_final(now, started.at if started else now)
        except DataProblem as problem:
            return None, str(problem)
        if taken is None:
            return None, ""
        self._report(taken)
        return taken.sequence, ""

    def _report_once(self, report: RunReport) -> None:
        if not any(isinstance(known, type(report)) for known in self._reported):
            self._report(report)

    def _report(self, report: RunReport) -> None:
        jsonlines.append(self.folder / protocol.EVENTS, [reports.to_line(report)], durable=True)
        self._reported.append(report)

    def measure(self, tree: processes.Tree, *, with_disk: bool) -> None:
        """Add a line to usage.jsonl if the attempt is running."""
        root = self.shim_pid()
        if root is not None:
            found = self.meter.measure(
                tree, root, now=self._clock.now(), monotonic=self._clock.monotonic(), with_disk=with_disk
            )
            jsonlines.append(self.folder / protocol.USAGE, [asdict(found)])


def _remove(folder: Path) -> None:
    """Remove an agent's scratch; it may have closed directories to itself, and so to us."""
    for parent, names, _ in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder)
