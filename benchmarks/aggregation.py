"""A leaderboard row from 10,000 grading reports on disk, compared with only parsing the same JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from benchmarks.measuring import Comparison, compare, python
from mlebench_console.competitions.registry import splits
from mlebench_console.engine.grading.batch import batch_document
from mlebench_console.engine.scoreboard.export import report_of
from mlebench_console.engine.scoreboard.model import Measure, Trial

_REPORTS = 10_000


def measure(rounds: int) -> list[Comparison]:
    """Measure the time for a row of 10,000 reports, from a cold start."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        parse = (
            "import json, pathlib, sys\n"
            "for path in sorted(pathlib.Path(sys.argv[1]).glob('*/*.json')):\n"
            "    json.loads(path.read_text())\n"
        )
        row = "import sys, mlebench_console as m; print(m.leaderboard_row(sys.argv[1], pad_missing=True))"
        return [
            compare(
                "aggregate",
                python(f"a row of {_REPORTS:,} reports", "-c", row, folder),
                python(f"parsing {_REPORTS:,} reports", "-c", parse, folder),
                promise=7.0,
                rounds=rounds,
            )
        ]


def _write(folder: Path) -> None:
    """Write reports as MLE-bench does, each of a whole seed."""
    members = splits()["split75"]
    earned = frozenset({Measure.SUBMISSION, Measure.VALID, Measure.GOLD, Measure.ANY_MEDAL})
    left = _REPORTS
    seed = 0
    while left > 0:
        seed += 1
        reports = tuple(
            report_of(Trial(name, seed, earned, score=0.5), earned, "v1", name) for name in members[:left]
        )
        left -= len(reports)
        path = folder / f"{seed:05}" / "2026-01-01T00-00-00-UTC_grading_report.json"
        path.parent.mkdir()
        path.write_text(json.dumps(batch_document(reports)))
