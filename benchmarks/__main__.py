"""Run all measurements, or those named, and print one table; exit code 1 when a promise is broken."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterable

from benchmarks.measuring import Comparison, Reading

NAMES = (
    "startup",
    "grading",
    "graders",
    "preparation",
    "prepare",
    "again",
    "aggregation",
    "events",
    "console",
    "engine",
    "slurm",
    "gateway",
    "integrity",
)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"measurements to run: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, default=9, help="how often each command is timed")
    wanted = parser.parse_args()
    unknown = set(wanted.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    print(f"{'':10} {'measured':46} {'s':>6}   {'against':46} {'s':>6}   ratio  promised")
    kept = True
    for name in wanted.names or NAMES:
        found: Iterable[Comparison | Reading] = importlib.import_module(f"benchmarks.{name}").measure(
            wanted.rounds
        )
        for one in found:
            verdict = "" if "<=" not in one.row() else "  PASS" if one.is_kept else "  MISS"
            print(one.row() + verdict, flush=True)
            kept = kept and one.is_kept
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
