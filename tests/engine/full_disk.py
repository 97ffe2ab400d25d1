"""`python -m tests.engine.full_disk`: let runs go on and end while the state's own small disk is full."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mlebench_console.engine import control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.environment.container.run_log import GAP_MARK, log_parts
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import readings
from mlebench_console.foundation import locks
from mlebench_console.state.lifecycle import Outcome, RunState
from tests.engine.harness import SUBMIT, Harness, eventually
from tests.engine.test_fault_drill import assert_ended_once

_BLOCK = 1 << 16
PRINT_UNTIL_GO = (
    'while [ ! -e "$CODE_DIR/go" ]; do head -c 40000 /dev/zero | tr "\\0" x; echo; sleep 0.05; done'
)


def fill(path: Path) -> None:
    """Add to a file until not a byte more fits."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for block in (_BLOCK, 1):
            try:
                while True:
                    os.write(descriptor, b"\0" * block)
            except OSError:
                continue  # full at this grain
    finally:
        os.close(descriptor)


def main() -> None:
    """Fill the disk while agents end, make room again, and see that nothing was lost."""
    place, data, empty_state = map(Path, sys.argv[1:])
    harness = Harness(Places(place / "config.toml", data, place / "state"), place / "agents", empty_state)
    ballast = place / "ballast"
    try:
        harness.agent("worker", f"{SUBMIT}; {PRINT_UNTIL_GO}; echo last words; exit 0")
        harness.start()
        harness.launch("worker", seeds=3, runtime="plain")
        running = harness.until_started()
        eventually(lambda: all(run.standing for run in harness.runs()))
        waiting, *others = running
        go = {run.id: harness.folder(run) / "code" / "go" for run in running}
        fill(ballast)
        for log in (harness.places.engine_log, harness.places.state_dir / "runner" / "runner.log"):
            fill(log)  # what is left of its last block
        for run in others:
            go[run.id].touch()  # a name takes no block
        eventually(lambda: not any(readings.processes_of_attempt(harness.folder(run)) for run in others))
        assert not any(run.has_ended for run in harness.runs())
        assert locks.is_held(lock_path(harness.places))
        fill(ballast)  # what the others have left
        time.sleep(1.0)  # for the one that still prints
        ballast.unlink()
        go[waiting.id].touch()
        for run in harness.ended():
            assert (run.state, run.outcome) == (RunState.FINISHED, Outcome.BELOW_MEDIAN), run
            assert_ended_once(harness, run)
        log = harness.folder(waiting) / protocol.LOG
        assert log.read_bytes().endswith(GAP_MARK)
        assert log_parts(log)[-1].path.read_bytes().endswith(b"x\nlast words\n")
        told: list[str] = []

        def is_untroubled() -> bool:
            told[:] = [control.status(harness.places).problem]
            return told == [""]

        eventually(is_untroubled, or_tell=told)
    finally:
        ballast.unlink(missing_ok=True)
        harness.close()


if __name__ == "__main__":
    main()
