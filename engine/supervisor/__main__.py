"""`python -m engine.supervisor`: be the engine of one state directory, in the foreground or detached."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import IO

from engine.control.status import lock_path, owner_path
from engine.places import Places, share_runs
from foundation import locks
from foundation.clock import SystemClock
from foundation.daemon_log import write_log
from foundation.locks import FileLock
from foundation.problems import EnvironmentProblem, Problem, StateProblem

_READY = b"ready"
_MOST_TOLD = 4096  # what a pipe takes at once
_DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


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
        return _end(problem, ready)
    except OSError as error:
        if error.errno not in _DISK_TROUBLE:
            raise
        text = os.strerror(error.errno)
        why = f"{text}: {error.filename}" if error.filename else text
        return _end(
            EnvironmentProblem(
                f"the engine can't work in {places.state_dir}",
                why,
                "Mend that, then start it again: runs go on meanwhile, and nothing is lost.",
            ),
            ready,
        )
    return 0


def _end(problem: Problem, ready: IO[bytes] | None) -> int:
    """Write why the engine ends into its log and, while it was just starting, to whoever waits for it."""
    write_log(str(problem))
    if ready is not None and not ready.closed:
        ready.write(problem.in_one_line().encode()[:_MOST_TOLD])
    return problem.exit_code


def _detach() -> IO[bytes]:
    """Go on in a child, and return where it says that it works, or why not; the parent waits for that and ends."""
    said, saying = os.pipe()
    if os.fork():
        os.close(saying)
        told = os.read(said, _MOST_TOLD)  # nothing where the child has died
        if told != _READY:
            sys.stdout.buffer.write(told)
            sys.stdout.flush()
        os._exit(0 if told == _READY else 1)
    os.close(said)
    os.dup2(
        sys.stderr.fileno(), sys.stdout.fileno()
    )  # whoever started us waits for the end of what the parent says
    return os.fdopen(saying, "wb", buffering=0)


def _run(places: Places, ready: IO[bytes] | None) -> None:
    from competitions.grader import Grader
    from engine.datasets.queue import PRELOAD
    from engine.settings import EngineSettings, read_table
    from engine.supervisor.loop import Supervisor
    from foundation.workers import WorkerPool
    from state import database
    from state.usage.samples import Samples

    places.state_dir.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_path(places))
    if not lock.acquire_soon():
        raise StateProblem(
            f"another engine works on {places.state_dir}",
            f"process {lock.path.read_text().strip()} holds {lock.path.name}",
            "Use that one, or stop it: mlebench-console engine stop",
        )
    share_runs(places)
    stops: list[int] = []
    wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stops.append(number))
    owner = owner_path(places)
    is_owned = owner.exists()

    def is_orphaned() -> bool:
        """Whether the command is gone for whose work alone this state was made."""
        return is_owned and not locks.is_held(owner)

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
                ready.write(_READY)
                ready.close()
            # What was made anew where the state was is another's.
            supervisor.run(lambda: bool(stops) or not lock.is_in_place() or is_orphaned(), wakeup)
    if is_orphaned():
        shutil.rmtree(places.state_dir)


if __name__ == "__main__":
    sys.exit(main())
