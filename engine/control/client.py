"""Asking the engine to do something: a request is filed in the state, the answer is waited for there."""

from __future__ import annotations

import getpass
import socket
import time
from typing import Any

from engine.control.answers import Answer, RefusedRequest
from engine.control.lifecycle import start
from engine.control.status import EngineStatus, lock_path, status
from engine.places import Places
from foundation import locks
from foundation.problems import EnvironmentProblem, StateProblem
from state import database, requests
from state.records import RequestState

_POLL_SECONDS = 0.05


def ask(places: Places, kind: str, arguments: dict[str, Any], *, wait_seconds: float = 30.0) -> Answer:
    """File a request and wait for its answer.

    Raises:
        RefusedRequest: the engine will not do it, with its reason.
        EnvironmentProblem: no engine is running (nothing was filed), or it has not answered in time
            (the request stays and will be done).
    """
    if not locks.is_held(lock_path(places)):
        raise EnvironmentProblem(
            "the engine is not running", "nothing was changed", "Start it: mlebench-console engine start"
        )
    bus = database.open_for_requests(places.state_dir)
    try:
        number = requests.file(bus, kind, arguments, author=author(), now=time.time())
        give_up = time.monotonic() + wait_seconds
        seen = -1
        while True:
            version = bus.data_version()
            answered = requests.get(bus, number) if version != seen else None
            seen = version
            if answered is not None and answered.state is RequestState.DONE:
                return Answer.from_text(answered.answer)
            if answered is not None and answered.state is RequestState.REFUSED:
                raise RefusedRequest.from_text(answered.answer)
            if time.monotonic() >= give_up:
                raise EnvironmentProblem(
                    f"the engine has not answered request {number} yet",
                    f"{wait_seconds:.0f} s have passed",
                    "It will be done when the engine gets to it; see 'mlebench-console engine logs'.",
                )
            time.sleep(_POLL_SECONDS)
    finally:
        bus.close()


def ensure_running(places: Places) -> EngineStatus:
    """Start the engine unless it is running already; two that try at once both succeed."""
    if not locks.is_held(lock_path(places)):
        try:
            return start(places)
        except (StateProblem, EnvironmentProblem):
            if not locks.is_held(lock_path(places)):
                raise
    return status(places)


def author() -> str:
    """Who asks, as requests and events name them."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a user id without a name, as in many containers
        return f"unknown@{socket.gethostname()}"
