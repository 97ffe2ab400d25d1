"""Run functions in child processes with limits, forked from one server process that has the heavy libraries loaded.

A function that crashes, runs out of memory or never ends affects only its own job. `python -m
mlebench_console.foundation.workers` is the server: it reads jobs from standard input and writes events to standard
output, both as JSON lines. It loads the libraries before its first job, so that every child has them. A child may
run several jobs in turn, each with its own limits, if the owner allows it: a fork takes as long as a short job. When
the owner exits (end of input), the server kills all jobs; when the server is killed, the kernel kills them.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import math
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from mlebench_console.foundation.problems import EnvironmentProblem, Problem, ProblemRecord

ReportProgress = Callable[[str, str, int, int], None]
"""Called with the step, the item in it, how much is done and how much there is (0: unknown)."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Variables for jobs that run side by side: every further thread reserves address space."""

_CHUNK = 1 << 16
_OUTPUT_KEPT = 4000
_TEXT_KEPT = 200
_CLOSE_SECONDS = 1.0
# How often is looked whether a server has ended of which no pipe tells.
_LOOK_SECONDS = 1.0
_EXIT_OUT_OF_MEMORY = 71
# The ways in which libraries die of a failed allocation.
_OUT_OF_MEMORY = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, _EXIT_OUT_OF_MEMORY)
_PR_SET_PDEATHSIG = 1

Excess = Literal["wall", "cpu", "memory"]


@dataclass(frozen=True)
class JobLimits:
    """The limits of one job; None means no limit.

    Attributes:
        file_bytes: the largest file that it may write; 0: it can't write files.
    """

    wall_seconds: float | None = None
    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    open_files: int | None = None
    file_bytes: int | None = None


@dataclass(frozen=True)
class Progressed:
    """Progress of a job."""

    number: int
    step: str
    what: str
    done: int
    total: int


@dataclass(frozen=True)
class Ended:
    """The end of a job.

    Attributes:
        value: what the function returned; None when it failed.
        problem: why there is no value.
        raised: whether the function itself raised the problem.
        exceeded: the limit that it exceeded, as far as its end shows that.
        signal: the signal that killed its process, unless it exceeded a limit; the kernel sends SIGKILL when the
            machine runs out of memory.
        output: the end of what it printed, where that is captured.
        lost: whether it ended because the server was killed; the job can be started again.
        reused: whether its process had run other jobs before.
    """

    number: int
    value: Any = None
    problem: Problem | None = None
    raised: bool = False
    exceeded: Excess | None = None
    signal: int = 0
    output: str = ""
    lost: bool = False
    reused: bool = False


