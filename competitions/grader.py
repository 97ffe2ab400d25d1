"""Grade submissions in child processes with limits.

The engine, the commands, the Grade screen and the validation server all use this module, so that their
verdicts agree. Scoring itself is in `judging`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from mlebench_console.competitions.judging import GradeRequest, Judgement, judge
from mlebench_console.competitions.registry import OWN_VARIABLE, get, is_own
from mlebench_console.competitions.task import line_at_fault
from mlebench_console.foundation.bubblewrap import proc
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem
from mlebench_console.foundation.workers import Ended, JobLimits, Progressed, ReportProgress, WorkerPool

PER_PROCESS = 100
"""How many submissions a process grades in turn where many are graded at once."""

LIMITS = JobLimits(wall_seconds=3600, cpu_seconds=1800, memory_bytes=16 << 30, open_files=256, file_bytes=0)
"""The resources that grading one submission may use; far above what any real one needs."""

_TRIES = 3
_TEXT_KEPT = 200
# Outcomes of grading that failed, and of grading that finished.
_BROKE = ("limits_exceeded", "grader_error")
_GRADED = ("scored", "rejected")
# Limits that a process may exceed because other processes use the machine too.
_DEPENDS_ON_OTHERS = ("wall", "memory")
_PROBE_SECONDS = 20
_PATHS = ("submission", "prepared", "answers")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a sandbox has its own, as running agents' keys lie in the host's
# The environment variables that a grader needs; the operator's keys and home directory are kept from it.
_VARIABLES = (
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    OWN_VARIABLE,
)


@dataclass(frozen=True)
class GradeResult:
    """The result of a request: a judgement, or the problem that prevented one.

    Attributes:
        number: what `start` returned for it.
        judgement: the verdict on the submission; None where there is a problem.
        problem: a fault of the grader, the dataset or the machine, which says nothing about the submission; None
            where there is a judgement.
    """

    number: int
    judgement: Judgement | None
    problem: Problem | None = None


@dataclass(frozen=True)
class _Work:
    """A request that is being graded.

    Attributes:
        unconfirmed: the judgement of a submission that broke the grader, while the sample submission is graded to
            see whether that breaks it too; `request` is then the sample's.
        fresh: whether to grade it in a new process; always so for what is tried again.
    """

    number: int
    request: GradeRequest
    tries: int = 1
    unconfirmed: Judgement | None = None
    fresh: bool = False


class Grader:
    """Grades submissions in child processes, all that are started at the same time; a context manager.

    Only one thread may use it at a time.
    """

    def __init__(self, limits: JobLimits = LIMITS, *, per_process: int = 1) -> None:
        """Prepare the worker pool; no process is started yet.

        Args:
            limits: the resources that grading one submission may use.
            per_process: how many submissions one process may grade in turn, which takes a tenth of the time of one
                process each. A failure counts only after the submission has failed in a new process too.
        """
        self._limits = limits
        self._pool = WorkerPool(
            preload=(
                "mlebench_console.competitions.judging",
                "mlebench_console.competitions.kit.tables",
                "pandas",
            ),
            environment=_environment(),
            wrapper=_sandbox(),
            capture_output=True,
            per_process=per_process,
        )
        self._working: dict[int, _Work] = {}
        self._queue: deque[_Work] = deque()
        self._alone: deque[_Work] = deque()
        self._crowded: set[int] = set()
        self._exclusive: int | None = None
        self._last = 0

    def __enter__(self) -> Self:
        """Return this grader; no process is started yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop all grading."""
        self.close()

    def start(self, request: GradeRequest) -> int:
        """Start grading and return the number that its result will carry."""
        self._last += 1
        self._queue.append(_Work(self._last, request))
        self._launch_queued()
        return self._last

    def fileno(self) -> int | None:
        """Return the descriptor that becomes readable when there may be results; None while nothing is graded."""
        return self._pool.fileno()

    def poll(self) -> list[GradeResult]:
        """Return the results that are ready, without waiting."""
        return self._results(self._pool.poll())

    def grade(self, request: GradeRequest) -> Judgement:
        """Grade one submission and wait for the judgement.

        Raises:
            Problem: grading is impossible for a reason that is not the submission's.
        """
        ((_, graded),) = self.grade_all([request])
        if graded.judgement is None:
            assert graded.problem is not None
            raise graded.problem
        return graded.judgement

    def grade_all(
        self, requests: Sequence[GradeRequest], *, at_once: int = 1
    ) -> Iterator[tuple[int, GradeResult]]:
        """Grade many submissions; yield each one's index in `requests` and its result as they finish."""
        waiting = deque(enumerate(requests))
        places: dict[int, int] = {}
        try:
            while waiting or places:
                while waiting and len(places) < at_once:
                    place, request = waiting.popleft()
                    places[self.start(request)] = place
                for result in self._results(self._pool.wait()):
                    yield places.pop(result.number), result
        finally:
            if places:  # interrupted: nobody will read the other results
                self.close()

    def close(self) -> None:
        """Stop all grading."""
        self._pool.close()
        self._working.clear()
        self._queue.clear()
        self._alone.clear()
        self._crowded.clear()
        self._exclusive = None

    def _launch_queued(self) -> None:
        """Start queued work; what must be graded alone waits until nothing else runs and blocks the rest."""
        while self._exclusive is None:
            if self._alone:
                if self._working:
                    return
                self._exclusive = self._launch(self._alone.popleft())
            elif self._queue:
                self._launch(self._queue.popleft())
            else:
                return

    def _launch(self, work: _Work) -> int:
        arguments = _to_json(work.request) | {"hidden": _hidden(work.request)}
        number = self._pool.start(f"{__name__}:grade_in_worker", arguments, self._limits, fresh=work.fresh)
        self._working[number] = work
        if len(self._working) > 1:
            self._crowded |= self._working.keys()
        return number

    def _results(self, news: Sequence[Progressed | Ended]) -> list[GradeResult]:
        ended = [each for each in news if isinstance(each, Ended)]
        results = [result for each in ended if (result := self._result(each)) is not None]
        self._launch_queued()
        return results

    def _result(self, ended: Ended) -> GradeResult | None:
        """Turn the end of a process into a result; None where grading is tried again first.

        A failure is blamed on the submission only if nothing else explains it: neither other work on this
        machine, nor earlier work of the same process, nor a grader that fails on the sample submission too.
        """
        work = self._working.pop(ended.number)
        was_alone = ended.number not in self._crowded
        self._crowded.discard(ended.number)
        if self._exclusive == ended.number:
            self._exclusive = None
        if ended.lost or ended.signal == signal.SIGKILL:
            if work.tries < _TRIES:
                self._alone.append(replace(work, tries=work.tries + 1, fresh=True))
                return None
            return GradeResult(work.number, None, _killed(work))
        if ended.raised:
            return GradeResult(work.number, None, ended.problem)
        judgement = self._judgement(ended)
        if work.unconfirmed is not None:
            if judgement.outcome in _GRADED:
                return GradeResult(work.number, work.unconfirmed)
            return GradeResult(work.number, None, _broken(work, judgement))
        if judgement.outcome not in _BROKE:
            return GradeResult(work.number, judgement)
        if ended.exceeded in _DEPENDS_ON_OTHERS and not was_alone:
            self._alone.append(replace(work, fresh=True))
        elif ended.reused:
            self._queue.appendleft(replace(work, fresh=True))
        else:
            sample = _of_sample(work.request)
            self._queue.appendleft(replace(work, request=sample, unconfirmed=judgement, fresh=True))
        return None

    def _judgement(self, ended: Ended) -> Judgement:
        judgement = None if ended.value is None else Judgement(**ended.value)
        limits = self._limits
        if ended.exceeded == "wall":
            exceeded = f"takes more than {limits.wall_seconds:,g} s"
        elif ended.exceeded == "cpu":
            exceeded = f"takes more than {limits.cpu_seconds:,} s of processor time"
        elif ended.exceeded == "memory" or (judgement and judgement.outcome == "limits_exceeded"):
            exceeded = f"needs more than {(limits.memory_bytes or 0) / (1 << 30):,.3g} GiB of memory"
        else:
            return judgement or Judgement(
                "grader_error",
                None,
                "The submission could not be graded.",
                f"{ended.problem}\n{ended.output}",
            )
        return Judgement("limits_exceeded", None, f"Grading the submission {exceeded}.", ended.output)


