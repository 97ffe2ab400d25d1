"""Handing a text to services on the network through apprise, without ever naming their addresses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from foundation.problems import EnvironmentProblem
from foundation.text import visible

TITLE = "mlebench-console"
_LONGEST = 300


class Sender(Protocol):
    """What is used of apprise."""

    def add(self, url: str) -> bool:
        """Take an address; tells whether its form is known."""

    def notify(self, body: str, title: str) -> object:
        """Send; what it returns is true if every service took it."""


def send(urls: Sequence[str], text: str, *, make: Callable[[], Sender] | None = None) -> None:
    """Send a text to services; waits for the network.

    Raises:
        EnvironmentProblem: apprise is not installed, or not every service took it.
    """
    sender = (make or _apprise)()
    for url in urls:
        # Addresses hold passwords and tokens: no message names them.
        if not sender.add(url):
            raise EnvironmentProblem(
                "a notification address can't be used",
                "apprise does not know its form",
                "See urls under [notifications] in config.toml.",
            )
    if not sender.notify(visible(text)[:_LONGEST], TITLE):
        raise EnvironmentProblem("a notification was not delivered", "a service did not take it")


def _apprise() -> Sender:
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
    made: Sender = apprise.Apprise()
    return made
