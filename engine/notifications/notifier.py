"""Send the engine's notifications to services, each once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import msgspec

from mlebench_console.engine.needs.need import Need
from mlebench_console.engine.notifications import news
from mlebench_console.engine.notifications.news import News, SeenNews
from mlebench_console.engine.settings import NotificationSettings, read_table
from mlebench_console.foundation import files
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.problems import EnvironmentProblem, Problem
from mlebench_console.foundation.text import visible
from mlebench_console.foundation.threads import in_daemon_thread
from mlebench_console.state.database import Database

# The file of what has been notified, so that a restart neither repeats nor loses notifications.
NOTE_NAME = "notified.json"
# Finding idle runs reads all runs.
IDLE_EVERY_SECONDS = 60.0
TITLE = "mlebench-console"
_TRIES = 5
_AGAIN_SECONDS = 60.0
_LONGEST = 300

FullDisks = Callable[[], tuple[Need, ...]]
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
    # Its log may contain an address with its token.
    logging.getLogger("apprise").addHandler(logging.NullHandler())
    logging.getLogger("apprise").propagate = False
    sender = apprise.Apprise()
    for url in urls:
        # Addresses contain passwords and tokens, so messages must not contain them.
        if not sender.add(url):
            raise EnvironmentProblem(
                "a notification address can't be used",
                "apprise does not recognise it",
                "See urls under [notifications] in config.toml.",
            )
    if not sender.notify(visible(text)[:_LONGEST], TITLE):
        raise EnvironmentProblem("a notification was not delivered", "a service refused it")


class Notifier:
    """Finds news and sends them on a thread, with a few retries.

    Args:
        config_file: its `[notifications]` table is used, and read again when it changes.
        database: the state.
        clock: the time.
        full_disks: returns the disks that are full at the moment.
        send: sends a text; may block.
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
        self._sending: Future[None] | None = None
        self._pending: tuple[SeenNews, str, int] | None = None
        self._again_at = 0.0

    def step(self) -> None:
        """Find and send news once.

        Raises:
            Problem: config.toml is not valid, or a notification was not delivered (once for each try).
        """
        self._read_config()
        if self._sending is not None and not self._sending.done():
            return
        self._finish()
        if self._seen is None:
            # Saved immediately, so that if the engine is killed now, the next one finds what happens from here on.
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
        self._sending = in_daemon_thread(partial(self._send, self._settings.urls, text))

    def _finish(self) -> None:
        """Process the result of the sending thread."""
        if self._sending is None or self._pending is None:
            return
        error, self._sending = self._sending.exception(), None
        seen, text, tries = self._pending
        if error is None or tries >= _TRIES:
            # A text that can't be delivered must not block later ones.
            self._pending = None
            self._keep(seen)
        else:
            self._pending = (seen, text, tries + 1)
            self._again_at = self._clock.monotonic() + _AGAIN_SECONDS
        if isinstance(error, Problem):
            raise error
        if error is not None:  # a service's library may raise anything; its text may hold a token
            raise EnvironmentProblem("a notification was not delivered", type(error).__name__)

    def _look(self, seen: SeenNews) -> tuple[list[News], SeenNews]:
        found, seen = news.new_events(self._database, seen, self._clock.now())
        full, seen = news.new_of_host(self._full_disks(), seen)
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
                self._seen = replace(
                    self._seen, causes={}
                )  # with the old settings these may not have been sent

    def _read_note(self) -> SeenNews:
        """Return what was notified before; without a note, everything that has happened so far."""
        try:
            return msgspec.json.decode(self._note.read_bytes(), type=SeenNews)
        except (OSError, msgspec.MsgspecError):
            return news.everything_until_now(self._database)

    def _keep(self, seen: SeenNews) -> None:
        files.write_json(self._note, asdict(seen), durable=False)
        self._seen = seen
