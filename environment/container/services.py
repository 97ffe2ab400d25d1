"""The main process of the validation server's container: keeps the server running, and relays to proxy and gateway.

    python -m mlebench_console.environment.container.services --restarts FILE [--relay PORT:SOCKET...]
        -- VALIDATION-SERVER-ARGUMENTS...

A restarted container would have another network namespace, which the agent cannot reach. So a service that dies is
restarted here, and FILE gets a line for it, which the runner reports.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import ServiceRestarted

_RESTART_SECONDS = 1.0


def _keep(services: Mapping[str, Sequence[str]], restarts: Path) -> None:
    """Start the commands of all services, and restart those that end."""
    children = {subprocess.Popen(command).pid: name for name, command in services.items()}
    oom_kills = output.oom_kills(output.OOM_COUNTERS)
    while True:
        pid, status = os.wait()
        name = children.pop(pid, None)
        if name is None:
            continue  # an orphan ended
        before, oom_kills = oom_kills, output.oom_kills(output.OOM_COUNTERS)
        code = os.waitstatus_to_exitcode(status)
        how = f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        # An agent can make a server fail, or use up its memory, but it can't send signals to it.
        from_outside = code in (-signal.SIGKILL, -signal.SIGTERM) and oom_kills == before
        record = ServiceRestarted(time.time(), name, f"{how}; it is started again", from_outside)
        try:
            output.append(restarts, record)
        except OSError as error:
            sys.stderr.write(f"{name} {how} ({error})\n")
        time.sleep(_RESTART_SECONDS)
        children[subprocess.Popen(services[name]).pid] = name


def main() -> None:
    """Serve until SIGTERM; as this is process 1, its end is that of the container."""
    parser = argparse.ArgumentParser(prog="services", description="Serve one agent's container.")
    parser.add_argument(
        "--relay", action="append", default=[], metavar="PORT:SOCKET", help="relay localhost's PORT to SOCKET"
    )
    parser.add_argument("--restarts", type=Path, required=True, help="file to append a line to for each end")
    parser.add_argument("server", nargs="+", metavar="ARGUMENT", help="of the validation server, after --")
    options = parser.parse_args()
    python = (sys.executable, "-I", "-m")
    server = (*python, "mlebench_console.environment.validation_server", *options.server)
    services = {"the validation server": server}
    if options.relay:
        targets = (f"--to={target}" for target in options.relay)
        relay = (*python, "mlebench_console.environment.container.relay", *targets)
        services["the relay to models"] = relay
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    _keep(services, options.restarts)


if __name__ == "__main__":
    main()
