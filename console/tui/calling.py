"""Calling the operator at the terminal of an open console; services on the network are called by the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.tui import notifying
from engine.notifications import news
from engine.notifications.news import Kind, News, troubles

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from engine.notifications.news import Told
    from state.database import Database

_IDLE_EVERY_SECONDS = 60.0


class Caller:
    """Looks at what is new, and calls once for each thing."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._told: Told | None = None
        self._idle_looked_at = float("-inf")
        self._troubles: tuple[str, ...] = ()

    @property
    def is_looking(self) -> bool:
        """Whether it has begun to look."""
        return self._told is not None

    def begin(self) -> None:
        """Look from now on, unless nobody wants to be called."""
        if self._app.settings.calls.rings_here:
            self._app.reader.watch("news", self._look, self._deliver)
        else:
            self._app.reader.unwatch("news")

    def on_engine(self) -> None:
        """The engine's status is there: its disks may have become full."""
        found = troubles(self._app.engine)
        new = [text for text in found if text not in self._troubles]
        self._troubles = found
        self.call([News(Kind.DISK, text) for text in new])

    def call(self, found: list[News]) -> None:
        """Tell what the operator wants to be called for, in every way that is wanted."""
        calls = self._app.settings.calls
        wanted = [each for each in found if each.kind in calls.on]
        if not wanted:
            return
        if calls.bell:
            self._app.bell()
        if calls.desktop:
            self._app.to_terminal(notifying.desktop_sequence(news.in_short(wanted)))

    def _look(self, database: Database) -> list[News]:
        """In the reader's thread: what has happened since the last look, and who is idle now."""
        from engine.notifications import news

        told = self._told or news.nothing_since_now(database)
        found, self._told = news.look_at_events(database, told)
        now = self._app.now()
        if now - self._idle_looked_at >= _IDLE_EVERY_SECONDS:
            self._idle_looked_at = now
            quiet, self._told = news.look_at_idle(database, self._told, now)
            found += quiet
        return found

    def _deliver(self, found: list[News]) -> None:
        self._app.call_later(self.call, found)
