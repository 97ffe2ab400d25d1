"""`python -m environment.runner`: look after one host's attempts until there is nothing left to look after."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from environment.runner import protocol
from environment.runner.gpus import nvidia_reader
from environment.runner.loop import LOOK_SECONDS, Runner
from foundation import locks
from foundation.clock import SystemClock
from foundation.daemon_log import write_log
from foundation.locks import FileLock

EXIT_SECOND = 4
_ALONE_SECONDS = 5.0
_LOCK_TRIES = 50


def _log(text: str, error: BaseException | None = None) -> None:
    write_log(text if error is None else f"{text}\n{''.join(traceback.format_exception(error))}")


def main(argv: Sequence[str] | None = None) -> int:
    """Look after attempts; ends by itself when the inbox has been empty and no engine there for a while."""
    parser = argparse.ArgumentParser(prog="runner", description="Look after this host's runs.")
    parser.add_argument("--state-dir", type=Path, required=True)
    asked = parser.parse_args(argv)
    state_dir: Path = asked.state_dir
    protocol.inbox(state_dir).mkdir(parents=True, exist_ok=True)
    lock = FileLock(state_dir / protocol.RUNNER / protocol.RUNNER_LOCK)
    for _ in range(_LOCK_TRIES):  # whoever looks whether it is held holds it for a moment
        if lock.acquire(note=str(os.getpid())):
            break
        time.sleep(0.02)
    else:
        return EXIT_SECOND
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: ended.set())
    clock = SystemClock()
    runner = Runner(state_dir, clock, _log, nvidia_reader())
    needed_at = clock.monotonic()
    with closing(runner):
        while not ended.wait(LOOK_SECONDS):
            runner.tick()
            if not runner.holds_nothing or locks.is_held(state_dir / protocol.ENGINE_LOCK):
                needed_at = clock.monotonic()
            elif clock.monotonic() - needed_at > _ALONE_SECONDS:
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
