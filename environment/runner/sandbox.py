"""What the runner asks of a runtime: the one seam between an attempt's life and where its agent runs."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from environment.runner.protocol import AgentEnd
from foundation.problems import EnvironmentProblem


class Unreachable(EnvironmentProblem):
    """The runtime does not answer: nothing is known of its attempts, so nothing is decided about them."""


class Sight(Enum):
    """What is to be seen of an attempt's agent."""

    ABSENT = "absent"
    COMING = "coming"
    ALIVE = "alive"
    GONE = "gone"


class Sandbox(Protocol):
    """One attempt's place on one runtime; a new one, after any kill, finds what an earlier one made.

    A method that can't be carried out now raises and is called again later.
    """

    def look(self) -> Sight:
        """See where the agent is; once gone it stays gone."""

    def begin(self) -> str:
        """Start the agent of an absent attempt, at most once for ever; tells why that can't be, or nothing."""

    def stop(self) -> None:
        """Let the agent be asked to end, then made to; again is harmless."""

    def kill(self) -> None:
        """End the agent at once."""

    def ending(self) -> AgentEnd | None:
        """How the agent ended, once it is gone; None when nobody saw it."""

    def clear(self) -> bool:
        """Leave nothing running of an agent that is gone; False when it takes another look."""

    def remove(self) -> None:
        """Remove what only served the run, when everything has been gathered."""

    def image(self) -> str:
        """The digest of the image that the agent runs in; empty where there is none."""

    def bytes_elsewhere(self) -> int:
        """What the agent holds on disk outside of its attempt's directory; asked on another thread."""

    def root_process(self) -> int | None:
        """The host's process below which everything of the agent is, while it runs."""
