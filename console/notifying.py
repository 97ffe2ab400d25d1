"""Calling a person: the terminal's bell, a desktop notification through the terminal, and apprise's services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console.model.news import Kind
from console.sanitize import plain
from foundation.problems import EnvironmentProblem

TITLE = "mlebench-console"
_LONGEST = 300


@dataclass(frozen=True)
class Calls:
    """What an operator wants to be called for, and how.

    Attributes:
        urls: addresses as apprise knows them (webhooks, Slack, mail); they may hold secrets.
    """

    on: frozenset[Kind] = frozenset({Kind.FAILED, Kind.IDLE, Kind.DISK})
    bell: bool = False
    desktop: bool = False
    urls: tuple[str, ...] = ()

    @property
    def any_way(self) -> bool:
        """Whether there is any way to call."""
        return self.bell or self.desktop or bool(self.urls)


def desktop_sequence(text: str) -> str:
    """What asks the terminal for a desktop notification (OSC 9, and OSC 777 for those that know only that)."""
    harmless = plain(text, limit=_LONGEST).replace(";", ",")
    return f"\x1b]9;{TITLE}: {harmless}\x1b\\\x1b]777;notify;{TITLE};{harmless}\x1b\\"


def send(urls: Sequence[str], text: str, *, make: Callable[[], object] | None = None) -> None:
    """Send a text to services; waits for the network, so call it from a thread.

    Raises:
        EnvironmentProblem: apprise is not installed, or not every service took it.
    """
    sender = (make or _apprise)()
    for url in urls:
        # Addresses hold passwords and tokens: no message names them.
        if not sender.add(url):  # type: ignore[attr-defined]  # apprise has no types
            raise EnvironmentProblem("a notification address can't be used", "apprise does not know its form")
    if not sender.notify(title=TITLE, body=plain(text, limit=_LONGEST)):  # type: ignore[attr-defined]  # see above
        raise EnvironmentProblem("a notification was not delivered", "a service did not take it")


def _apprise() -> object:
    try:
        import apprise
    except ImportError as error:
        raise EnvironmentProblem(
            "notifications through services need apprise",
            "it is not installed",
            "Install it beside this program: pip install 'mlebench-console[notifications]'",
        ) from error
    return apprise.Apprise()
