"""Stopping everything that runs: the sweeps pause, their live runs are stopped, and one waits for the end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from engine.control.client import ask
from engine.control.status import status
from engine.places import Places
from environment.runner import protocol
from foundation import locks
from foundation.problems import EnvironmentProblem
from state import database, runs, sweeps
from state.lifecycle import RunState, SweepState

_MARGIN_SECONDS = 60.0
_ASK_SECONDS = 30.0


def stop_all_runs(places: Places) -> None:
    """Pause all sweeps, stop their live runs and return when none is left; needs a running engine.

    Raises:
        EnvironmentProblem: a run would not end.
    """
    if not database.exists(places.state_dir):
        return
    with_state = database.open_for_reading(places.state_dir)
    try:
        if not status(places).running and not runs.live(with_state):
            return
        everything = sweeps.all_sweeps(with_state)
        for sweep in everything:
            if sweep.state is SweepState.ACTIVE:
                ask(places, "sweep.pause", {"sweep_id": sweep.id}, wait_seconds=_ASK_SECONDS)
        stoppable = [run.id for run in runs.live(with_state) if run.state is not RunState.GRADING]
        if stoppable:
            ask(places, "run.stop", {"run_ids": stoppable}, wait_seconds=_ASK_SECONDS)
        grace = max((sweep.spec.grace_seconds for sweep in everything), default=0.0)
        give_up = time.monotonic() + grace + _MARGIN_SECONDS
        while left := runs.live(with_state):
            if time.monotonic() > give_up:
                raise EnvironmentProblem(
                    f"{len(left)} runs do not end", "their grace is over", f"See {places.engine_log}."
                )
            time.sleep(0.1)
    finally:
        with_state.close()
    _end_runner(places)


def _end_runner(places: Places) -> None:
    """End the runner, which has nothing left to do but would only notice so after a while."""
    lock = places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
    give_up = time.monotonic() + _MARGIN_SECONDS
    while locks.is_held(lock):
        with suppress(ProcessLookupError, ValueError):  # it ends by itself, or is just starting
            os.kill(int(lock.read_text()), signal.SIGTERM)
        if time.monotonic() > give_up:
            raise EnvironmentProblem(
                "the runner does not end", f"it holds {lock}", "Kill it: 'kill -9' is safe."
            )
        time.sleep(0.1)
