"""The process runtime: an attempt's shim, which is identified by the lock that it holds."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

from mlebench_console.environment.container import trees
from mlebench_console.environment.container.output import Ending, Started
from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import readings
from mlebench_console.environment.runner.process import containment
from mlebench_console.environment.runner.sandbox import AgentStatus, Sandbox
from mlebench_console.foundation import locks

START_TRIES = 3


class ProcessSandbox(Sandbox):
    """An agent that a shim runs, in bubblewrap or without it."""

    def __init__(
        self, attempt: Path, name: str, start_shim: Callable[[Path], subprocess.Popen[bytes]]
    ) -> None:
        self._attempt = attempt
        lock = attempt / protocol.LOCK
        # On a node it is asked for on its own disk.
        self._lock = lock.resolve() if lock.is_symlink() else lock
        self._name = name
        self._start_shim = start_shim
        self._shim: subprocess.Popen[bytes] | None = None
        self._tries = 0

    def status(self) -> AgentStatus:
        """Return the status of the agent."""
        if self._lives():
            return AgentStatus.ALIVE
        # Read after the lock, so that what a shim wrote before it released the lock is not missed.
        if (self._attempt / protocol.CLAIM).exists():
            # The claim is made under the lock, and may be newer than the check above: check the lock again.
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

    def stop(self) -> None:
        """Have the shim end the agent."""
        locks.signal_holder(self._lock, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the shim, and with it all its descendants."""
        locks.signal_holder(self._lock, signal.SIGKILL)

    def agent_lives(self) -> bool:
        """Return whether the shim's own children, of which one is the agent's warden, have children."""
        root = self.root_process()
        tree = process_tree()
        own = tree.get(root, ()) if root is not None else ()
        return any(tree.below(child.pid) for child in own)

    def ending(self) -> Ending | None:
        """Return the shim's record of the ending."""
        return protocol.read_if_there(self._attempt / protocol.ENDING, Ending)

    def end_leftovers(self) -> bool:
        """Kill the agent's remaining processes."""
        if not containment.end_leftovers(self._name):
            return False
        # A warden leaves nothing behind; only where it failed all processes need to be checked.
        ending = self.ending()
        if ending is not None and not ending.survivors:
            return True
        left = readings.processes_of_attempt(self._attempt)
        readings.kill(left)
        return not left

    def removing(self) -> Generator[None, None, list[str]]:
        """Remove the agent's scratch files and its validation server's socket."""
        left: list[str] = []
        for name in (protocol.SCRATCH, protocol.SERVICES):
            left += yield from trees.removing_tree(self._attempt / name)
        return left

    def root_process(self) -> int | None:
        """Return the shim."""
        started = protocol.read_if_there(self._attempt / protocol.STARTED, Started)
        return started.pid if started is not None else None

    def _lives(self) -> bool:
        return locks.is_held(self._lock)
