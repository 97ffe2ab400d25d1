"""`python -m mlebench_console.engine.supervisor`: run one state directory's engine, in the foreground or detached."""

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

from mlebench_console.engine.control.status import lock_path, owner_path
from mlebench_console.engine.places import Places, share_runs
from mlebench_console.foundation import locks
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.daemons import EndSignal, write_log
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import EnvironmentProblem, Problem, StateProblem

_READY = b"ready"
_MOST_BYTES = 4096  # a pipe takes this much in one write
_DISK_TROUBLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the engine until SIGTERM."""
    parser = argparse.ArgumentParser(prog="engine", description="The engine of one state directory.")
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--detach", action="store_true", help="go to the background; return when it works")
    options = parser.parse_args(argv)
    ready = _detach() if options.detach else None
    places = Places(options.config, options.data_dir.absolute(), options.state_dir.absolute())
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
                "Fix that, then start the engine again: live runs continue meanwhile, and nothing is lost.",
            ),
            ready,
        )
    return 0


def _end(problem: Problem, ready: IO[bytes] | None) -> int:
    """Write why the engine ends to its log and, if it was still starting, to the waiting parent process."""
    write_log(str(problem))
    if ready is not None and not ready.closed:
        ready.write(problem.in_one_line().encode()[:_MOST_BYTES])
    return problem.exit_code


def _detach() -> IO[bytes]:
    """Continue in a child process, and return the pipe on which it reports that it is ready, or why not.

    The parent waits for that report, prints a failure, and exits.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        report = os.read(reader, _MOST_BYTES)  # empty if the child has died
        if report != _READY:
            sys.stdout.buffer.write(report)
            sys.stdout.flush()
        os._exit(0 if report == _READY else 1)
    os.close(reader)
    # The caller reads the parent's standard output to its end, so the child must not keep it open.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(writer, "wb", buffering=0)


def _run(places: Places, ready: IO[bytes] | None) -> None:
    from mlebench_console.competitions.grader import Grader
    from mlebench_console.engine.datasets.queue import PRELOAD
    from mlebench_console.engine.settings import EngineSettings, read_table
    from mlebench_console.engine.supervisor.loop import Supervisor
    from mlebench_console.foundation.folders import make_private
    from mlebench_console.foundation.workers import WorkerPool
    from mlebench_console.state import database
    from mlebench_console.state.usage.samples import Samples

    make_private(places.state_dir)
    lock = FileLock(lock_path(places))
    if not lock.acquire_soon():
        raise StateProblem(
            f"another engine is running in {places.state_dir}",
            f"process {lock.path.read_text().strip()} has locked {lock.path.name}",
            "Use that one, or stop it: mlebench-console engine stop",
        )
    share_runs(places)
    end_signal = EndSignal(signal.SIGTERM, signal.SIGINT)
    owner = owner_path(places)
    is_owned = owner.exists()

    def is_orphaned() -> bool:
        """Return whether this temporary state was created by a command that has ended."""
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
            # If the lock file was replaced, the state directory now belongs to another engine.
            supervisor.run(
                lambda: end_signal.at is not None or not lock.is_in_place() or is_orphaned(), end_signal
            )
    if is_orphaned():
        shutil.rmtree(places.state_dir)


if __name__ == "__main__":
    sys.exit(main())
