"""`python -m mlebench_console.environment.runner`: supervise one host's attempts, or one attempt, until the end."""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from contextlib import closing
from pathlib import Path

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.readings import read_nvidia
from mlebench_console.environment.runner.loop import POLL_SECONDS, Runner
from mlebench_console.foundation import locks
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.daemons import EndSignal, write_log
from mlebench_console.foundation.locks import FileLock

EXIT_SECOND = 4
_IDLE_SECONDS = 5.0


def main() -> int:
    """Supervise attempts.

    With an inbox, run until it has been empty and no engine has run for a while; with a single attempt, until it
    has ended and everything is collected. A signal ends the runner, never an agent: the next runner adopts it.
    """
    parser = argparse.ArgumentParser(
        prog="python -m mlebench_console.environment.runner", description="Supervise this host's attempts."
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--state-dir", type=Path, metavar="DIR", help="supervise the attempts in this directory's inbox"
    )
    which.add_argument("--once", type=Path, metavar="DIR", help="supervise the attempt in this directory")
    parser.add_argument(
        "--job",
        action="store_true",
        help="run as the job of a batch system: claim the attempt, write heartbeats, end it on SIGTERM",
    )
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="a job's folder on this node's own disk")
    parser.add_argument(
        "--silent-seconds",
        type=float,
        default=300.0,
        metavar="SECONDS",
        help="end a job's agent when nothing could be written for this long",
    )
    options = parser.parse_args()
    single: Path | None = options.once.absolute() if options.once is not None else None
    if single is not None and not (single / protocol.ORDER).is_file():
        parser.error(f"{single} has no {protocol.ORDER}")
    if options.job:
        if single is None:
            parser.error("--job needs --once DIR")
        from mlebench_console.environment.runner import job

        return job.run(single, options.scratch, options.silent_seconds, _log)
    home = single if single is not None else options.state_dir
    own = single if single is not None else home / protocol.RUNNER
    if single is None:
        protocol.inbox(home).mkdir(parents=True, exist_ok=True)
    lock = FileLock(own / protocol.RUNNER_LOCK)
    if not lock.acquire_soon():
        return EXIT_SECOND
    end_signal = EndSignal(signal.SIGTERM)
    clock = SystemClock()
    needed_at = clock.monotonic()
    with closing(Runner(home, clock, _log, read_nvidia, single=single)) as runner:
        # If the state was replaced, its new directory has another runner.
        while end_signal.at is None and lock.is_in_place():
            runner.tick()
            if not runner.holds_nothing or locks.is_held(home / locks.ENGINE_LOCK):
                needed_at = clock.monotonic()
            elif single is not None or clock.monotonic() - needed_at > _IDLE_SECONDS:
                break
            end_signal.wait(POLL_SECONDS)
    return 0


def _log(text: str, error: BaseException | None = None) -> None:
    write_log(text if error is None else f"{text}\n{''.join(traceback.format_exception(error))}")


if __name__ == "__main__":
    sys.exit(main())
