"""The main process of the grader container: keeps the validation server, and perhaps a relay to the proxy, alive.

    python -m environment.container.sidecar --ready FILE [--relay SOCKET:PORT] -- GRADING-SERVER-ARGUMENTS...

Another start of the container would have another network namespace, out of the agent's reach: so what
dies here is started again here. FILE appears when the validation server listens.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_RESTART_SECONDS = 1.0
_LOOK_SECONDS = 0.05


def _is_up(port: int) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        client.request("GET", "/health")
        return client.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        client.close()


def _keep(commands: Sequence[Sequence[str]], ready: Path, port: int) -> None:
    """Start all commands, make `ready` when the server answers, and restart what ends."""
    children = {subprocess.Popen(command).pid: command for command in commands}
    while not _is_up(port):
        time.sleep(_LOOK_SECONDS)
    ready.touch()
    while True:
        pid, _status = os.wait()
        command = children.pop(pid, None)
        if command is not None:  # anything else was an orphan's end
            time.sleep(_RESTART_SECONDS)
            children[subprocess.Popen(command).pid] = command


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM; as process 1, the end of this one is the end of all."""
    parser = argparse.ArgumentParser(prog="sidecar", description="Serve one agent's container.")
    parser.add_argument("--ready", type=Path, required=True, help="file to make when the server answers")
    parser.add_argument("--port", type=int, default=5000, help="of the validation server")
    parser.add_argument("--relay", default="", metavar="SOCKET:PORT", help="let localhost's PORT lead there")
    parser.add_argument("server", nargs="+", metavar="ARGUMENT", help="of the validation server, after --")
    options = parser.parse_args(argv)
    commands = [[sys.executable, "-I", "-m", "environment.grading_server", *options.server]]
    if options.relay:
        place, _, port = options.relay.rpartition(":")
        commands.append(
            [sys.executable, "-I", "-m", "environment.container.relay", f"--socket={place}", f"--port={port}"]
        )
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    _keep(commands, options.ready, options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
