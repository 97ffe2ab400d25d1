"""Run the console in a terminal from its opening to its end; `python -m console.tui.run` is one behind a web page.

The page is served by `serve`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from console.tui.app import OPEN_DEMO, ConsoleApp
from console.tui.config import read_settings
from console.tui.screen import SCREENS
from engine.places import Places
from foundation.problems import EnvironmentProblem, UsageProblem


def run_console(
    places: Places,
    *,
    screen: str | None = None,
    readonly: bool = False,
    demo: bool = False,
    ascii: bool = False,
    theme: str | None = None,
    in_browser: bool = False,
) -> int:
    """Open the console until it is closed and return the exit code of the command.

    Args:
        places: whose state is shown.
        screen: where to open: a screen's name, `sweep:ID` or `run:NUMBER`.
        readonly: leave out every key that changes anything.
        demo: say on every screen that the data are synthetic.
        ascii: draw signs with ASCII only.
        theme: `dark`, `light` or `mono` instead of what config.toml says.
        in_browser: speak to a browser by way of the parent process, and end with it.

    Raises:
        Problem: there is no terminal, or config.toml or `screen` can't be used.
        Exception: whatever ended the app that should not have.
    """
    # Textual draws on the error stream.
    if not in_browser and not all(
        stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.__stderr__)
    ):
        raise EnvironmentProblem(
            "the console needs a terminal",
            "input, output or the error stream is not one",
            "Use 'mlebench-console status' instead.",
        )
    _require_screen(screen)
    ascii_only = ascii or not (in_browser or _speaks_unicode())
    settings = read_settings(places.config_file, theme=theme, ascii_only=ascii_only)
    _log_to_file(places)
    app = ConsoleApp(places, settings, screen=screen, readonly=readonly, demo=demo)
    if in_browser:
        parent = os.getppid()
        app.end_when(lambda: os.getppid() != parent)
    wanted = app.run()
    app.left()
    if app.failure is not None:
        raise app.failure
    if wanted == OPEN_DEMO:
        return _open_demo(places, ascii=ascii, theme=theme, in_browser=in_browser)
    if in_browser:
        return app.return_code or 0
    engine = app.engine
    if engine is not None and engine.running:
        sys.stdout.write(f"The engine keeps running (process {engine.pid}, {engine.live} runs live).\n")
    return app.return_code or 0


def _open_demo(places: Places, *, ascii: bool, theme: str | None, in_browser: bool) -> int:
    from engine.demo import demo_places, ensure_demo

    ensure_demo(places)
    return run_console(demo_places(places), demo=True, ascii=ascii, theme=theme, in_browser=in_browser)


def _require_screen(screen: str | None) -> None:
    name, _, rest = (screen or "overview").partition(":")
    known = [name for name, _key, _title in SCREENS]
    if name not in (*known, "run") or (name == "run" and not rest.isdigit()):
        raise UsageProblem(
            f"there is no screen '{screen}'", "", f"Screens: {', '.join(known)}, sweep:ID, run:NUMBER."
        )


def _speaks_unicode() -> bool:
    return "utf" in (sys.stdout.encoding or "").lower() and os.environ.get("TERM") != "linux"


def _log_to_file(places: Places) -> None:
    """Keep tracebacks off the screen; the file appears with the first one."""
    if not places.state_dir.is_dir():
        return
    handler = logging.FileHandler(places.state_dir / "console.log", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("console")
    root.handlers[:] = [handler]
    root.propagate = False


def main() -> int:
    """Be the console until the page is closed."""
    parser = argparse.ArgumentParser(prog="console.tui.run", description="The console behind a page.")
    for name in ("--state-dir", "--data-dir", "--config"):
        parser.add_argument(name, type=Path, required=True)
    for name in ("--screen", "--theme"):
        parser.add_argument(name)
    for name in ("--readonly", "--demo", "--ascii"):
        parser.add_argument(name, action="store_true")
    asked = parser.parse_args()
    if os.environ.get("TEXTUAL_DRIVER") is None:
        parser.error("it works in a browser only; see 'mlebench-console serve'")

    places = Places(asked.config, asked.data_dir, asked.state_dir)
    return run_console(
        places,
        screen=asked.screen,
        readonly=asked.readonly,
        demo=asked.demo,
        ascii=asked.ascii,
        theme=asked.theme,
        in_browser=True,
    )


if __name__ == "__main__":
    sys.exit(main())
