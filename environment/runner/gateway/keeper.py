"""Supervise an attempt's model gateway: start it before the agent, restart it when it dies, end it after the agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import ServiceRestarted
from mlebench_console.environment.container.warden import die_with
from mlebench_console.environment.gateway.records import Journal
from mlebench_console.environment.runner import gateway, protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import locks
from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.daemons import start_daemon

START_TRIES = 3
_RESTARTS = Backoff(first=0.5, most=60.0)
_END_SECONDS = 5.0
_OOM_COUNTERS = (Path("/proc/vmstat"),)
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class GatewayKeeper:
    """Keeps one attempt's gateway running; it outlives the runner, and the next runner finds it by its lock."""

    def __init__(self, attempt: Path, order: Order) -> None:
        self._attempt = attempt
        self._order = order
        lock = attempt / protocol.GATEWAY_LOCK
        self._lock = lock.resolve() if lock.is_symlink() else lock  # on a node it is on its own disk
        self._process: subprocess.Popen[bytes] | None = None
        self._tries = 0
        self._restart_at = 0.0
        self._restarts = 0
        self._was_there = False
        self._asked_at: float | None = None
        self._oom_kills = 0

    @property
    def is_ready(self) -> bool:
        """Whether the gateway listens, or is not needed."""
        return not self._order.providers or (self._lives() and self._socket().exists())

    def start(self) -> str:
        """Start the gateway if it does not run, and return why that is impossible, or nothing."""
        if self.is_ready or self._is_starting():
            return ""
        if self._tries == START_TRIES:
            return f"its model gateway does not start, see {protocol.GATEWAY_LOG}"
        self._tries += 1
        self._spawn()
        return ""

    def keep(self) -> None:
        """Restart the gateway if it has died before its agent, with growing delays if it keeps dying."""
        if not self._order.providers or self._is_starting():
            return
        if self._lives():
            self._was_there = True
            return
        if time.monotonic() < self._restart_at or (self._attempt / protocol.ENDING).exists():
            return
        self._restarts += 1
        self._restart_at = time.monotonic() + _RESTARTS.seconds(self._restarts)
        if self._was_there or self._tries:
            how, from_outside = self._end()
            record = ServiceRestarted(
                time.time(), "the model gateway", f"{how}; it is started again", from_outside
            )
            output.append(self._attempt / protocol.RESTARTS, record)
        self._spawn()

    def end(self) -> bool:
        """End the gateway after its agent, and have all calls counted; return False if this must be called again."""
        if not self._order.providers:
            return True
        if self._lives():
            self._asked_at = self._asked_at or time.monotonic()
            is_late = time.monotonic() - self._asked_at > _END_SECONDS
            locks.signal_holder(self._lock, signal.SIGKILL if is_late else signal.SIGTERM)
            return False
        if self._process is not None and self._is_starting():
            self._process.kill()
            return False
        if (self._attempt / protocol.OPEN_CALLS).exists():
            Journal(self._attempt)  # records the open calls of a killed gateway as lost
        return True

    def _spawn(self) -> None:
        (self._attempt / protocol.SERVICES).mkdir(exist_ok=True)
        self._oom_kills = output.oom_kills(_OOM_COUNTERS)
        # On a node no later runner would find it.
        ends_with = os.getpid() if (self._attempt / protocol.JOB_CLAIM).exists() else None
        self._process = start_daemon(
            [sys.executable, "-I", "-m", gateway.__name__, str(self._attempt)],
            self._attempt / protocol.GATEWAY_LOG,
            # The operator's other variables may be secrets, and are kept from the gateway.
            variables=given_variables(os.environ, "PATH", "LANG", "HOME"),
            prepare=None if ends_with is None else lambda: die_with(ends_with),
        )

    def _socket(self) -> Path:
        return self._attempt / protocol.SERVICES / protocol.GATEWAY_SOCKET

    def _is_starting(self) -> bool:
        return self._process is not None and self._process.poll() is None and not self._lives()

    def _lives(self) -> bool:
        if self._process is not None:
            self._process.poll()  # reaps a dead child
        return locks.is_held(self._lock)

    def _end(self) -> tuple[str, bool]:
        """Return how the gateway has ended, and whether an agent cannot have caused that."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return "has ended", False
        if code >= 0:
            return f"ended with code {code}", False
        is_isolated = self._order.conditions.runtime != protocol.PLAIN
        killed = code in (-signal.SIGTERM, -signal.SIGKILL)
        from_outside = is_isolated and killed and output.oom_kills(_OOM_COUNTERS) == self._oom_kills
        return f"was killed by {signal.Signals(-code).name}", from_outside


def given_variables(own: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return the operator's variables of these names, and those without which no provider may be reached from here."""
    proxies = (spelling for name in _PROXIES for spelling in (name, name.lower()))
    return {name: own[name] for name in (*names, *_CERTIFICATES, *proxies) if name in own}
