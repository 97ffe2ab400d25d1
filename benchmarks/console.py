"""Opening the console: until its first frame is drawn, beside the smallest app of the same library."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measuring import Comparison, compare, until_drawn

_SMALLEST = """
from textual.app import App
from textual.widgets import Static
class Smallest(App):
    def compose(self):
        yield Static("smallest app")
Smallest().run()
"""


def measure(rounds: int) -> list[Comparison]:
    """Measure what somebody waits who opens the console."""
    with tempfile.TemporaryDirectory() as folder:
        places = (f"--state-dir={Path(folder, 'state')}", f"--data-dir={Path(folder, 'data')}")
        return [
            compare(
                "console",
                until_drawn("first frame of the console", b"mlebench-console", "-m", "console", *places),
                until_drawn("first frame of a smallest app", b"smallest", "-c", _SMALLEST),
                promise=2.0,
                rounds=rounds,
            )
        ]
