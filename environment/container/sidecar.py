"""The main process of the grader container: keeps the validation server, and perhaps a relay to the proxy, alive.

    python -m environment.container.sidecar [--relay SOCKET:PORT] -- GRADING-SERVER-ARGUMENTS...

Another start of the container would have another network namespace, out of the agent's reach: so what
dies here is started again here.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

_RESTART_SECONDS = 1.0


def _keep(commands: Sequence[Sequence[str]]) -> None:
    """Start all commands, and restart what ends."""
    children = {subprocess.Popen(command).pid: command for command in commands}
    while True:
        pid, _status = os.wait()
        command = children.pop(pid, None)
        if command is not None:  # anything else was an orphan's end
            time.sleep(_RESTART_SECONDS)
            children[subprocess.Popen(command).pid] = command


def main() -> None:
    """Serve until SIGTERM; as process 1, the end of this one is the end of all."""
    parser = argparse.ArgumentParser(prog="sidecar", description="Serve one agent's container.")
    parser.add_argument("--relay", default="", metavar="SOCKET:PORT", help="let localhost's PORT lead there")
    parser.add_argument("server", nargs="+", metavar="ARGUMENT", help="of the validation server, after --")
    options = parser.parse_args()
    commands = [[sys.executable, "-I", "-m", "environment.grading_server", *options.server]]
    if options.relay:
        place, _, port = options.relay.rpartition(":")
        commands.append(
            [sys.executable, "-I", "-m", "environment.container.relay", f"--socket={place}", f"--port={port}"]
        )
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    _keep(commands)


if __name__ == "__main__":
    main()
