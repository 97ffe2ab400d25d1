"""A process around a container's command that kills all its descendants when its own parent dies, however that happens.

    python -I -m mlebench_console.environment.runner.process.guard -- COMMAND...

Apptainer resets the kernel's signal of a parent's death, and leaves orphaned processes behind, which this one adopts as
their subreaper. It ends with the command's code or signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from mlebench_console.environment.container.processes import process_tree, send
from mlebench_console.environment.container.warden import adopt_orphans, die_with

_ROUNDS = 200
_ROUND_SECONDS = 0.05


def main() -> int:
    """Run the command."""
    parent = os.getppid()
    adopt_orphans()
    signal.signal(signal.SIGUSR1, lambda _number, _frame: _end_all())
    die_with(parent, signal.SIGUSR1)
    # It gets SIGTERM together with the agent, which may need its grace period.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    command = subprocess.Popen(sys.argv[2:], preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    while True:
        pid, status = os.wait()
        if pid == command.pid:
            break
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # signals that can't be caught
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _end_all() -> None:
    """Kill all descendants until none is left, and exit."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for _ in range(_ROUNDS):
        below = process_tree().below(os.getpid())
        if not below:
            break
        send(signal.SIGKILL, below)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_ROUND_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
