"""`python -m engine.workers.nursery`: one process with the heavy libraries loaded, forked for every task.

Jobs come in on standard input as JSON lines; what became of them goes out likewise. A forked child
costs milliseconds where a fresh interpreter with pandas costs a second. When the engine goes away
(end of input), all children are ended; when this process is killed, the kernel ends them.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.workers import work
from engine.workers.tasks import Job
from foundation import files
from foundation.problems import Problem

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
_CHUNK = 1 << 16
_WHAT_CHARACTERS = 200


@dataclass(frozen=True)
class _Child:
    job: Job
    give_up: float | None


class Nursery:
    """Forks children for jobs and tells how they ended."""

    def __init__(self, jobs: int, reports: int) -> None:
        self._jobs = jobs
        self._reports = reports
        self._children: dict[int, _Child] = {}
        self._overdue: set[int] = set()

    def run(self) -> None:
        """Work until the input ends."""
        wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._jobs, selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(self._patience()):
                    data = os.read(key.fd, _CHUNK)
                    if key.fd != self._jobs:
                        continue
                    if not data:
                        self._end_all()
                        return
                    *lines, pending = (pending + data).split(b"\n")
                    for line in lines:
                        self._obey(json.loads(line))
                self._reap()
                self._kill_overdue()

    def _obey(self, line: dict[str, Any]) -> None:
        if "cancel" in line:
            for pid, child in self._children.items():
                if child.job.number == line["cancel"]:
                    os.kill(pid, signal.SIGKILL)
        else:
            self._fork(Job.from_line(line))

    def _patience(self) -> float | None:
        ends = [child.give_up for child in self._children.values() if child.give_up is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _fork(self, job: Job) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            os._exit(self._be_child(parent, job))
        wall = job.limits.wall_seconds
        self._children[pid] = _Child(job, None if wall is None else time.monotonic() + wall)

    def _be_child(self, parent: int, job: Job) -> int:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            return 1
        os.close(self._jobs)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if job.limits.memory_bytes is not None:
            resource.setrlimit(resource.RLIMIT_AS, (job.limits.memory_bytes, job.limits.memory_bytes))
        if job.limits.wall_seconds is not None:
            seconds = int(job.limits.wall_seconds) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        # If memory runs out, this task shall go and not the engine or an agent.
        Path("/proc/self/oom_score_adj").write_text("1000")

        def tell(step: str, what: str, done: int, total: int) -> None:
            progress = {"step": step, "what": what[:_WHAT_CHARACTERS], "done": done, "total": total}
            self._say({"number": job.number, "progress": progress})

        try:
            outcome: dict[str, Any] = {"value": work.do(job.task, tell)}
        except Problem as problem:
            told = {"what": problem.what, "why": problem.why, "next_step": problem.next_step}
            outcome = {"problem": told, "kind": type(problem).__name__}
        except BaseException:  # noqa: BLE001 - a task must not end its worker without a word
            outcome = {"traceback": traceback.format_exc()}
        files.write_json(Path(job.result), outcome, durable=False)
        return 0

    def _say(self, line: dict[str, Any]) -> None:
        """Tell the engine something; a line is shorter than what a pipe takes in one piece."""
        os.write(self._reports, json.dumps(line).encode() + b"\n")

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            ended = {"code": code, "overdue": pid in self._overdue}
            self._overdue.discard(pid)
            self._say({"number": child.job.number, "ended": ended})

    def _kill_overdue(self) -> None:
        for pid, child in self._children.items():
            if child.give_up is not None and time.monotonic() >= child.give_up and pid not in self._overdue:
                self._overdue.add(pid)
                os.kill(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Load what tasks need, then work."""
    # What a task prints goes to the engine's log, not among the reports.
    reports = os.dup(1)
    os.dup2(2, 1)
    # Ctrl-C in a terminal is for the engine, which ends us by closing our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work.preload()
    gc.freeze()  # what is loaded stays shared between the children
    Nursery(0, reports).run()


if __name__ == "__main__":
    main()
