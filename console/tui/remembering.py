"""Keeping where the operator of an open console is, gathered from its screens, so that the next one begins there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.tui.screen import ConsoleScreen
from console.tui.session import Session, read_session, write_session

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

# A console that is killed is found again as it was some seconds before.
_EVERY_TICKS = 10


class Memory:
    """Where the operator was when the console opened, and is now.

    Attributes:
        session: what is kept of it.
    """

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._ticks = 0
        self.session = Session()

    def begin(self) -> None:
        """Find out where the operator was."""
        self.session = read_session(self._app.places.state_dir)

    def tick(self) -> None:
        """A moment has passed: now and then, keep where the operator is."""
        self._ticks += 1
        if self._ticks % _EVERY_TICKS == 0:
            self.keep()

    def keep(self) -> None:
        """Keep where the operator is, if that has changed since it was kept; a console that only reads does not."""
        at = self._app.ways.below()
        if self._app.readonly or not isinstance(at, ConsoleScreen) or not at.REMEMBERED_AS:
            return
        found = {
            screen.REMEMBERED_AS: screen.whereabouts()
            for screen in self._app.screens_below()
            if isinstance(screen, ConsoleScreen) and screen.REMEMBERED_AS and screen.is_whole()
        }
        now = Session(at.REMEMBERED_AS, self._app.sweep_id or "", {**self.session.screens, **found})
        if now != self.session:
            write_session(self._app.places.state_dir, now)
        self.session = now
