"""`python -m engine.supervisor`: be the engine of one state directory, in the foreground or detached."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from engine.control.status import lock_path
from engine.places import Places
from foundation.clock import SystemClock
from foundation.locks import FileLock
from foundation.problems import Problem, StateProblem


def main(argv: Sequence[str] | None = None) -> int:
    """Be the engine until SIGTERM."""
    parser = argparse.ArgumentParser(prog="engine", description="The engine of one state directory.")
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--detach", action="store_true", help="go to the background; return when it works")
    asked = parser.parse_args(argv)
    ready = _detach() if asked.detach else None
    places = Places(asked.config, asked.data_dir.absolute(), asked.state_dir.absolute())
    try:
        _run(places, ready)
    except Problem as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    return 0


def _detach() -> int:
    """Go on in a child, and return where it says that it works; the parent waits for that and ends."""
    said, saying = os.pipe()
    if os.fork():
        os.close(saying)
        os._exit(0 if os.read(said, 1) else 1)  # nothing is read where the child has died
    os.close(said)
    return saying


def _run(places: Places, ready: int | None) -> None:
    from competitions.grader import Grader
    from engine.datasets.queue import PRELOAD
    from engine.settings import EngineSettings, read_table
    from engine.supervisor.loop import Supervisor
    from foundation.workers import WorkerPool
    from state import database
    from state.samples import Samples

    places.state_dir.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_path(places))
    if not lock.acquire_soon():
        raise StateProblem(
            f"another engine works on {places.state_dir}",
            f"process {lock.path.read_text().strip()} holds {lock.path.name}",
            "Use that one, or stop it: mlebench-console engine stop",
        )
    stops: list[int] = []
    wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stops.append(number))
    with lock:
        settings = read_table(places.config_file, EngineSettings)
        with (
            closing(database.open_for_writing(places.state_dir)) as state,
            closing(Samples(places.state_dir, writable=True)) as samples,
            Grader() as grader,
            closing(WorkerPool(preload=PRELOAD)) as workers,
        ):
            supervisor = Supervisor(places, settings, state, samples, workers, grader, SystemClock())
            supervisor.recover()
            if ready is not None:
                os.write(ready, b"ready")
                os.close(ready)
            # What was made anew where the state was is another's.
            supervisor.run(lambda: bool(stops) or not lock.is_in_place(), wakeup)


if __name__ == "__main__":
    sys.exit(main())
