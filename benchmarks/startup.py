"""Starting up: `--help` beside an import of the library that parses the command line."""

from __future__ import annotations

from benchmarks.measuring import Comparison, compare, python


def measure(rounds: int) -> list[Comparison]:
    """Measure what somebody waits who only wants the help."""
    return [
        compare(
            "help",
            python("mlebench-console --help", "-m", "console", "--help"),
            python("import typer", "-c", "import typer"),
            promise=1.5,
            rounds=rounds,
        )
    ]
