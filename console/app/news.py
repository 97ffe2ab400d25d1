"""Notifications in the operator's terminal; the engine notifies services on the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlebench_console.console.sanitize import plain
from mlebench_console.engine.notifications import news
from mlebench_console.engine.notifications.news import News

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.foundation.clock import Clock
    from mlebench_console.state.database import Database

_IDLE_EVERY_SECONDS = 60.0
_TITLE = "mlebench-console"
_LONGEST = 300


class NewsWatch:
    """Finds new events since the last check; returns each event once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: news.SeenNews | None = None
        self._idle_looked_at = float("-inf")
        self._of_host = news.SeenNews()

    def of_state(self, database: Database) -> list[News]:
        """Return the events since the last check, and the runs that are idle now; called in the reader's thread."""
        seen = self._seen or news.everything_until_now(database)
        now = self._clock.now()
        found, self._seen = news.new_events(database, seen, now)
        if now - self._idle_looked_at >= _IDLE_EVERY_SECONDS:
            self._idle_looked_at = now
            idle, self._seen = news.new_idle_runs(database, self._seen, now)
            found += idle
        return found

    def of_engine(self, status: EngineStatus | None) -> list[News]:
        """Return new problems of the engine's host since the last status, such as a full disk."""
        from mlebench_console.engine.needs.need import NeedKind, host_needs

        wanted = (NeedKind.DISK, NeedKind.RUNNER)
        found = [need for need in host_needs(status, self._clock.now()) if need.kind in wanted]
        new, self._of_host = news.new_of_host(found, self._of_host)
        return new


def desktop_sequence(text: str) -> str:
    """Return the escape sequence of a desktop notification: OSC 9, and OSC 777 for terminals that know only that."""
    harmless = plain(text, limit=_LONGEST).replace(";", ",")
    return f"\x1b]9;{_TITLE}: {harmless}\x1b\\\x1b]777;notify;{_TITLE};{harmless}\x1b\\"