def _of_sample(request: GradeRequest) -> GradeRequest:
    """Return the same request for the dataset's sample submission, which no agent has written."""
    sample = request.prepared / get(request.competition_id).sample_submission
    return replace(request, submission=sample, follow_links=True, sha256="")


def _killed(work: _Work) -> Problem:
    return EnvironmentProblem(
        f"a submission for {work.request.competition_id} could not be graded",
        f"something killed its grader {work.tries} times; the kernel does so when memory runs out",
        "See the kernel's log, free memory and grade it again.",
    )


def _broken(work: _Work, judgement: Judgement) -> Problem:
    competition = get(work.request.competition_id)
    detail = judgement.detail.strip().splitlines()
    line = line_at_fault(competition, judgement.detail)
    why = f": {detail[-1][:_TEXT_KEPT]}{f' ({line})' if line else ''}" if detail else ""
    return DataProblem(
        f"a submission for {competition.id} could not be graded",
        f"its grader fails on the sample submission too{why}",
        f"Correct {competition.task_path}; mlebench-console competitions check {competition.id} shows what is wrong."
        if is_own(competition)
        else "Check the prepared data and this machine, and grade it again.",
    )


def grade(request: GradeRequest, limits: JobLimits = LIMITS) -> Judgement:
    """Grade one submission; later calls in this process reuse the worker, which has loaded the libraries.

    Raises:
        Problem: grading is impossible for a reason that is not the submission's.
    """
    if limits != LIMITS or not _shared.lock.acquire(blocking=False):
        with Grader(limits) as own:
            return own.grade(request)
    try:
        return _shared.grader().grade(request)
    finally:
        _shared.lock.release()


