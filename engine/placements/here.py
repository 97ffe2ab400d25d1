"""The engine's own host as a placement: a runner that outlives the engine looks after an inbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.placements.model import Look
from environment.runner import protocol, runtimes
from environment.runner.protocol import InboxEntry, Stop
from foundation import files, locks
from foundation.clock import Clock
from foundation.daemon_log import Log, open_log
from foundation.problems import Problem
from foundation.troubles import Troubles
from state.records import Attempt

_START_SECONDS = 10.0
_ALWAYS = Look()


class Here:
    """Puts attempts into the inbox of this host's runner, and starts that when it is needed and not there."""

    def __init__(self, state_dir: Path, clock: Clock, log: Log) -> None:
        self._state_dir = state_dir
        self._inbox = protocol.inbox(state_dir)
        self._clock = clock
        self._log = log
        self._troubles: Troubles[str] = Troubles(clock)  # by file of the inbox
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._missed_since: float | None = None

    @property
    def problem(self) -> str:
        """Say what can't be taken out of the inbox."""
        return str(self._troubles)

    @property
    def runner_alive(self) -> bool | None:
        """Whether some runner holds the runner's lock; None where none does and no attempt misses it.

        One that is only just being started is not missed, nor is one that would merely look for leftovers.
        """
        if self._is_held:
            return True
        since = self._missed_since
        is_late = since is not None and self._clock.monotonic() - since >= _START_SECONDS
        return False if is_late and protocol.has_placed(self._state_dir) else None

    @property
    def _is_held(self) -> bool:
        return locks.is_held(self._state_dir / protocol.RUNNER / protocol.RUNNER_LOCK)

    def room(self, _placement: str, /) -> None:
        """Return nothing, as the room of this host decides."""

    def share_of_rates(self, _placement: str, /) -> float:
        """Return all of it: gateways of one host share it in its memory."""
        return 1.0

    def runtime(self, wanted: str) -> str:
        """Return what a sweep's runtime is on this host."""
        return runtimes.resolve(wanted)

    def recover(self) -> None:
        """Remove what an engine that was killed has left half written in the inbox, where it alone writes."""
        files.remove_partials(self._inbox)

    def place(self, attempt: Attempt) -> None:
        """Put an attempt into the inbox."""
        self._inbox.mkdir(parents=True, exist_ok=True)
        if not self.is_placed(attempt):
            protocol.write(self._entry(attempt), InboxEntry(attempt.id, attempt.directory))

    def is_placed(self, attempt: Attempt) -> bool:
        """Tell whether an attempt is in the inbox."""
        return self._entry(attempt).exists()

    def look(self, _attempt: Attempt, /) -> Look:
        """Return that only its directory can tell."""
        return _ALWAYS

    def end(self, _attempt: Attempt, /) -> None:
        """Do nothing: the runner sees it."""

    def forget(self, attempt: Attempt) -> None:
        """Take an attempt out of the inbox."""
        self._entry(attempt).unlink(missing_ok=True)

    def keep_only(self, live: Sequence[Attempt]) -> None:
        """Take all others out of the inbox, ending what still runs of them."""
        kept = {self._entry(attempt) for attempt in live}
        others = [path for path in self._inbox.glob("[!.]*.json") if path not in kept]
        self._troubles.keep_only({path.name for path in others})
        for path in others:
            if self._troubles.must_wait(path.name):
                continue
            try:
                self._let_go(path)
            except (Problem, OSError) as error:
                what = f"{path.name} can't be taken out of the inbox"
                self._log(what, error)
                cause = error.cause if isinstance(error, Problem) else str(error)
                self._troubles.note(path.name, f"{what}: {cause}")

    def _let_go(self, path: Path) -> None:
        folder = self._state_dir / protocol.read(path, InboxEntry).directory
        if (folder / protocol.EXIT).exists() or not folder.exists():
            path.unlink()
        elif not (folder / protocol.STOP).exists():
            protocol.write(folder / protocol.STOP, Stop("engine", self._clock.now()))

    def step(self) -> None:
        """Start a runner if there is something to look after and nobody does."""
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
        with open_log(self._state_dir / protocol.RUNNER / protocol.RUNNER_LOG) as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "environment.runner", f"--state-dir={self._state_dir}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # In a session of its own it outlives the engine; no secret of the operator is its business.
                start_new_session=True,
                env=_runner_environment(),
            )

    def _entry(self, attempt: Attempt) -> Path:
        return self._inbox / f"{attempt.token}.json"


def _runner_environment() -> dict[str, str]:
    """What the runner needs of the engine's variables, none of which is secret."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "PYTHONPATH")
    docker = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG")
    return {name: os.environ[name] for name in (*kept, *docker) if name in os.environ}
