"""The process of one check: limits itself, runs the competition's grader, and tells the form alone.

The score exists only in this process; what leaves it is whether the file is valid, and why not.
"""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def _limit(memory_bytes: int, seconds: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _judge(request: dict[str, Any]) -> dict[str, Any]:
    from competitions.judging import judge
    from competitions.registry import get

    judgement = judge(
        get(request["competition"]),
        Path(request["submission"]),
        prepared=Path(request["prepared"]),
        edition=request["edition"],
    )
    if judgement.detail:
        sys.stderr.write(judgement.detail)
    return {"valid": judgement.outcome == "scored", "message": judgement.message}


def main() -> None:
    """Read one request from standard input and answer it on standard output, both JSON."""
    # Nothing may be written from here on, byte code of the task included.
    sys.dont_write_bytecode = True
    request = json.load(sys.stdin)
    _limit(request["memory_bytes"], request["seconds"])
    json.dump(_judge(request), sys.stdout)


if __name__ == "__main__":
    main()
