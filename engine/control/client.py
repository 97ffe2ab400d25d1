"""Start and stop the engine, and file requests in the state and wait for their answers there."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path

from mlebench_console.engine.control.status import EngineStatus, lock_path, status
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import (
    Answer,
    ChosenRun,
    PauseSweep,
    RefusedRequest,
    Request,
    StopRuns,
    file_request,
)
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import locks
from mlebench_console.foundation.daemons import open_log
from mlebench_console.foundation.folders import make_private
from mlebench_console.foundation.problems import EnvironmentProblem, Problem, ProblemRecord, StateProblem
from mlebench_console.state import database, requests, runs, sweeps
from mlebench_console.state.lifecycle import RunState, SweepState
from mlebench_console.state.records import RequestState

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.5
_START_PATIENCE = 60.0
_STOP_PATIENCE = 30.0
_LOG_LINES_SHOWN = 5
_MARGIN_SECONDS = 60.0


class EngineGone(EnvironmentProblem):
    """The engine has ended without answering a request, which stays in the state for the next engine.

    Attributes:
        request: the request's number.
    """

    def __init__(self, request: int) -> None:
        super().__init__(
            f"the engine has ended without answering request {request}",
            "",
            "Start it again, and it will do the request: mlebench-console engine start",
        )
        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle it with its own argument."""
        return (type(self), (self.request,))


class WithdrawnRequest(Problem):
    """A request was withdrawn before the engine did it."""


def ask(places: Places, request: Request, *, wait_seconds: float = 30.0) -> Answer:
    """File a request and wait for its answer.

    Raises:
        RefusedRequest: the engine refuses it, with its reason.
        WithdrawnRequest: somebody has withdrawn it.
        EngineGone: the engine has ended meanwhile.
        EnvironmentProblem: no engine is running (nothing was filed), or it has not answered in time
            (the request stays and will be done).
    """
    return answer_to(places, file(places, request), wait_seconds=wait_seconds)


def file(places: Places, request: Request, *, in_seconds: float = 0.0) -> int:
    """File a request and return its number; with `in_seconds`, it is done only then, and can be withdrawn until then.

    Raises:
        EnvironmentProblem: no engine is running; nothing was filed.
    """
    if not locks.is_held(lock_path(places)):
        raise EnvironmentProblem(
            "the engine is not running", "nothing was changed", "Start it: mlebench-console engine start"
        )
    now = time.time()
    with closing(database.open_for_requests(places.state_dir)) as state:
        not_before = now + in_seconds if in_seconds else None
        return file_request(state, request, author=author(), now=now, not_before=not_before)


def withdraw(places: Places, number: int) -> bool:
    """Withdraw a request; return False if it was already done."""
    with closing(database.open_for_requests(places.state_dir)) as state:
        return requests.withdraw(state, number, by=author(), now=time.time())


def answer_to(places: Places, number: int, *, wait_seconds: float = 30.0) -> Answer:
    """Wait for the answer to a filed request.

    Raises:
        Problem: as for `ask`.
    """
    with closing(database.open_for_reading(places.state_dir)) as state:
        now = time.monotonic()
        give_up, look_at = now + wait_seconds, now + _LOOK_SECONDS
        seen = -1
        while True:
            is_running = True
            if time.monotonic() >= look_at:
                look_at = time.monotonic() + _LOOK_SECONDS
                # Checked before the answer is read: an engine may answer and then end.
                is_running = locks.is_held(lock_path(places))
            version = state.data_version()
            answered = requests.get(state, number) if version != seen else None
            seen = version
            if answered is not None and answered.state is RequestState.DONE:
                return Answer(**answered.answer)
            if answered is not None and answered.state is RequestState.REFUSED:
                raise RefusedRequest.because(ProblemRecord(**answered.answer))
            if answered is not None and answered.state is RequestState.WITHDRAWN:
                raise WithdrawnRequest(f"undone by {answered.answer['by']}: nothing was changed")
            if not is_running:
                raise EngineGone(number)
            if time.monotonic() >= give_up:
                raise EnvironmentProblem(
                    f"the engine has not answered request {number} yet",
                    f"{wait_seconds:.0f} s have passed",
                    "It will be done when the engine gets to it; see 'mlebench-console engine logs'.",
                )
            time.sleep(_POLL_SECONDS)


def ensure_running(places: Places) -> EngineStatus:
    """Start the engine unless it is running already; of two concurrent calls, both succeed."""
    if not locks.is_held(lock_path(places)):
        try:
            return start(places)
        except (StateProblem, EnvironmentProblem):
            if not locks.is_held(lock_path(places)):
                raise
    return status(places)


