"""Grading in a child process with limits on memory, processor and wall time, so that no submission harms the engine.

`python -m engine.grading.child` is that child: it reads one request as JSON and answers one as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from competitions.judging import Judgement
from competitions.model import Edition, Parameter
from competitions.registry import get
from engine.grading.report import Report, make_report
from engine.layout import dataset_folder, descriptions_of
from foundation import problems
from foundation.problems import Problem

_STDERR_KEPT = 4000
_GIB = 1 << 30


@dataclass(frozen=True)
class ChildLimits:
    """What grading one submission may take; far above what any real one needs."""

    memory_bytes: int = 16 * _GIB
    cpu_seconds: int = 1800
    wall_seconds: float = 3600.0


@dataclass(frozen=True)
class GradeRequest:
    """One submission to grade, in a form that passes between processes.

    Attributes:
        follow_links: accept a symbolic link as submission; never for a file that an agent placed.
    """

    submission_path: str | None
    competition_id: str
    data_dir: str | None = None
    edition: Edition = "v1"
    parameters: Mapping[str, Parameter] | None = None
    answers: str | None = None
    follow_links: bool = False
    limits: ChildLimits = field(default_factory=ChildLimits)


def grade_in_child(request: GradeRequest) -> Report:
    """Grade a submission in a process of its own; one that dies or exceeds a limit costs its score only.

    Raises:
        Problem: unknown competition, or its dataset is not prepared.
    """
    competition = get(request.competition_id)
    process = subprocess.Popen(
        # -P keeps the working directory off the import path: an agent may have put modules there
        [sys.executable, "-P", "-m", "engine.grading.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # one thread: OpenBLAS maps memory per thread, and the engine grades several at a time
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    try:
        answer, told = process.communicate(
            json.dumps(asdict(request)).encode(), timeout=request.limits.wall_seconds
        )
    except subprocess.TimeoutExpired:
        _end(process)
        judgement = _over_limit(f"more than {request.limits.wall_seconds:g} s")
    except BaseException:
        _end(process)
        raise
    else:
        if process.returncode == 0:
            return _read_answer(answer)
        judgement = _judge_death(process.returncode, told)
    submission = None if request.submission_path is None else Path(request.submission_path)
    folder = dataset_folder(competition, request.data_dir, request.edition)
    now = datetime.now(UTC).isoformat()
    return make_report(competition, judgement, submission, request.edition, now, descriptions_of(folder))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended in this very moment
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _read_answer(answer: bytes) -> Report:
    values = json.loads(answer)
    told = values.get("problem")
    if told is not None:
        raise _problem(told)
    return Report.from_dict(values["report"])


def _problem(told: dict[str, str]) -> Problem:
    kind: type[Problem] = getattr(problems, told["kind"], Problem)
    return kind(told["what"], told["why"], told["next_step"])


def _judge_death(code: int, told: bytes) -> Judgement:
    detail = told[-_STDERR_KEPT:].decode(errors="replace")
    if code == -signal.SIGXCPU:
        return _over_limit("more processor time than it may take", detail)
    if b"MemoryError" in told or code in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS):
        # killed by the kernel for want of memory, or a library died on a failed allocation
        return _over_limit("more memory than it may take", detail)
    return Judgement(
        "grader_error", None, "The submission could not be graded.", detail or f"exit code {code}"
    )


def _over_limit(what: str, detail: str = "") -> Judgement:
    return Judgement("limits_exceeded", None, f"Grading the submission needs {what}.", detail)


def main(requests: IO[str], answers: IO[str]) -> None:
    """Be the child: take the limits, grade, answer."""
    values: dict[str, Any] = json.loads(requests.read())
    limits = ChildLimits(**values.pop("limits"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_AS, limits.memory_bytes)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    # import after the limits hold: pandas is part of what the child may take
    from engine.grading.single import grade

    try:
        report = grade(values.pop("submission_path"), values.pop("competition_id"), **values)
    except Problem as problem:
        answer: dict[str, Any] = {
            "problem": {
                "kind": type(problem).__name__,
                "what": problem.what,
                "why": problem.why,
                "next_step": problem.next_step,
            }
        }
    else:
        answer = {"report": report.to_dict(extended=True)}
    json.dump(answer, answers)


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, hard))


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
