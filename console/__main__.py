"""The program's entry point, for `mlebench-console` and `python -m mlebench_console.console`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    from mlebench_console.console.cli.program import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
