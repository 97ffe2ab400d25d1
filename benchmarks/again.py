"""Preparing prepared datasets again: twenty of them, compared with importing the library that parses the command."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.measuring import Comparison, compare, python
from mlebench_console.competitions import registry
from mlebench_console.engine.layout import dataset_folder

_HOW_MANY = 20


def measure(rounds: int) -> list[Comparison]:
    """Measure how long running a script for the second time takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = registry.splits()["split75"][:_HOW_MANY]
        for competition in map(registry.get, chosen):
            prepared = dataset_folder(competition, folder / "data").prepared
            for wanted in (competition.answers, competition.sample_submission, "public/description.md"):
                (prepared / wanted).parent.mkdir(parents=True, exist_ok=True)
                (prepared / wanted).write_text("id\n")
        names = folder / "names.txt"
        names.write_text("\n".join(chosen))
        places = [f"--{place}-dir={folder / place}" for place in ("state", "data")]
        again = ["-m", "mlebench_console.console", *places, "prepare", "--list", str(names)]
        return [
            compare(
                "again",
                python(f"prepare {_HOW_MANY} that are prepared", *again),
                python("import typer", "-c", "import typer"),
                promise=5.0,
                rounds=rounds,
            )
        ]
