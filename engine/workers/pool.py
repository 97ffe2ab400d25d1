"""The engine's end of the workers: starts tasks without waiting, and hears what becomes of them."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Any

from engine.workers.tasks import Job, Limits, Task
from foundation.problems import DataProblem, EnvironmentProblem, Problem

_CHUNK = 1 << 16
# One thread each: tasks run side by side, and every further one reserves address space.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Progressed:
    """How far a task's step is; a total of 0 is unknown."""

    number: int
    step: str
    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Ended:
    """What became of a task.

    Attributes:
        value: its result; None when there is none.
        problem: why there is none.
        kind: the name of the problem's own class, by which those who can do something about it know it.
        traceback: what the log should hold of an unexpected error.
        blameless: it ended because something else was killed; it may simply be started again.
    """

    number: int
    value: dict[str, Any] | None = None
    problem: Problem | None = None
    kind: str = ""
    traceback: str = ""
    blameless: bool = False


class WorkerPool:
    """Runs tasks in worker processes; how many at once is the caller's business."""

    def __init__(self, folder: Path) -> None:
        """Prepare; `folder` is emptied: whatever a former engine's workers left there is of no use."""
        self._folder = folder
        self._nursery: subprocess.Popen[bytes] | None = None
        self._jobs: dict[int, Job] = {}
        self._last = 0
        # A worker that a killed engine left behind may still write: its numbers are not ours.
        self._token = secrets.token_hex(4)
        self._pending = b""
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)

    def start(self, task: Task, limits: Limits) -> int:
        """Start a task and return its number."""
        self._last += 1
        job = Job(self._last, task, limits, str(self._folder / f"{self._token}-{self._last}.json"))
        self._jobs[job.number] = job
        if self._nursery is None:
            self._nursery = self._start_nursery()
        assert self._nursery.stdin is not None
        with suppress(BrokenPipeError):  # it has just died, which `poll` finds out and tells of every job
            self._nursery.stdin.write(json.dumps(job.to_line()).encode() + b"\n")
        return job.number

    def cancel(self, number: int) -> None:
        """End a task; it is heard of as one whose process died, unless it ended by itself just before."""
        if number in self._jobs and self._nursery is not None and self._nursery.stdin is not None:
            with suppress(BrokenPipeError):
                self._nursery.stdin.write(json.dumps({"cancel": number}).encode() + b"\n")

    def fileno(self) -> int | None:
        """The descriptor that becomes readable when there is news; None while there are no workers."""
        if self._nursery is None or self._nursery.stdout is None:
            return None
        return self._nursery.stdout.fileno()

    def poll(self) -> list[Progressed | Ended]:
        """Take the news, without waiting."""
        news: list[Progressed | Ended] = []
        descriptor = self.fileno()
        while descriptor is not None:
            try:
                data = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                break
            if not data:
                return news + self._bury()
            *lines, self._pending = (self._pending + data).split(b"\n")
            news += [self._understand(json.loads(line)) for line in lines]
        return news

    def close(self) -> None:
        """End all workers; unfinished tasks are lost, which is what their owners expect."""
        if self._nursery is not None:
            self._bury()

    def _start_nursery(self) -> subprocess.Popen[bytes]:
        nursery = subprocess.Popen(
            [sys.executable, "-m", "engine.workers.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **_ONE_THREAD},
            start_new_session=True,
        )
        assert nursery.stdout is not None
        os.set_blocking(nursery.stdout.fileno(), False)
        return nursery

    def _bury(self) -> list[Progressed | Ended]:
        """Let go of the nursery; what it was doing has ended without anybody's fault."""
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.stdout.close()
        self._nursery.kill()
        self._nursery.wait()
        self._nursery = None
        self._pending = b""
        lost = list(self._jobs)
        self._jobs.clear()
        problem = EnvironmentProblem("a worker process was killed", "", "It is started again.")
        return [Ended(number, problem=problem, blameless=True) for number in lost]

    def _understand(self, line: dict[str, Any]) -> Progressed | Ended:
        if "progress" in line:
            return Progressed(line["number"], **line["progress"])
        job = self._jobs.pop(line["number"])
        code = int(line["ended"]["code"])
        result = Path(job.result)
        if code != 0 or not result.exists():
            return Ended(job.number, problem=_why_it_died(code, bool(line["ended"]["overdue"]), job.limits))
        outcome = json.loads(result.read_bytes())
        result.unlink()
        if "traceback" in outcome:
            last = outcome["traceback"].strip().splitlines()[-1]
            problem: Problem = EnvironmentProblem("the task failed", last, "See engine.log.")
            return Ended(job.number, problem=problem, traceback=outcome["traceback"])
        if "problem" in outcome:
            return Ended(job.number, problem=DataProblem(**outcome["problem"]), kind=outcome["kind"])
        return Ended(job.number, value=outcome["value"])


def _why_it_died(code: int, overdue: bool, limits: Limits) -> Problem:
    if overdue:
        return EnvironmentProblem("the task took too long", f"its limit is {limits.wall_seconds:.0f} s")
    name = Signals(-code).name if code < 0 else f"exit code {code}"
    return EnvironmentProblem(
        "the task's process died", name, "Memory may have run out: see the kernel's log."
    )
