"""The process runtime: an attempt is its shim, found again by the lock that it holds."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

from environment.container.output import Ending, Started
from environment.container.processes import process_tree
from environment.container.trees import walk
from environment.runner import protocol
from environment.runner.host import readings
from environment.runner.process import containers, containment
from environment.runner.sandbox import AgentStatus
from foundation import files, locks

START_TRIES = 3
_BLOCK = 512


class ProcessSandbox:
    """An agent below a shim, in bubblewrap or without it."""

    def __init__(
        self, attempt: Path, name: str, start_shim: Callable[[Path], subprocess.Popen[bytes]]
    ) -> None:
        self._attempt = attempt
        lock = attempt / protocol.LOCK
        self._lock = (
            lock.resolve() if lock.is_symlink() else lock
        )  # on a node it is asked for on its own disk
        self._name = name
        self._start_shim = start_shim
        self._shim: subprocess.Popen[bytes] | None = None
        self._tries = 0

    def status(self) -> AgentStatus:
        """Find out where the agent is."""
        if self._lives():
            return AgentStatus.ALIVE
        # After the lock, so that what a shim wrote before it let go is not missed.
        if (self._attempt / protocol.CLAIM).exists():
            # It may have come since that look: a claim is made under the lock, so only now a free one is its end.
            return AgentStatus.ALIVE if self._lives() else AgentStatus.GONE
        starting = self._shim is not None and self._shim.poll() is None
        return AgentStatus.STARTING if starting else AgentStatus.ABSENT

    def start(self) -> str:
        """Start a shim."""
        if self._tries == START_TRIES:
            return f"its shim does not start, see {protocol.SHIM_LOG}"
        self._tries += 1
        self._shim = self._start_shim(self._attempt)
        return ""

    def keep_serving(self) -> None:
        """Do nothing: the shim does it."""

    def stop(self) -> None:
        """Have the shim end the agent."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the shim: with it goes everything below."""
        self._signal(signal.SIGKILL)

    def agent_lives(self) -> bool:
        """Look for anything below the shim's own two children, of which one is the agent's warden."""
        root = self.root_process()
        tree = process_tree()
        own = tree.children.get(root, ()) if root is not None else ()
        return any(tree.below(child.pid) for child in own)

    def ending(self) -> Ending | None:
        """Read what the shim has written."""
        return protocol.read_if_there(self._attempt / protocol.ENDING, Ending)

    def end_leftovers(self) -> bool:
        """Kill what is left of the agent."""
        if not containment.end_leftovers(self._name):
            return False
        containers.remove_podman(self._name)
        # A warden leaves nothing behind; only where it could not is it worth a look at every process.
        ending = self.ending()
        if ending is not None and not ending.survivors:
            return True
        left = readings.processes_of_attempt(self._attempt)
        readings.kill(left)
        return not left

    def removing(self) -> Generator[None, None, list[str]]:
        """Remove the agent's own system and its validation server's socket."""
        left = containers.remove_podman(self._name)
        for name in (protocol.SCRATCH, protocol.GRADER):
            left += yield from files.removing_tree(self._attempt / name)
        return left

    def image(self) -> str:
        """Return nothing: processes have no image."""
        return ""

    def bytes_outside(self) -> int:
        """Measure what Podman keeps of the agent; other sandboxes write nowhere else."""
        refused: list[str] = []
        entries = walk(containers.podmans_place(self._name), lambda place, _error: refused.append(place))
        return sum(entry.status.st_blocks for entry in entries) * _BLOCK

    def bytes_seen_by_root(self) -> None:
        """Return nothing: an agent is the same user as we are."""

    def root_process(self) -> int | None:
        """Return the shim."""
        started = protocol.read_if_there(self._attempt / protocol.STARTED, Started)
        return started.pid if started is not None else None

    def _lives(self) -> bool:
        return locks.is_held(self._lock)

    def _signal(self, number: int) -> None:
        """Signal the shim; the process that holds its lock can be no other."""
        text = self._lock.read_text().strip()
        if text.isdigit() and self._lives():
            with suppress(ProcessLookupError):  # it ended in between, which the next look sees
                os.kill(int(text), number)
