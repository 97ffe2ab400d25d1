"""What the runner needs of a runtime: the one interface between an attempt's life and where its agent runs."""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Protocol

from environment.container.output import Ending
from foundation.problems import EnvironmentProblem


class Unreachable(EnvironmentProblem):
    """The runtime does not answer: nothing is known of its attempts, so nothing is decided about them."""


class AgentStatus(Enum):
    """Where an attempt's agent is in its life; once gone it stays gone."""

    ABSENT = "absent"
    STARTING = "starting"
    ALIVE = "alive"
    GONE = "gone"


class Sandbox(Protocol):
    """One attempt on one runtime; a new one, after any kill, finds what an earlier one made.

    A method that can't be carried out now raises and is called again later.
    """

    def status(self) -> AgentStatus:
        """Find out where the agent is."""

    def start(self) -> str:
        """Start the agent of an absent attempt, at most once for ever; return why that can't be, or nothing."""

    def keep_serving(self) -> None:
        """Start again what serves a living agent and has died, and note that in restarts.jsonl."""

    def stop(self) -> None:
        """Have the agent asked to end, and made to after its grace; again is harmless."""

    def kill(self) -> None:
        """End the agent at once, and its main process with it."""

    def agent_lives(self) -> bool:
        """Return whether anything of the agent lives, of one whose main process does."""

    def ending(self) -> Ending | None:
        """Read how the agent ended, once it is gone; None when nobody saw it."""

    def end_leftovers(self) -> bool:
        """Leave nothing running of an agent that is gone; False when that takes another call."""

    def removing(self) -> Generator[None, None, list[str]]:
        """Remove, in small steps, what only served the run, when its end is told; return what is left of it."""

    def image(self) -> str:
        """Return the digest of the image that the agent runs in; empty where there is none."""

    def bytes_outside(self) -> int:
        """Measure what the agent holds on disk outside of its attempt's directory; called on another thread."""

    def bytes_seen_by_root(self) -> int | None:
        """Measure the agent's own folders as root, where this process is not; called on another thread.

        None where that can't be done, or where it would see no more.
        """

    def root_process(self) -> int | None:
        """Return the host's process below which everything of the agent is, while it runs."""
