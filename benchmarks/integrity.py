"""Plagiarism in one experiment: 225 solutions against 3,636 public kernels, all made by chance."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import Reading
from mlebench_console.engine.integrity import plagiarism
from mlebench_console.engine.integrity.kernels import index_of
from mlebench_console.engine.integrity.material import examined_runs
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.state.database import open_for_writing
from tests.engine.integrity.kernels_here import put
from tests.engine.integrity.made_runs import MadeRun, add_run
from tests.engine.integrity.notebooks import program, renamed

_COMPETITIONS = 75
_SEEDS = 3
_KERNELS = 3_636
_MIB = 1 << 20


def measure(rounds: int) -> list[Reading]:
    """Measure in a process of its own, so that its memory is known; once, since it takes minutes."""
    del rounds
    with tempfile.TemporaryDirectory() as folder:
        _make(Path(folder))
        told = subprocess.run(
            [sys.executable, "-m", "benchmarks.integrity", folder], check=True, capture_output=True
        ).stdout
    first, again, megabytes = json.loads(told)
    subject = f"{_COMPETITIONS * _SEEDS} solutions against {_KERNELS:,} kernels"
    return [
        Reading("integrity", "fingerprints of all kernels, the first time", first, "s", None),
        Reading("integrity", f"{subject}, fingerprints of kernels cached", again, "s", 300.0),
        Reading("integrity", f"{subject}: most memory", megabytes, "MiB", 1024.0),
    ]


def _make(folder: Path) -> None:
    """Make kernels and runs; every tenth run copies a kernel with other names."""
    names = [f"competition-{number}" for number in range(_COMPETITIONS)]
    texts: dict[str, dict[str, str]] = {name: {} for name in names}
    for number in range(_KERNELS):
        texts[names[number % _COMPETITIONS]][f"author/kernel-{number}"] = program(number)
    put(folder / "kernels", texts)
    database = open_for_writing(folder)
    with database.transaction():
        for number in range(_COMPETITIONS * _SEEDS):
            place = number % _COMPETITIONS
            copies = number % 10 == 0
            code = renamed(program(place)) if copies else program(100_000 + number)
            made = MadeRun(code={"train.py": code}, submissions=["id\n"], competition_id=names[place])
            add_run(database, made, f"run-{number}")
    database.close()


def main(folder: Path) -> None:
    """Compare, and print seconds and the most memory."""
    began = time.monotonic()
    for number in range(_COMPETITIONS):
        index_of(folder / "kernels", f"competition-{number}")
    indexed = time.monotonic()
    database = open_for_writing(folder)
    chosen = examined_runs(database, range(1, _COMPETITIONS * _SEEDS + 1))
    flagged = 0
    for one in plagiarism.examine(chosen, (), {}, SystemClock(), folder / "kernels"):
        path = next(each.folder for each in chosen if each.attempt.id == one.attempt_id)
        flagged += '"severity": "high"' in (path / "integrity" / "plagiarism.json").read_text()
    ended = time.monotonic()
    assert flagged == len([n for n in range(_COMPETITIONS * _SEEDS) if n % 10 == 0]), flagged
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _MIB
    sys.stdout.write(json.dumps([indexed - began, ended - indexed, most]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
