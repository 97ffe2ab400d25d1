"""Opening the console from the command line: what it needs of the terminal, and its exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from console.cli.invocation import Appearance
    from engine.places import Places


def require_terminal() -> None:
    """Refuse to open the console where nobody can see it.

    Raises:
        EnvironmentProblem: there is no terminal to draw on.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise EnvironmentProblem(
            "the console needs a terminal",
            "input or output is redirected",
            "Without one, 'mlebench-console status' and the other commands tell the same; see --help.",
        )


def open_console(places: Places, appearance: Appearance, *, demo: bool = False) -> None:
    """Open the console and leave with its exit code."""
    require_terminal()
    from console.tui.running import run_console

    code = run_console(
        places,
        screen=appearance.screen,
        readonly=appearance.readonly,
        demo=demo,
        ascii=appearance.ascii_only,
        theme=appearance.theme,
    )
    if code:
        raise typer.Exit(code)
