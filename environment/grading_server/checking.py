"""Checking one uploaded file in a child process, so that no upload can harm or outlive the server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

_MAX_ANSWER = 16 << 10
_MAX_MESSAGE = 1000


@dataclass(frozen=True)
class Question:
    """What is checked against what, and what the check may use.

    Attributes:
        competition: its id.
        edition: `v1` or `corrected`.
        prepared: the prepared dataset, with the answers below `private/`.
        memory_bytes: address space of the child.
        seconds: wall clock and processor time of the child.
    """

    competition: str
    edition: str
    prepared: Path
    memory_bytes: int = 8 << 30
    seconds: int = 300


@dataclass(frozen=True)
class Verdict:
    """Whether a file has the right form; None when that could not be found out."""

    valid: bool | None
    message: str


def check(question: Question, submission: Path) -> Verdict:
    """Check a file that nobody else writes to."""
    request = {**asdict(question), "prepared": str(question.prepared), "submission": str(submission)}
    # One thread is enough for a check, and each one more would reserve address space.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "environment.grading_server.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as child:
        try:
            answer, _ = child.communicate(json.dumps(request).encode(), timeout=question.seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return Verdict(None, f"The submission could not be checked within {question.seconds} seconds.")
    if child.returncode < 0:
        return Verdict(
            None, "The submission could not be checked: it takes more memory or time than allowed."
        )
    if child.returncode != 0 or len(answer) > _MAX_ANSWER:
        return Verdict(None, "The submission could not be checked: the server's own log says why.")
    told = json.loads(answer)
    return Verdict(bool(told["valid"]), str(told["message"])[:_MAX_MESSAGE])
