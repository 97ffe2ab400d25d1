"""A warden whose command is contained: `python contained_program.py '{"folder": ..., "command": [...], ...}'`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mlebench_console.environment.container import output
from mlebench_console.environment.container.run_log import CappedLog
from mlebench_console.environment.container.warden import Warden
from mlebench_console.environment.runner.process import containment
from mlebench_console.environment.runner.process.containment import Containment, ProcessLimits


def main() -> None:
    options = json.loads(sys.argv[1])
    folder = Path(options["folder"])
    if not options["with_groups"]:
        containment._mounts = list
    limits = Containment(options["name"], ProcessLimits(**options["limits"]), isolated=False)
    warden = Warden(
        options["command"],
        deadline=options["deadline"],
        grace=1,
        log=CappedLog(folder / "run.log", 1 << 20),
        limits=limits,
    )
    warden.start()
    output.write(folder / "ending.json", warden.watch())
    assert limits.remove()


if __name__ == "__main__":
    main()
