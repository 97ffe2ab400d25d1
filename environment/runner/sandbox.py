"""The interface of a runtime: what the runner needs to start, watch and end an agent."""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Protocol

from mlebench_console.environment.container.output import Ending
from mlebench_console.foundation.problems import EnvironmentProblem


class Unreachable(EnvironmentProblem):
    """The runtime does not answer, so that nothing can be decided about its attempts."""


class AgentStatus(Enum):
    """The status of an attempt's agent; `GONE` is final."""

    ABSENT = "absent"
    STARTING = "starting"
    ALIVE = "alive"
    GONE = "gone"


class Sandbox(Protocol):
    """One attempt on one runtime; after any kill, a new instance finds what an earlier one created.

    A method that fails raises and is called again later.
    """

    def status(self) -> AgentStatus:
        """Return the status of the agent."""

    def start(self) -> str:
        """Start the agent of an absent attempt, at most once ever; return why that is impossible, or nothing."""

    def keep_serving(self) -> None:
        """Restart services of a running agent that have died, and record that in restarts.jsonl.

        By default its main process does this.
        """
        return

    def stop(self) -> None:
        """Send the agent SIGTERM, and SIGKILL after its grace; repeating it is harmless."""

    def kill(self) -> None:
        """End the agent at once, and its main process with it."""

    def agent_lives(self) -> bool:
        """Return whether any process of the agent is alive, while its main process is."""

    def ending(self) -> Ending | None:
        """Return how the agent ended, once it is gone; None when that was not observed."""

    def end_leftovers(self) -> bool:
        """Kill all remaining processes of an agent that is gone; return False if this must be called again."""

    def removing(self) -> Generator[None, None, list[str]]:
        """Remove, in small steps, what only served the run, when its end was reported; return what is left of it."""

    def image(self) -> str:
        """Return the digest of the image that the agent runs in; empty where its main process reports it."""
        return ""

    def bytes_outside(self) -> int:
        """Return the agent's disk usage outside its attempt's directory; called on another thread."""
        return 0

    def counts_files(self) -> bool:
        """Return whether all files that the agent can make are in its attempt's directory, where they are counted."""
        return True

    def bytes_seen_by_root(self) -> int | None:
        """Return the size of the agent's own folders as measured by root; called on another thread.

        None where that is impossible, or would not find more.
        """
        return None

    def root_process(self) -> int | None:
        """Return the host's id of the process of which all the agent's processes are descendants, while it runs."""
