"""Starting the engine detached from the terminal, and stopping it; the agents' lives are not touched."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from pathlib import Path

from engine.control.status import EngineStatus, lock_path, status
from engine.control.unit import engine_command
from engine.places import Places
from foundation import locks
from foundation.problems import EnvironmentProblem, StateProblem

READY = b"ready\n"
_START_PATIENCE = 60.0
_STOP_PATIENCE = 30.0
_LOG_LINES_SHOWN = 5


def start(places: Places) -> EngineStatus:
    """Start the engine and return once it works.

    Raises:
        StateProblem: one is running already.
        EnvironmentProblem: it did not come up, its last words are told; or there can be no state there.
    """
    try:
        places.state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(
            f"the state can't be kept in {places.state_dir}",
            error.strerror or str(error),
            "Point --state-dir (or MLEBENCH_STATE_DIR) at a directory of your own.",
        ) from error
    if locks.is_held(lock_path(places)):
        raise StateProblem(
            f"an engine is already running on {places.state_dir}", f"its process id is {_holder(places)}"
        )
    log_before = places.engine_log.stat().st_size if places.engine_log.exists() else 0
    ready_read, ready_write = os.pipe()
    try:
        with places.engine_log.open("ab") as log:
            # The started process forks once and ends, so that the engine is nobody's child.
            subprocess.run(
                [*engine_command(places), f"--detach={ready_write}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=(ready_write,),
                start_new_session=True,
                check=False,
            )
        os.close(ready_write)
        ready_write = -1
        came_up = _wait_for_ready(ready_read)
    finally:
        os.close(ready_read)
        if ready_write >= 0:
            os.close(ready_write)
    if not came_up:
        raise EnvironmentProblem(
            "the engine did not start",
            _last_words(places.engine_log, log_before),
            f"See {places.engine_log}.",
        )
    return status(places)


def stop(places: Places, *, with_runs: bool = False) -> EngineStatus:
    """Stop the engine and return once it is gone; live runs go on unless `with_runs` is given.

    Raises:
        EnvironmentProblem: it, or with `with_runs` one of the runs, would not end.
    """
    if with_runs:
        from engine.control.stopping import stop_all_runs

        stop_all_runs(places)
    lock = lock_path(places)
    if locks.is_held(lock):
        pid = _holder(places)
        _terminate(pid)
        give_up = time.monotonic() + _STOP_PATIENCE
        while locks.is_held(lock):
            if time.monotonic() > give_up:
                raise EnvironmentProblem(
                    f"the engine (process {pid}) does not end",
                    f"it was asked to {_STOP_PATIENCE:.0f} s ago",
                    f"'kill -9 {pid}' is safe: a restart finds everything again.",
                )
            time.sleep(0.05)
    return status(places)


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return  # it ended by itself in between, which is what was wanted


def _holder(places: Places) -> int:
    text = lock_path(places).read_text().strip()
    if not text.isdigit():
        raise StateProblem(
            f"{lock_path(places)} does not name its holder", "an engine is just starting", "Try again."
        )
    return int(text)


def _wait_for_ready(descriptor: int) -> bool:
    """Wait until the engine says that it works, or its end of the pipe is closed by its death."""
    give_up = time.monotonic() + _START_PATIENCE
    said = b""
    while not said.endswith(READY):
        readable, _, _ = select.select([descriptor], [], [], max(0.0, give_up - time.monotonic()))
        piece = os.read(descriptor, 64) if readable else b""
        if not piece:
            return False
        said += piece
    return True


def _last_words(log: Path, start: int) -> str:
    with log.open("rb") as stream:
        stream.seek(start)
        lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines()]
    return " / ".join([line for line in lines if line][-_LOG_LINES_SHOWN:]) or "it said nothing"
