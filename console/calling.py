"""Calling the operator for what happens while the console is open; what to call for is in config.toml."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from console import notifying
from console.model import news
from console.model.news import Kind, News
from console.model.troubles import troubles

if TYPE_CHECKING:
    from console.app import ConsoleApp
    from console.model.overview import Concern
    from state.database import Database
    from state.records import Event

_IDLE_EVERY_SECONDS = 60.0


class Caller:
    """Looks at what is new, and calls once for each thing."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._seen: int | None = None
        self._idle_told: dict[int, float] = {}
        self._idle_looked_at = float("-inf")
        self._troubles: tuple[str, ...] = ()

    def begin(self) -> None:
        """Look from now on, unless nobody wants to be called."""
        if self._app.settings.calls.any_way:
            self._app.reader.watch("news", self._look, self._deliver)

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
        text = news.in_short(wanted)
        if calls.bell:
            self._app.bell()
        if calls.desktop:
            self._app.to_terminal(notifying.desktop_sequence(text))
        if calls.urls:
            self._app.in_thread(partial(notifying.send, calls.urls, text), lambda _none: None)

    def _look(self, database: Database) -> tuple[tuple[Event, ...], tuple[Concern, ...]]:
        """In the reader's thread: what has happened since the last look, and who is idle now."""
        from console.model.overview import concerns, overview

        if self._seen is None:
            self._seen = news.newest_id(database)
        found = news.since(database, self._seen)
        if found:
            self._seen = found[-1].id
        now = self._app.now()
        if now - self._idle_looked_at < _IDLE_EVERY_SECONDS:
            return found, ()
        self._idle_looked_at = now
        return found, tuple(each for each in concerns(overview(database), now) if each.kind == "idle")

    def _deliver(self, answer: tuple[tuple[Event, ...], tuple[Concern, ...]]) -> None:
        happened, idle = answer
        new = news.of_idle(idle, self._idle_told)
        self._idle_told |= {each.run.id: each.at for each in idle}
        self._app.call_later(self.call, [*news.of_events(happened), *new.values()])
