"""A process that is a warden: `python warden_program.py '{"folder": ..., "command": [...], ...}'`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.container.run_log import CappedLog
from mlebench_console.environment.container.warden import Warden


def main() -> None:
    options = json.loads(sys.argv[1])
    folder = Path(options["folder"])
    log = CappedLog(folder / "run.log", options["log_limit"])
    warden = Warden(
        options["command"],
        deadline=options["deadline"],
        grace=options["grace"],
        log=log,
        spare=options["spare"],
        prepare=None if options["missing"] is None else Path(options["missing"]).read_bytes,
    )
    try:
        warden.start()
    except OSError as error:
        ending = Ending.unseen("unstarted", str(error))
    else:
        ending = warden.watch()
    output.write(folder / "ending.json", ending)


if __name__ == "__main__":
    main()
