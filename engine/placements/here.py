"""The engine's own host as a placement: a runner, which outlives the engine, takes attempts from an inbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mlebench_console.engine.placements.model import Placement
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.gateway.keeper import given_variables
from mlebench_console.environment.runner.process import runtimes
from mlebench_console.environment.runner.protocol import InboxEntry, Order, Stop
from mlebench_console.foundation import files, locks
from mlebench_console.foundation.backoff import Retries
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemons import Log, start_daemon
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural
from mlebench_console.state.records import Attempt

_START_SECONDS = 10.0
_NAMED = 3


class Here(Placement):
    """Puts attempts into the inbox of this host's runner, and starts the runner when it is needed."""

    def __init__(self, state_dir: Path, clock: Clock, log: Log) -> None:
        self._state_dir = state_dir
        self._inbox = protocol.inbox(state_dir)
        self._clock = clock
        self._log = log
        self._retries: Retries[str] = Retries(clock)  # by file of the inbox
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._missed_since: float | None = None
        self.unknown: tuple[Order, ...] = ()
        """What may run here without being known to the state; it occupies what it was given."""

    @property
    def problem(self) -> str:
        """What can't be removed from the inbox, or needs a person; empty without a problem."""
        if not self.unknown:
            return str(self._retries)
        folders = [
            protocol.attempt_folder(
                order.sweep_id, order.competition_id, order.seed, order.attempt, order.token
            )
            for order in self.unknown
        ]
        more = f" and {len(folders) - _NAMED} more" if len(folders) > _NAMED else ""
        text = (
            f"{plural(len(folders), 'attempt')} that this state does not know may be running, and keep what they were"
            f" given: {', '.join(folders[:_NAMED])}{more}; restore the state's backup, or create a file"
            f" {protocol.STOP} in each to end it"
        )
        return "; ".join(filter(None, (str(self._retries), text)))

    @property
    def runner_alive(self) -> bool | None:
        """Whether a runner holds its lock; None where none does and no attempt needs it.

        None too while a runner is being started, or would only clean up.
        """
        if self._is_held:
            return True
        since = self._missed_since
        is_late = since is not None and self._clock.monotonic() - since >= _START_SECONDS
        return False if is_late and protocol.has_placed(self._state_dir) else None

    @property
    def _is_held(self) -> bool:
        return locks.is_held(self._state_dir / protocol.RUNNER / protocol.RUNNER_LOCK)

    def runtime(self, wanted: str) -> str:
        """Return the actual runtime on this host for a sweep's runtime."""
        return runtimes.resolve(wanted)

    def recover(self) -> None:
        """Remove half-written entries of a killed engine from the inbox, where only engines write."""
        files.remove_partials(self._inbox)

    def place(self, attempt: Attempt) -> None:
        """Put an attempt into the inbox."""
        self._inbox.mkdir(parents=True, exist_ok=True)
        if not self.is_placed(attempt):
            protocol.write(self._entry(attempt), InboxEntry(attempt.id, attempt.directory))

    def is_placed(self, attempt: Attempt) -> bool:
        """Return whether an attempt is in the inbox."""
        return self._entry(attempt).exists()

    def end(self, _attempt: Attempt, /) -> None:
        """Do nothing: the runner reads the stop file itself."""

    def forget(self, attempt: Attempt) -> None:
        """Remove an attempt from the inbox."""
        self._entry(attempt).unlink(missing_ok=True)

    def keep_only(self, live: Sequence[Attempt], knows: Callable[[str], bool]) -> None:
        """Remove all other attempts from the inbox, after ending those that still run and that the state knows."""
        unknown: list[Order] = []
        kept = {self._entry(attempt) for attempt in live}
        others = [path for path in self._inbox.glob("[!.]*.json") if path not in kept]
        self._retries.keep_only({path.name for path in others})
        for path in others:
            if self._retries.must_wait(path.name):
                continue
            try:
                if (order := self._let_go(path, knows)) is not None:
                    unknown.append(order)
            except (Problem, OSError) as error:
                what = f"{path.name} can't be taken out of the inbox"
                self._log(what, error)
                cause = error.cause if isinstance(error, Problem) else str(error)
                self._retries.note(path.name, f"{what}: {cause}")
        self.unknown = tuple(unknown)

    def _let_go(self, path: Path, knows: Callable[[str], bool]) -> Order | None:
        """Remove an attempt that has ended, have a known one ended, or return the order of an unknown one."""
        folder = self._state_dir / protocol.read(path, InboxEntry).directory
        if (folder / protocol.EXIT).exists() or not folder.exists():
            path.unlink()
        elif not knows(path.stem):
            return protocol.read_order(folder)
        elif not (folder / protocol.STOP).exists():
            protocol.write(folder / protocol.STOP, Stop("engine", self._clock.now()))
        return None

    def step(self) -> None:
        """Start a runner if there is work for one and none is running."""
        starting = self._child is not None and self._child.poll() is None
        if self._is_held or not protocol.needs_runner(self._state_dir):
            self._missed_since = None
            return
        now = self._clock.monotonic()
        if self._missed_since is None:
            self._missed_since = now
        if starting and now - self._started_at < _START_SECONDS:
            return
        self._started_at = now
        module, place = "mlebench_console.environment.runner", f"--state-dir={self._state_dir}"
        self._child = start_daemon(
            [sys.executable, "-m", module, place],
            self._state_dir / protocol.RUNNER / protocol.RUNNER_LOG,
            variables=_runner_environment(),  # without the operator's secrets
        )

    def _entry(self, attempt: Attempt) -> Path:
        return self._inbox / f"{attempt.token}.json"


def _runner_environment() -> dict[str, str]:
    """Return the engine's variables that the runner and its gateways need, and none of its secrets."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "PYTHONPATH")
    docker = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG")
    return given_variables(os.environ, *kept, *docker)
