"""Keeping the host's runner alive while there is anything for it to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from environment.runner import protocol
from foundation import locks
from foundation.clock import Clock

_START_SECONDS = 10.0


class RunnerKeeper:
    """Starts the runner when it is needed and not there."""

    def __init__(self, state_dir: Path, clock: Clock) -> None:
        self._state_dir = state_dir
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._started_at: float | None = None

    @property
    def alive(self) -> bool:
        """Whether some runner holds the runner's lock."""
        return locks.is_held(self._state_dir / protocol.RUNNER / protocol.RUNNER_LOCK)

    def step(self) -> None:
        """Start a runner if the inbox holds something and nobody looks at it."""
        if self._child is not None and self._child.poll() is not None:
            self._child = None
        if self.alive or not any(protocol.inbox(self._state_dir).glob("[!.]*.json")):
            return
        now = self._clock.monotonic()
        starting = self._child is not None and self._started_at is not None
        if starting and now - (self._started_at or 0.0) < _START_SECONDS:
            return
        self._started_at = now
        with (self._state_dir / protocol.RUNNER / protocol.RUNNER_LOG).open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "environment.runner", f"--state-dir={self._state_dir}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # In a session of its own it outlives the engine; no secret of the operator is its business.
                start_new_session=True,
                env=_environment(),
            )


def _environment() -> dict[str, str]:
    """What the runner needs of the engine's variables: ways and languages, no keys."""
    import os

    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "VIRTUAL_ENV", "PYTHONPATH")
    docker = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG")
    return {name: os.environ[name] for name in (*kept, *docker) if name in os.environ}
