"""Which runtime an attempt gets on this host: the operator's word, or what works here."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from environment.container.output import Ending
from environment.runner import protocol
from environment.runner.process import bubblewrap
from foundation.problems import EnvironmentProblem, UsageProblem

PROCESS = "process"
NETWORKS = ("none", "models", "open")
RUNTIMES = (PROCESS, protocol.BUBBLEWRAP, protocol.PLAIN, protocol.DOCKER)


def resolve(wanted: str) -> str:
    """Turn what a sweep asks for into a runtime of the protocol; `process` takes the best that works.

    Raises:
        UsageProblem: there is no such runtime.
        EnvironmentProblem: it does not work on this host.
    """
    if wanted in (protocol.PLAIN, protocol.DOCKER):
        return wanted
    if wanted not in RUNTIMES:
        raise UsageProblem(f"there is no runtime '{wanted}'", "", f"Known are: {', '.join(RUNTIMES)}.")
    why_not = bubblewrap.why_unavailable()
    if not why_not:
        return protocol.BUBBLEWRAP
    if wanted == PROCESS:
        return protocol.PLAIN
    raise EnvironmentProblem(
        "runs can't be isolated here",
        why_not,
        "Install bubblewrap, or take the runtime 'plain' for agents you trust.",
    )


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

    def ending(self) -> Ending | None:
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