def start(places: Places) -> EngineStatus:
    """Start the engine and return once it is ready.

    Raises:
        StateProblem: one is running already.
        EnvironmentProblem: it did not start, with the last lines of its log; or the state directory can't be created.
    """
    try:
        make_private(places.state_dir)
    except OSError as error:
        raise EnvironmentProblem(
            f"the state directory {places.state_dir} can't be created",
            error.strerror or str(error),
            "Point --state-dir (or MLEBENCH_STATE_DIR) at a directory of your own.",
        ) from error
    if locks.is_held(lock_path(places)):
        raise StateProblem(
            f"an engine is already running in {places.state_dir}",
            f"its process id is {lock_path(places).read_text()}",
        )
    log_before = places.engine_log.stat().st_size if places.engine_log.exists() else 0
    try:
        with open_log(places.engine_log) as log:
            # The started process exits once its child is ready, so that the engine is not our child.
            subprocess.run(
                [*engine_command(places), "--detach"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                start_new_session=True,
                timeout=_START_PATIENCE,
                check=True,
            )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        # Its standard output has the reason even if the disk of the log is full.
        output = (error.stdout or b"").decode("utf-8", "replace").strip()
        why = output or _last_lines(places.engine_log, log_before)
        raise EnvironmentProblem("the engine did not start", why, f"See {places.engine_log}.") from error
    return status(places)


def stop(places: Places, *, with_runs: bool = False) -> EngineStatus:
    """Stop the engine and return once it has ended; live runs continue unless `with_runs` is given.

    Raises:
        EnvironmentProblem: the engine, or with `with_runs` one of the runs, did not end.
    """
    if with_runs:
        stop_all_runs(places)
    _end_holder(lock_path(places), "engine", _STOP_PATIENCE)
    return status(places)


def stop_all_runs(places: Places) -> None:
    """Pause all sweeps, stop their live runs and return when none is left; needs a running engine.

    Raises:
        EnvironmentProblem: a run did not end.
    """
    if not database.exists(places.state_dir):
        return
    with closing(database.open_for_reading(places.state_dir)) as state:
        if not status(places).running and not runs.live(state):
            return
        everything = sweeps.all_sweeps(state)
        for sweep in everything:
            if sweep.state is SweepState.ACTIVE:
                ask(places, PauseSweep(sweep_id=sweep.id))
        stoppable = [run for run in runs.live(state) if run.state is not RunState.GRADING]
        if stoppable:
            ask(places, StopRuns(runs=tuple(ChosenRun(run.id, run.attempts) for run in stoppable)))
        grace = max((sweep.conditions.grace_seconds for sweep in everything), default=0.0)
        give_up = time.monotonic() + grace + _MARGIN_SECONDS
        while left := runs.live(state):
            if time.monotonic() > give_up:
                raise EnvironmentProblem(
                    f"{len(left)} runs did not end", "their grace period is over", f"See {places.engine_log}."
                )
            time.sleep(0.1)
    # The runner would end by itself only after a while.
    _end_holder(places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK, "runner", _MARGIN_SECONDS)


def variables_unknown_to_engine(places: Places, names: Iterable[str]) -> list[str]:
    """List the variables whose values here differ from those that the running engine was started with."""
    known = status(places).variables()
    return [name for name in names if known and os.environ.get(name, known.get(name)) != known.get(name)]


def unit_text(places: Places) -> str:
    """Return a systemd user unit for the engine; the operator saves it in ~/.config/systemd/user and enables it."""
    command = " ".join(_quoted(part) for part in engine_command(places))
    return f"""\
[Unit]
Description=mlebench-console engine ({places.state_dir})

[Service]
ExecStart={command}
# Agents go on while the engine is away: only the engine's own process is ended.
KillMode=process
Restart=on-failure
RestartSec=5

[Install]
WantedBy=default.target
"""


def engine_command(places: Places) -> list[str]:
    """Return the command that runs the engine in the foreground."""
    return [
        sys.executable,
        "-m",
        "mlebench_console.engine.supervisor",
        f"--state-dir={places.state_dir}",
        f"--data-dir={places.data_dir}",
        f"--config={places.config_file}",
    ]


def author() -> str:
    """Return the user and host that requests and events name."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return f"unknown@{socket.gethostname()}"


def _last_lines(log: Path, start: int) -> str:
    with log.open("rb") as stream:
        stream.seek(start)
        lines = [line.strip() for line in stream.read().decode("utf-8", "replace").splitlines()]
    return " / ".join([line for line in lines if line][-_LOG_LINES_SHOWN:]) or "it wrote nothing"


def _end_holder(lock: Path, name: str, patience: float) -> None:
    """End the process that holds a lock, and return once it is gone."""
    give_up = time.monotonic() + patience
    while locks.is_held(lock):
        pid = lock.read_text()
        with suppress(ProcessLookupError, ValueError):  # it ends by itself, or is just starting
            os.kill(int(pid), signal.SIGTERM)
        if time.monotonic() > give_up:
            raise EnvironmentProblem(
                f"the {name} (process {pid}) did not stop",
                f"it received SIGTERM {patience:.0f} s ago",
                f"'kill -9 {pid}' is safe: a restart finds everything again.",
            )
        time.sleep(_POLL_SECONDS)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'
