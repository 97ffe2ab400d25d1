"""The ways through the console: which screen is seen first, and how one gets to a sweep, a run, a grading.

What a screen shows is its own affair.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from console.tui.screen import SCREENS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.screen import Screen

    from console.tui.app import ConsoleApp
    from console.tui.session import Session

_NAMES = tuple(name for name, _key, _title in SCREENS)


def _screen(name: str) -> Any:
    return getattr(importlib.import_module(f"console.screens.{name}"), f"{name.capitalize()}Screen")()


# Made when it is first wanted: what the first frame does not show need not be imported for it.
MODES: Mapping[str, Callable[[], Any]] = {name: partial(_screen, name) for name in ("welcome", *_NAMES)}


def import_the_rest() -> None:
    """Import what is opened next, so that the first key that opens a run is answered as fast as the second."""
    for module in ("run", "sweep", "help", "confirm"):
        importlib.import_module(f"console.screens.{module}")


class Ways:
    """Leads from one screen of an open console to another."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app

    def begin(self, wanted: str, session: Session, *, state_exists: bool) -> None:
        """Show the wanted screen, or else the one where one was, or else the overview; the welcome without a state.

        Args:
            wanted: a screen's name, `sweep:ID` or `run:NUMBER`; empty if none is.
            session: where one was.
            state_exists: whether there is anything to show.
        """
        if not wanted and state_exists and session.screen in _NAMES:
            wanted = session.place
        mode, _, rest = wanted.partition(":")
        if not mode:
            self._app.switch_mode("overview" if state_exists else "welcome")
        elif mode == "run" and rest.isdigit():
            self._app.switch_mode("overview")
            self._app.call_after_refresh(self.to_run, int(rest))
        elif mode in _NAMES:
            self._app.sweep_id = rest or None if mode == "sweep" else None
            self._app.switch_mode(mode)

    def to(self, mode: str) -> None:
        """Show a screen, and nothing over it."""
        while len(self._app.screen_stack) > 1:
            self._app.pop_screen()
        if mode != self._app.current_mode:
            self._app.switch_mode(mode)

    def to_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Show a sweep, or else the one that was seen last, the cursor on a run of it."""
        from console.screens.sweep import SweepScreen

        self._app.sweep_id = sweep_id or self._app.sweep_id
        self.to("sweep")
        screen = self.below()
        if isinstance(screen, SweepScreen):
            screen.show_sweep(self._app.sweep_id, run_id)

    def to_run(self, run_id: int, *, pane: str = "log") -> None:
        """Open a run over the screen that is seen."""
        from console.screens.run import RunScreen

        if isinstance(self._app.screen, RunScreen):
            self._app.pop_screen()
        self._app.push_screen(RunScreen(run_id, pane=pane))

    def to_grade(self, competition_id: str, path: str) -> None:
        """Show the grading screen with its fields filled in."""
        from console.screens.grade import GradeScreen

        self.to("grade")
        screen = self.below()
        if isinstance(screen, GradeScreen):
            self._app.call_after_refresh(screen.fill_in, competition_id, path)

    def below(self) -> Screen[Any]:
        """The screen below whatever was opened over it."""
        return self._app.screen_stack[0]
