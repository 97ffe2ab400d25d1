"""Run the console until it is closed: in a terminal, or as the process behind a web page of `serve`."""

from __future__ import annotations

import logging
import os
import sys

from mlebench_console.console.app.app import OPEN_DEMO, ConsoleApp
from mlebench_console.console.app.shell import Shell
from mlebench_console.console.tui.config import read_settings
from mlebench_console.console.tui.keys import SCREENS
from mlebench_console.console.tui.terminal import IN_BROWSER
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import UsageProblem


def run_console(
    places: Places,
    shell: Shell,
    *,
    screen: str | None = None,
    readonly: bool = False,
    demo: bool = False,
    ascii: bool = False,
    theme: str | None = None,
) -> int:
    """Run the console until it is closed and return the exit code of the command.

    Args:
        places: the paths of the state to show.
        shell: the command line.
        screen: where to open: a screen's name, `sweep:ID` or `run:NUMBER`.
        readonly: leave out every key that changes anything.
        demo: show on every screen that the data are synthetic.
        ascii: draw signs with ASCII only.
        theme: the name of a theme, such as `light`, which overrides config.toml.

    Raises:
        Problem: config.toml or `screen` can't be used.
        Exception: an unexpected error has ended the app.
    """
    _require_screen(screen)
    ascii_only = ascii or not (IN_BROWSER or _speaks_unicode())
    settings = read_settings(places.config_file, theme=theme, ascii_only=ascii_only)
    _log_to_file(places)
    app = ConsoleApp(places, settings, screen=screen, readonly=readonly, demo=demo, shell=shell)
    wanted = app.run()
    app.left()
    if app.failure is not None:
        raise app.failure
    if wanted == OPEN_DEMO:
        from mlebench_console.engine.demo import demo_places, ensure_demo

        ensure_demo(places)
        return run_console(demo_places(places), shell, demo=True, ascii=ascii, theme=theme)
    engine = app.engine
    if engine is not None and engine.running and not IN_BROWSER:
        sys.stdout.write(f"The engine keeps running (process {engine.pid}, {engine.live} runs live).\n")
    return app.return_code or 0


def _require_screen(screen: str | None) -> None:
    name, _, rest = (screen or "overview").partition(":")
    known = [name for name, *_ in SCREENS]
    if name not in (*known, "run") or (name == "run" and not rest.isdecimal()):
        raise UsageProblem(
            f"there is no screen '{screen}'", "", f"Screens: {', '.join(known)}, sweep:ID, run:NUMBER."
        )


def _speaks_unicode() -> bool:
    return "utf" in (sys.stdout.encoding or "").lower() and os.environ.get("TERM") != "linux"


def _log_to_file(places: Places) -> None:
    """Send logging to a file instead of the screen; it is created with the first entry."""
    if not places.state_dir.is_dir():
        return
    handler = logging.FileHandler(places.state_dir / "console.log", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("mlebench_console.console")
    root.handlers[:] = [handler]
    root.propagate = False