class _Shared:
    """The grader that `grade` reuses within this process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._grader: Grader | None = None
        self._made_for: tuple[int, dict[str, str]] | None = None

    def grader(self) -> Grader:
        # A forked process needs its own grader, and so does a changed environment.
        key = (os.getpid(), _environment())
        if self._grader is None or self._made_for != key:
            self.close()
            self._made_for = key
            self._grader = Grader()
        return self._grader

    def close(self) -> None:
        if self._grader is not None:
            self._grader.close()
        self._grader = None


_shared = _Shared()
atexit.register(_shared.close)


def grade_in_worker(report_progress: ReportProgress, hidden: str, **arguments: Any) -> dict[str, Any]:
    """Grade in this process, which is a child of the worker server.

    Raises:
        EnvironmentProblem: `hidden` is not empty; as its file seems to be missing here, no verdict would be true.
    """
    del report_progress
    if hidden:
        raise EnvironmentProblem(
            "nothing could be graded",
            f"{hidden} lies below {_SHARED_MEMORY}, which the sandbox around graders hides",
            "Move it to a disk.",
        )
    paths = {name: arguments[name] and Path(arguments[name]) for name in _PATHS}
    return asdict(judge(GradeRequest(**(arguments | paths))))


def _to_json(request: GradeRequest) -> dict[str, Any]:
    values = asdict(request)
    # the server may have another working directory
    paths = {name: values[name] and str(values[name].absolute()) for name in _PATHS}
    return values | paths


def _hidden(request: GradeRequest) -> str:
    """Return a file or folder of a request that graders in a sandbox cannot see; empty where they see all."""
    if not _sandbox():
        return ""
    for name in _PATHS:
        path: Path | None = getattr(request, name)
        if path is not None and os.path.lexists(path):
            # What a link of an agent's points to says nothing.
            follows = name != "submission" or request.follow_links
            real = path.resolve() if follows else path.parent.resolve() / path.name
            if real.is_relative_to(_SHARED_MEMORY):
                return str(real)
    return ""


def _environment() -> dict[str, str]:
    known = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**known, "PYTHONDONTWRITEBYTECODE": "1"}


@cache
def _sandbox() -> tuple[str, ...]:
    """Return the bubblewrap command around graders: no network, no writing; empty where bubblewrap does not work."""
    program = shutil.which("bwrap")
    if program is None:
        return ()
    command = (
        *(program, "--ro-bind", "/", "/", "--dev", "/dev", *proc()),
        *("--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"),
    )
    # root may read all users' files, but loses that right in its own user namespace
    variants = (("--cap-add", "CAP_DAC_READ_SEARCH"), ("--unshare-user",)) if os.geteuid() == 0 else ((),)
    for more in variants:
        with suppress(OSError, subprocess.TimeoutExpired):
            tried = subprocess.run(
                [*command, *more, "true"], capture_output=True, timeout=_PROBE_SECONDS, check=False
            )
            if tried.returncode == 0:
                return (*command, *more)
    return ()
