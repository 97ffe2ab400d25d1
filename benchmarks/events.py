"""Searching 100,000 events for a word that is in none of them, compared with importing the parser of commands."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measuring import Comparison, compare, python
from mlebench_console.foundation.problem_codes import EndReason
from mlebench_console.state import events
from mlebench_console.state.database import open_for_writing
from mlebench_console.state.event_records import AgentEnded, EventKind, RunFinished
from mlebench_console.state.lifecycle import Outcome

_HOW_MANY = 100_000


def measure(rounds: int) -> list[Comparison]:
    """Measure how long `events` takes to look at all of them."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder))
        search = ["-m", "mlebench_console.console", f"--state-dir={folder}", "events", "none-of-them"]
        return [
            compare(
                "events",
                python(f"search {_HOW_MANY:,} events for a word", *search),
                python("import typer", "-c", "import typer"),
                promise=8.0,
                rounds=rounds,
            )
        ]


def _write(state_dir: Path) -> None:
    database = open_for_writing(state_dir)
    ended, finished = AgentEnded(EndReason.EXITED, 0), RunFinished(Outcome.GOLD, 0.93051)
    with database.transaction():
        for number in range(_HOW_MANY // 2):
            at, text = float(number), f"attempt {number} ended (exited, exit code 0)"
            kind = EventKind.RUN_COLLECTING
            events.append(database, at, kind, text, sweep_id="s", attempt_id=number, detail=ended)
            kind = EventKind.RUN_FINISHED
            events.append(database, at, kind, "gold", sweep_id="s", attempt_id=number, detail=finished)
    database.close()