class WorkerPool:
    """Runs jobs in child processes; its owner decides how many at once. Not thread-safe."""

    def __init__(
        self,
        *,
        preload: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        capture_output: bool = False,
        per_process: int = 1,
    ) -> None:
        """Configure the pool; the server is started with the first job.

        Args:
            preload: modules that every job needs, imported before limits apply.
            environment: the jobs' environment variables; by default those of this process.
            wrapper: a command in front of the server's, such as a sandbox.
            capture_output: keep what a job prints, for `Ended.output`, instead of passing it to standard error.
            per_process: how many jobs a process may run in turn; it ends with the first that crashes.
        """
        self._options = {
            "preload": list(preload),
            "capture_output": capture_output,
            "per_process": per_process,
        }
        self._environment = environment
        self._wrapper = wrapper
        self._server: subprocess.Popen[bytes] | None = None
        self._jobs: dict[int, JobLimits] = {}
        self._last = 0
        self._pending = b""

    def start(
        self,
        function: str,
        arguments: Mapping[str, Any],
        limits: JobLimits | None = None,
        *,
        fresh: bool = False,
    ) -> int:
        """Start a job and return its number.

        Args:
            function: `module:function`, called with the arguments by name and `report_progress`.
            arguments: values that JSON can represent.
            limits: the limits of the job.
            fresh: run it in a new process.
        """
        self._last += 1
        limits = limits or JobLimits()
        self._jobs[self._last] = limits
        if self._server is None:
            self._server = self._start_server()
        self._send(
            {
                "number": self._last,
                "function": function,
                "arguments": dict(arguments),
                "limits": asdict(limits),
                "fresh": fresh,
            }
        )
        return self._last

    def cancel(self, number: int) -> None:
        """Kill a job; it is reported as one whose process died, unless it has just ended by itself."""
        if number in self._jobs:
            self._send({"cancel": number})

    def fileno(self) -> int | None:
        """Return the descriptor that becomes readable when there are events; None while no server runs."""
        return None if self._server is None or self._server.stdout is None else self._server.stdout.fileno()

    def poll(self) -> list[Progressed | Ended]:
        """Return the events so far, without waiting."""
        if self._server is None or self._server.stdout is None:
            return []
        data = self._server.stdout.read()  # None if there is nothing to read
        if data == b"" or (not data and _has_ended(self._server)):
            # A sandbox that was killed while it was made leaves a process which waits for it and never ends.
            _kill_group(self._server)
            self.close()
            problem = EnvironmentProblem("a worker process was killed", "", "It is started again.")
            lost, self._jobs = list(self._jobs), {}
            return [Ended(number, problem=problem, lost=True) for number in lost]
        *lines, self._pending = (self._pending + (data or b"")).split(b"\n")
        return [self._read(json.loads(line)) for line in lines]

    def wait(self, give_up: float | None = None) -> list[Progressed | Ended]:
        """Wait for events and return them; none when the monotonic clock has reached `give_up`."""
        while True:
            descriptor = self.fileno()
            if descriptor is None:
                return []
            with selectors.DefaultSelector() as selector:
                selector.register(descriptor, selectors.EVENT_READ)
                left = _LOOK_SECONDS if give_up is None else give_up - time.monotonic()
                selector.select(min(left, _LOOK_SECONDS))
            if events := self.poll():
                return events
            if give_up is not None and time.monotonic() >= give_up:
                return []

    def close(self) -> None:
        """Kill all jobs and the server; a later job starts a new server."""
        server, self._server, self._pending = self._server, None, b""
        if server is None:
            return
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.close()  # makes the server kill its jobs and exit
        server.stdout.close()
        try:
            server.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            _kill_group(server)
            server.wait()

    def _start_server(self) -> subprocess.Popen[bytes]:
        environment = os.environ if self._environment is None else self._environment
        server = subprocess.Popen(
            # -P keeps the working directory off the import path, as an agent may have put modules there
            [
                *self._wrapper,
                sys.executable,
                "-P",
                "-m",
                "mlebench_console.foundation.workers",
                json.dumps(self._options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if self._options["capture_output"] else None,
            bufsize=0,
            env={**environment, **ONE_THREAD},
            start_new_session=True,
        )
        assert server.stdout is not None
        os.set_blocking(server.stdout.fileno(), False)
        return server

    def _send(self, line: dict[str, Any]) -> None:
        if self._server is not None and self._server.stdin is not None:
            with suppress(BrokenPipeError):  # the server has just died, which `poll` will detect
                self._server.stdin.write(json.dumps(line).encode() + b"\n")

    def _read(self, line: dict[str, Any]) -> Progressed | Ended:
        number = int(line["number"])
        if "progress" in line:
            return Progressed(number, *line["progress"])
        limits = self._jobs.pop(number)
        output, outcome, code, reused = line["output"], line["outcome"], int(line["code"]), line["reused"]
        if code == 0 and "value" in outcome:
            return Ended(number, value=outcome["value"], output=output, reused=reused)
        if code == 0 and "problem" in outcome:
            raised = Problem.of(ProblemRecord(**outcome["problem"]))
            return Ended(number, problem=raised, raised=True, output=output, reused=reused)
        exceeded: Excess | None = None
        if line["overdue"]:
            exceeded = "wall"
            problem = EnvironmentProblem("the task took too long", f"its limit is {limits.wall_seconds:g} s")
        elif code == -signal.SIGXCPU:
            exceeded = "cpu"
            problem = EnvironmentProblem(
                "the task took too much processor time", f"its limit is {limits.cpu_seconds} s"
            )
        else:
            if code in _OUT_OF_MEMORY or "MemoryError" in output:
                exceeded = "memory"
            died_of = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            memory = exceeded == "memory" or code == -signal.SIGKILL
            problem = EnvironmentProblem(
                "the task's process died",
                outcome.get("error") or died_of,
                "Memory may have run out: see the kernel's log." if memory else "See engine.log.",
            )
        killed_by = -code if code < 0 and exceeded is None else 0
        return Ended(
            number, problem=problem, exceeded=exceeded, signal=killed_by, output=output, reused=reused
        )


def _has_ended(server: subprocess.Popen[bytes]) -> bool:
    """Return whether its process has ended; its number stays its own until it is waited for."""
    return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _kill_group(server: subprocess.Popen[bytes]) -> None:
    """Kill a server and the processes of its sandbox."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)


@dataclass
class _Child:
    """The server's record of a child process.

    Attributes:
        jobs: a pipe to it, for further jobs.
        messages: a pipe with the progress and the outcome of its job, as JSON lines.
        output: a pipe with what it prints; None where that is not captured.
        number: of its job; None while it is idle.
        begun: the number of jobs that it was given.
        give_up: the deadline of its job.
    """

    jobs: io.FileIO
    messages: io.FileIO
    output: io.FileIO | None
    number: int | None = None
    begun: int = 0
    give_up: float | None = None
    pending: bytes = b""
    printed: bytes = b""
    outcome: dict[str, Any] = field(default_factory=dict)
    overdue: bool = False

    @property
    def pipes(self) -> list[io.FileIO]:
        """The pipes from the child that are still open."""
        return [pipe for pipe in (self.messages, self.output) if pipe is not None and not pipe.closed]

    def give(self, job: dict[str, Any]) -> None:
        """Send it a job, which it runs at once."""
        wall = job["limits"]["wall_seconds"]
        self.number = job["number"]
        self.begun += 1
        self.give_up = None if wall is None else time.monotonic() + wall
        self.outcome, self.printed = {}, b""
        with suppress(BrokenPipeError):  # it has just died, which `_reap` will detect
            _write_line(self.jobs.fileno(), job)

    def close(self) -> None:
        """Close this side of its pipes."""
        for pipe in (self.jobs, *self.pipes):
            pipe.close()


class _Server:
    """Forks a child for each job, and reports its progress and its end."""

    def __init__(self, events: int, options: Mapping[str, Any]) -> None:
        self._events = events
        self._options = options
        self._children: dict[int, _Child] = {}
        self._pending = b""

    def run(self) -> None:
        """Load the libraries, and work until the input ends."""
        gc.disable()  # what is imported stays: looking for garbage meanwhile is an eighth of the time
        for module in self._options["preload"]:
            importlib.import_module(module)
        gc.freeze()  # keeps the loaded modules' memory shared with the children
        gc.enable()
        wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        while True:
            with selectors.DefaultSelector() as selector:
                pipes = [pipe.fileno() for child in self._children.values() for pipe in child.pipes]
                for descriptor in (0, wake, *pipes):
                    selector.register(descriptor, selectors.EVENT_READ)
                ready = {key.fd for key, _ in selector.select(self._next_overdue())}
            if wake in ready:
                os.read(wake, _CHUNK)
            for child in self._children.values():
                self._listen(child)
            if 0 in ready and not self._take_jobs():
                self._kill(list(self._children))
                return
            self._reap()
            late = [pid for pid, child in self._children.items() if _is_late(child)]
            for pid in late:
                self._children[pid].overdue = True
            self._kill(late)

    def _next_overdue(self) -> float | None:
        waiting = (child for child in self._children.values() if not child.overdue)
        ends = [child.give_up for child in waiting if child.give_up is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _take_jobs(self) -> bool:
        data = os.read(0, _CHUNK)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in map(json.loads, lines):
            if "cancel" in line:
                self._kill([pid for pid, child in self._children.items() if child.number == line["cancel"]])
            else:
                self._begin(line)
        return bool(data)

    def _begin(self, job: dict[str, Any]) -> None:
        idle = None if job["fresh"] else next(filter(_is_idle, self._children.values()), None)
        if idle is not None:
            idle.give(job)
            return
        jobs, jobs_write = os.pipe()
        messages, messages_write = os.pipe()
        output, output_write = os.pipe() if self._options["capture_output"] else (None, None)
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(jobs_write)
                code = self._be_child(server, jobs, messages_write, output_write)
            except BaseException:  # noqa: BLE001 - nothing may return into the server's own loop
                code = 1
            os._exit(code)
        os.close(jobs)
        os.close(messages_write)
        if output_write is not None:
            os.close(output_write)
        with suppress(PermissionError, ProcessLookupError):  # the child does the same, whoever is first
            os.setpgid(pid, pid)
        read_output = None if output is None else _open_pipe(output)
        child = _Child(io.FileIO(jobs_write, "w"), _open_pipe(messages), read_output)
        self._children[pid] = child
        child.give(job)

    def _be_child(self, server: int, jobs: int, messages: int, output: int | None) -> int:
        import ctypes

        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:  # it died before the line above could take effect
            return 1
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(0)
        os.close(self._events)
        for sibling in self._children.values():
            sibling.close()
        if output is not None:
            os.dup2(output, 1)
            os.dup2(output, 2)
        # If memory runs out, the kernel should kill this job and not the engine or an agent.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
        most: int = self._options["per_process"]
        done = code = 0
        with io.FileIO(jobs) as waiting, io.BufferedReader(waiting) as lines:
            while done < most and code == 0 and (line := lines.readline()):
                used = math.ceil(time.process_time()) if done else 0
                done += 1
                code = self._run_job(json.loads(line), messages, used, is_last=done == most)
        return code

    def _run_job(self, job: dict[str, Any], messages: int, used: int, *, is_last: bool) -> int:
        """Run one job and return an exit code for this process; 0: it may run another job."""

        def report_progress(step: str, what: str, done: int, total: int) -> None:
            _write_line(messages, {"progress": [step, what[:_TEXT_KEPT], done, total]})

        def say(outcome: dict[str, Any]) -> None:
            sys.stdout.flush()  # so that the output is complete when the outcome is read
            sys.stderr.flush()
            _write_line(messages, outcome | {"waits": not (is_last or "error" in outcome)})

        try:
            _limit(JobLimits(**job["limits"]), used)
            module, _, name = job["function"].partition(":")
            function = getattr(importlib.import_module(module), name)
            say({"value": function(**job["arguments"], report_progress=report_progress)})
        except Problem as problem:
            # Print the traceback of a problem's cause, except for system errors, which explain themselves.
            if (
                not self._options["capture_output"]
                and problem.__cause__ is not None
                and not isinstance(problem.__cause__, OSError)
            ):
                import traceback

                traceback.print_exception(problem)
            say({"problem": asdict(problem.record)})
        except MemoryError:
            return _EXIT_OUT_OF_MEMORY
        except BaseException as error:  # noqa: BLE001 - a job's process must not end without a report
            say({"error": f"{type(error).__name__}: {error}"})
            import traceback

            traceback.print_exc()
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return 0

    def _listen(self, child: _Child) -> None:
        """Report progress, and keep the outcome and the end of the output."""
        *lines, child.pending = (child.pending + _available(child.messages)).split(b"\n")
        for line in map(json.loads, lines):
            if "progress" in line:
                _write_line(self._events, {"number": child.number, **line})
            else:
                child.outcome = line
        if child.output is not None:
            child.printed = (child.printed + _available(child.output))[-_OUTPUT_KEPT:]
        if child.outcome.get("waits"):
            self._conclude(child, 0)

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is None:
                continue
            with suppress(ProcessLookupError, PermissionError):  # kill the processes that it has started
                os.killpg(pid, signal.SIGKILL)
            self._listen(child)
            child.close()
            self._conclude(child, os.waitstatus_to_exitcode(status))

    def _conclude(self, child: _Child, code: int) -> None:
        """Report the end of the child's job, if it has one."""
        if child.number is None:
            return
        ended = {
            "number": child.number,
            "code": code,
            "overdue": child.overdue,
            "outcome": child.outcome,
            "output": child.printed.decode(errors="replace"),
            "reused": child.begun > 1,
        }
        child.number = child.give_up = None
        child.outcome = {}
        _write_line(self._events, ended)

    @staticmethod
    def _kill(pids: Sequence[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def _limit(limits: JobLimits, used: int) -> None:
    """Set this process's limits for a job; `used` seconds of its processor time went to earlier jobs."""
    cpu_seconds = None if limits.cpu_seconds is None else used + limits.cpu_seconds
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_AS, limits.memory_bytes),
    ):
        if value is not None:
            hard = resource.getrlimit(kind)[1]
            lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (lower, hard))


def _is_idle(child: _Child) -> bool:
    return child.number is None and not child.overdue


def _is_late(child: _Child) -> bool:
    return not child.overdue and child.give_up is not None and time.monotonic() >= child.give_up


def _open_pipe(descriptor: int) -> io.FileIO:
    os.set_blocking(descriptor, False)
    return io.FileIO(descriptor)


def _available(pipe: io.FileIO) -> bytes:
    """Read what is in a pipe, and close it when its other end is closed."""
    if pipe.closed:
        return b""
    data = pipe.readall()  # None if there is nothing to read
    if data == b"":
        pipe.close()
    return data or b""


def _write_line(descriptor: int, line: dict[str, Any]) -> None:
    left = memoryview(json.dumps(line).encode() + b"\n")
    while left:
        left = left[os.write(descriptor, left) :]


def main() -> None:
    """Run the server."""
    # What a job prints must not get mixed with the events.
    events = os.dup(1)
    os.dup2(2, 1)
    # Ctrl-C in a terminal is for the owner, which ends this process by closing its input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Server(events, json.loads(sys.argv[1])).run()


if __name__ == "__main__":
    main()
