"""Starting up: `--help` compared with importing the library that parses the command line."""

from __future__ import annotations

from benchmarks.measuring import Comparison, compare, python


def measure(rounds: int) -> list[Comparison]:
    """Measure how long showing the help takes."""
    return [
        compare(
            "help",
            python("mlebench-console --help", "-m", "mlebench_console.console", "--help"),
            python("import typer", "-c", "import typer"),
            promise=1.5,
            rounds=rounds,
        )
    ]
