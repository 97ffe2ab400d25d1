"""The thread that reads the state for the console, so that no read ever blocks the screen; it draws nothing.

A stalled disk or a locked, newer, absent or replaced database is reported as a condition and retried; it never ends
the thread. One thread of its own is used rather than a Textual worker for each query: it keeps one connection, whose
data version shows whether anything has changed, and the console can exit while a read hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import Problem

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.state.database import Database

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 0.5
ENGINE_EVERY_SECONDS = 2.0
# Shorter problems are not reported: an engine that creates, migrates or replaces the state takes less time.
TROUBLE_PASSES_SECONDS = 2.0
# If the file system has not answered for this long, a person is told.
STALLED_SECONDS = 3.0


@dataclass
class _Watch:
    query: Callable[[Database], Any]
    deliver: Callable[[Any], object]
    fail: Callable[[Problem], object] | None = None
    due: bool = True


class Reader:
    """Checks the state for changes, and runs all watched queries again after each.

    Args:
        places: where the state is.
        on_condition: called when the state's condition changes.
        on_engine: called regularly with the engine's status, or with None if it can't be read.
    """

    def __init__(
        self,
        places: Places,
        *,
        on_condition: Callable[[StateCondition], object],
        on_engine: Callable[[EngineStatus | None], object],
    ) -> None:
        # The interval of checks that the operator has set.
        self.look_every = LOOK_EVERY_SECONDS
        self._places = places
        self._on_condition = on_condition
        self._on_engine = on_engine
        self._watches: dict[str, _Watch] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._database: Database | None = None
        self._file: tuple[int, int] | None = None
        self._version: int | None = None
        self._condition = StateCondition()
        self._engine_seen_at = float("-inf")
        self._busy_since: float | None = None
        self._trouble_since: float | None = None
        # A daemon thread: a read from a stalled mount must not keep the console from exiting.
        self._thread = threading.Thread(target=self._work, name="state-reader", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; does not wait for a read that hangs."""
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=1.0)

    def watch(
        self,
        name: str,
        query: Callable[[Database], Any],
        deliver: Callable[[Any], object],
        fail: Callable[[Problem], object] | None = None,
    ) -> None:
        """Run a query now and again after every change; a later query of the same name replaces it.

        The problem of a failed query is passed to `fail` and does not affect other queries; only an unusable state
        changes the condition.
        """
        with self._lock:
            self._watches[name] = _Watch(query, deliver, fail)
        self._wake.set()

    def unwatch(self, name: str) -> None:
        """Stop running a query."""
        with self._lock:
            self._watches.pop(name, None)

    def look_now(self) -> None:
        """Run all queries again, whether anything has changed or not."""
        with self._lock:
            for watch in self._watches.values():
                watch.due = True
        self._engine_seen_at = float("-inf")
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """Whether all queries have been run as far as possible, and the thread waits for its next check."""
        with self._lock:
            are_due = any(watch.due for watch in self._watches.values())
        # Without a state that can be read no query can be run.
        can_run = self._condition.health in (StateHealth.UNKNOWN, StateHealth.GOOD)
        return self._busy_since is None and not (are_due and can_run)

    def stalled_for(self) -> float:
        """Return for how many seconds the current check has been running; 0 between checks."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def _work(self) -> None:
        while not self._ended.is_set():
            self._busy_since = time.monotonic()
            self._look_at_engine()
            try:
                self._look()
            except Problem as problem:
                self._trouble(problem)
            except Exception as error:
                # Whatever it is, the console must go on and say so; the log keeps the traceback.
                log.exception("reading the state")
                self._trouble(Problem("the state could not be read", repr(error)[:200]))
            self._busy_since = None
            self._wake.wait(self.look_every)
            self._wake.clear()
        self._close()

    def _look_at_engine(self) -> None:
        if time.monotonic() - self._engine_seen_at < ENGINE_EVERY_SECONDS:
            return
        self._engine_seen_at = time.monotonic()
        # Imported here, so that the first frame doesn't wait for it.
        from mlebench_console.engine import control

        try:
            self._on_engine(control.status(self._places))
        except Problem as problem:
            log.warning("reading the engine's status: %s", problem)
            self._on_engine(None)

    def _look(self) -> None:
        from mlebench_console.state import database as state_database

        if not state_database.exists(self._places.state_dir):
            self._close()
            self._due(everything=True)  # all queries run anyway once there is a state
            self._report(StateCondition(StateHealth.ABSENT))
            return
        found = (self._places.state_dir / state_database.DATABASE_NAME).stat()
        file = (found.st_dev, found.st_ino)
        if self._database is None or file != self._file:
            self._close()
            self._database = state_database.open_for_reading(self._places.state_dir)
            self._file = file
        version = self._database.data_version()
        changed, self._version = version != self._version, version
        for watch in self._due(everything=changed):
            _answer(watch, self._database)
        self._report(StateCondition(StateHealth.GOOD))

    def _due(self, *, everything: bool) -> list[_Watch]:
        with self._lock:
            due = [watch for watch in self._watches.values() if everything or watch.due]
            for watch in due:
                watch.due = False
        return due

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database, self._file, self._version = None, None, None

    def _trouble(self, problem: Problem) -> None:
        self._close()
        since, known = self._trouble_since, self._condition.health is StateHealth.BAD
        self._trouble_since = time.monotonic() if since is None else since
        if known or time.monotonic() - self._trouble_since >= TROUBLE_PASSES_SECONDS:
            self._report(StateCondition(StateHealth.BAD, problem))

    def _report(self, condition: StateCondition) -> None:
        if condition.health is not StateHealth.BAD:
            self._trouble_since = None
        if not condition.looks_like(self._condition):
            self._condition = condition
            self._on_condition(condition)


def _answer(watch: _Watch, database: Database) -> None:
    """Run one query and deliver its answer, or its problem.

    Raises:
        UnusableState: the state itself can't be used.
    """
    from mlebench_console.state.database import UnusableState

    try:
        answer = watch.query(database)
    except UnusableState:
        raise
    except Exception as error:
        if isinstance(error, Problem):
            problem = error
        else:
            # Whatever it is, the console must go on and say so; the log keeps the traceback.
            log.exception("reading the state")
            problem = Problem(
                "this can't be shown", repr(error)[:200], "See console.log in the state directory."
            )
        if watch.fail is not None:
            watch.fail(problem)
    else:
        watch.deliver(answer)


class StateHealth(StrEnum):
    """Whether the state can be read."""

    UNKNOWN = "unknown"
    ABSENT = "absent"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class StateCondition:
    """Whether the state can be read, and the problem if not."""

    health: StateHealth = StateHealth.UNKNOWN
    problem: Problem | None = None

    def looks_like(self, other: StateCondition) -> bool:
        """Return whether two conditions look the same to a person; problems are compared by their text."""
        return self.health is other.health and str(self.problem) == str(other.problem)
