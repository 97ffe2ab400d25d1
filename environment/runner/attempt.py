"""One attempt in the runner's hands: started or adopted, watched, ended on time, gathered; all from its directory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import asdict
from enum import Enum
from pathlib import Path

from environment.runner import host, protocol, secrets
from environment.runner.gpus import Gpu, GpuReader
from environment.runner.protocol import (
    AgentEnd,
    AgentEnded,
    AgentStarted,
    Collected,
    Exit,
    Limited,
    Order,
    RunReport,
    Started,
    SubmissionRefused,
    SubmissionTaken,
)
from environment.runner.runtime import Sandbox, Sight
from environment.runner.submissions import SubmissionWatch
from environment.runner.usage import DiskMeter, LimitWatch, UsageMeter
from foundation import jsonlines
from foundation.clock import Clock
from foundation.problems import DataProblem

OVERDUE_SECONDS = 60.0


class Stage(Enum):
    """How far an attempt is."""

    NEW = "new"
    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"


class RunnerAttempt:
    """Everything here may be done again by another runner after a kill at any point."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        sandbox_for: Callable[[Path, Order], Sandbox],
        gpus: GpuReader,
        disk_worker: Executor,
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._gpus = gpus
        self._order = protocol.read(folder / protocol.ORDER, Order)
        self._sandbox = sandbox_for(folder, self._order)
        self._reported = [
            report
            for line in jsonlines.read(folder / protocol.EVENTS).values
            if (report := protocol.from_line(line)) is not None
        ]
        self._unwritten: list[RunReport] = []
        taken = [report for report in self._reported if isinstance(report, SubmissionTaken)]
        self._submissions = SubmissionWatch(
            folder,
            limit_bytes=self._order.submission_limit_bytes,
            every_seconds=self._order.snapshot_every_seconds,
            last=taken[-1] if taken else None,
        )
        self._started: Started | None = None
        self._root: int | None = None
        self._overdue = False
        self._limits = LimitWatch(folder, self._order)
        self._meter = UsageMeter(self._order.gpu_uuids)
        self._disk = DiskMeter(folder, self._sandbox.bytes_elsewhere, disk_worker)
        self.stage = Stage.DONE if (folder / protocol.EXIT).exists() else Stage.NEW

    def look(self) -> None:
        """Do what is to be done now."""
        if self.stage is Stage.DONE:
            return
        self._write_reports()
        match self._sandbox.look():
            case Sight.GONE:
                self._gather(self._sandbox.ending())
            case Sight.ALIVE:
                self._watch()
            case Sight.COMING:
                self.stage = Stage.STARTING
            case Sight.ABSENT:
                self._begin()

    def _begin(self) -> None:
        if (self.folder / protocol.STOP).exists():
            self._give_up("stopped", "")
            return
        (self.folder / protocol.SNAPSHOTS).mkdir(exist_ok=True)
        why_not = self._sandbox.begin()
        if why_not:
            self._give_up("unstarted", why_not)
        else:
            self.stage = Stage.STARTING

    def _give_up(self, reason: str, problem: str) -> None:
        """End an attempt before its agent has run; claimed by us, so that nothing on its way starts it."""
        now = self._clock.now()
        with suppress(FileExistsError):
            os.close(os.open(self.folder / protocol.CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._gather(AgentEnd(reason, None, None, now, now, problem=problem))

    def _watch(self) -> None:
        if self._started is None:
            self._started = protocol.read_if_there(self.folder / protocol.STARTED, Started)
            if self._started is None:
                return
            self.stage = Stage.RUNNING
            self._root = self._sandbox.root_process()
            self._report_started(self._started)
        if protocol.was_asked_to_end(self.folder):
            self._sandbox.stop()
        elif self._is_overdue(self._started):
            self._overdue = True
            self._sandbox.kill()
            return
        try:
            taken = self._submissions.look(self._clock.now(), self._elapsed(self._started))
        except DataProblem as problem:
            self._report(SubmissionRefused(self._clock.now(), str(problem)))
        else:
            if taken is not None:
                self._report(taken)

    def _is_overdue(self, started: Started) -> bool:
        """Whether the agent should long have been ended; the monotonic clock tells it within one boot."""
        limit = self._order.time_limit_seconds + self._order.grace_seconds + OVERDUE_SECONDS
        return started.boot_id == host.boot_id() and self._elapsed(started) > limit

    def _elapsed(self, started: Started) -> float:
        """How long ago the agent started; no clock that is set changes it, but for a reboot in between."""
        if started.boot_id == host.boot_id():
            return time.monotonic() - started.monotonic
        return max(0.0, self._clock.now() - started.at)

    def _gather(self, ending: AgentEnd | None) -> None:
        """The agent is gone: take what it left, tell how it ended, and leave nothing of it running."""
        if not self._sandbox.clear():
            return  # the next look goes on once it is gone
        started = protocol.read_if_there(self.folder / protocol.STARTED, Started)
        if started is not None:
            self._report_started(started)
        now = self._clock.now()
        exited = self._exit(ending, started, now)
        self._report_once(AgentEnded(exited.ended_at, exited.reason, exited.exit_code, exited.signal))
        secrets.discard(self.folder)
        self._sandbox.remove()
        protocol.write(self.folder / protocol.EXIT, exited)
        self._report_once(Collected(now))
        self.stage = Stage.DONE

    def _exit(self, ending: AgentEnd | None, started: Started | None, now: float) -> Exit:
        sequence, problem = self._final_submission(started, now)
        limited = protocol.read_if_there(self.folder / protocol.LIMIT, Limited)
        if limited is not None and (ending is None or ending.reason == "stopped"):
            ending = AgentEnd(limited.kind, None, None, now, now, problem=limited.problem)
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
            taken = self._submissions.take_final(now, self._elapsed(started) if started else 0.0)
        except DataProblem as problem:
            return None, str(problem)
        if taken is None:
            return None, ""
        self._report(taken)
        return taken.sequence, ""

    def _report_started(self, started: Started) -> None:
        if not self._has_reported(AgentStarted):
            found = host.hardware_of(self._order.gpu_uuids, self._gpus)
            self._report(AgentStarted(started.at, started.isolated, self._sandbox.image(), found))

    def _report_once(self, report: RunReport) -> None:
        if not self._has_reported(type(report)):
            self._report(report)

    def _has_reported(self, kind: type[RunReport]) -> bool:
        return any(isinstance(known, kind) for known in self._reported)

    def _report(self, report: RunReport) -> None:
        self._reported.append(report)
        self._unwritten.append(report)
        self._write_reports()

    def _write_reports(self) -> None:
        """Write what has not been written, as when the disk was full; nothing else is done before."""
        while self._unwritten:
            line = protocol.to_line(self._unwritten[0])
            jsonlines.append(self.folder / protocol.EVENTS, [line], durable=True)
            del self._unwritten[0]

    @property
    def has_gpus(self) -> bool:
        """Whether GPUs were given to it."""
        return bool(self._order.gpu_uuids)

    def measure(self, tree: host.Tree, *, with_disk: bool, gpus: Sequence[Gpu] = ()) -> None:
        """Add a line to usage.jsonl if the attempt is running."""
        if self._root is not None and self.stage is Stage.RUNNING:
            if with_disk:
                self._disk.start()
            found = self._meter.measure(
                tree,
                self._root,
                now=self._clock.now(),
                monotonic=self._clock.monotonic(),
                disk_bytes=self._disk.take(),
                gpus=gpus,
            )
            over = self._limits.look(found, self._clock.monotonic())
            idle = round(self._limits.idle_seconds, 1)
            jsonlines.append(self.folder / protocol.USAGE, [asdict(found) | {"idle_seconds": idle}])
            if over is not None and not (self.folder / protocol.LIMIT).exists():
                protocol.write(self.folder / protocol.LIMIT, over)
