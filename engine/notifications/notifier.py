"""The engine's notifications: what is new since it last looked is sent to services, once for each thing."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from engine.notifications import news
from engine.notifications.news import News, SeenNews
from engine.settings import NotificationSettings, read_table
from foundation import files
from foundation.clock import Clock
from foundation.problems import EnvironmentProblem, Problem
from foundation.text import visible
from state.database import Database

# Where it is kept what has been sent, so that a restart neither repeats nor forgets.
NOTE_NAME = "notified.json"
# Finding idle runs reads all runs.
IDLE_EVERY_SECONDS = 60.0
TITLE = "mlebench-console"
_TRIES = 5
_AGAIN_SECONDS = 60.0
_LONGEST = 300

FullDisks = Callable[[], tuple[str, ...]]
Send = Callable[[tuple[str, ...], str], None]


def send(urls: Sequence[str], text: str) -> None:
    """Send a text to services; waits for the network.

    Raises:
        EnvironmentProblem: apprise is not installed, or not every service took it.
    """
    try:
        import apprise
    except ImportError as error:
        raise EnvironmentProblem(
            "notifications through services need apprise",
            "it is not installed",
            "Install it beside this program: pip install 'mlebench-console[notify]'",
        ) from error
    # What it logs may hold an address with its token.
    logging.getLogger("apprise").addHandler(logging.NullHandler())
    logging.getLogger("apprise").propagate = False
    sender = apprise.Apprise()
    for url in urls:
        # Addresses hold passwords and tokens: no message names them.
        if not sender.add(url):
            raise EnvironmentProblem(
                "a notification address can't be used",
                "apprise does not recognise it",
                "See urls under [notifications] in config.toml.",
            )
    if not sender.notify(visible(text)[:_LONGEST], TITLE):
        raise EnvironmentProblem("a notification was not delivered", "a service refused it")


class Notifier:
    """Finds what is new and lets a thread send it; what was not delivered is tried again a few times.

    Args:
        config_file: whose `[notifications]` table counts; it is read again when it changes.
        database: the state.
        clock: the time.
        full_disks: which disks are full at the moment, in words.
        send: how to send, which may wait.
    """

    def __init__(
        self,
        config_file: Path,
        database: Database,
        clock: Clock,
        full_disks: FullDisks,
        *,
        send: Send = send,
    ) -> None:
        self._config_file = config_file
        self._database = database
        self._clock = clock
        self._full_disks = full_disks
        self._send = send
        self._note = database.path.parent / NOTE_NAME
        self._seen: SeenNews | None = None
        self._settings = NotificationSettings()
        self._read_at: int | None = None
        self._idle_looked_at = float("-inf")
        self._sending: threading.Thread | None = None
        self._pending: tuple[SeenNews, str, int] | None = None
        self._again_at = 0.0
        self._problem: Problem | None = None

    def step(self) -> None:
        """Look once.

        Raises:
            Problem: config.toml can't be understood, or what was to be sent was not taken; it is said once a try.
        """
        self._read_config()
        if self._sending is not None and self._sending.is_alive():
            return
        self._finish()
        if self._seen is None:
            # Kept at once: what happens after a kill in this very moment is new to the next engine.
            self._keep(self._read_note())
        assert self._seen is not None  # `_keep` has just set it
        if self._pending is not None:
            if self._clock.monotonic() >= self._again_at:
                self._begin(*self._pending)
            return
        found, seen = self._look(self._seen)
        wanted = [each for each in found if each.kind in self._settings.on]
        if wanted and self._settings.urls:
            self._begin(seen, news.in_short(wanted), 1)
        elif seen != self._seen:
            self._keep(seen)

    def _begin(self, seen: SeenNews, text: str, tries: int) -> None:
        self._pending = (seen, text, tries)
        self._sending = threading.Thread(target=self._try, args=(text,), name="notifying", daemon=True)
        self._sending.start()

    def _try(self, text: str) -> None:
        self._problem = None
        try:
            self._send(self._settings.urls, text)
        except Problem as problem:
            self._problem = problem
        except Exception as error:  # noqa: BLE001 - a service's library may raise anything; its text may hold a token
            self._problem = EnvironmentProblem("a notification was not delivered", type(error).__name__)

    def _finish(self) -> None:
        """Take over what the thread came to."""
        if self._sending is None or self._pending is None:
            return
        self._sending = None
        seen, text, tries = self._pending
        if self._problem is None or tries >= _TRIES:
            # What nobody takes must not keep the next thing from being seen.
            self._pending = None
            self._keep(seen)
        else:
            self._pending = (seen, text, tries + 1)
            self._again_at = self._clock.monotonic() + _AGAIN_SECONDS
        if self._problem is not None:
            raise self._problem

    def _look(self, seen: SeenNews) -> tuple[list[News], SeenNews]:
        found, seen = news.new_events(self._database, seen, self._clock.now())
        full, seen = news.new_full_disks(self._full_disks(), seen)
        if self._clock.monotonic() - self._idle_looked_at >= IDLE_EVERY_SECONDS:
            self._idle_looked_at = self._clock.monotonic()
            idle, seen = news.new_idle_runs(self._database, seen, self._clock.now())
            full += idle
        return found + full, seen

    def _read_config(self) -> None:
        try:
            changed = self._config_file.stat().st_mtime_ns
        except OSError:
            changed = 0
        if changed != self._read_at:
            self._read_at = changed
            self._settings = read_table(self._config_file, NotificationSettings)
            if self._seen is not None:
                self._seen = replace(self._seen, causes={})  # what was not wanted before was not told

    def _read_note(self) -> SeenNews:
        """What was seen before; on a state that has no note yet, everything that has happened so far."""
        try:
            return SeenNews.from_document(json.loads(self._note.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return news.everything_until_now(self._database)

    def _keep(self, seen: SeenNews) -> None:
        files.write_json(self._note, asdict(seen), durable=False)
        self._seen = seen
