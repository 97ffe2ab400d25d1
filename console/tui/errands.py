"""What the console has done elsewhere and waits for: changes that the engine makes, work in a thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from console.actions.action import NotApplicable
from foundation.problems import Problem

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from engine.control import EngineStatus

log = logging.getLogger(__name__)


class Errands:
    """Sends for things without holding up the screens, and tells what came of it."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app

    def ask(self, kind: str, arguments: dict[str, Any]) -> None:
        """Ask the engine for a change, and tell its answer."""
        from engine import control

        if self._app.refuses():
            return
        ask = partial(control.ask, self._app.places, kind, arguments)
        self.in_thread(ask, lambda answer: self._app.say(answer.text))

    def start_engine(self) -> None:
        """Start the engine, and tell so."""
        from engine import control

        if self._app.refuses():
            return

        def started(status: EngineStatus) -> None:
            self._app.say(f"the engine is running, process {status.pid}")
            self._app.reader.look_now()

        self.in_thread(partial(control.ensure_running, self._app.places), started)

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do something that may wait, and what follows from it back here; a problem is told."""

        def run() -> None:
            try:
                result = work()
            except Problem as problem:
                bad = not isinstance(problem, NotApplicable)
                self._back_here(partial(self._app.say, str(problem), bad=bad))
            except Exception as error:
                # One failed errand must not end the console; the log keeps the traceback.
                log.exception("working for a screen")
                told = f"that failed: {error!r}\nconsole.log in the state has more"
                self._back_here(partial(self._app.say, told, bad=True))
            else:
                self._back_here(partial(then, result))

        threading.Thread(target=run, name="console-work", daemon=True).start()

    def _back_here(self, callback: Callable[[], None]) -> None:
        if self._app.is_running:
            self._app.call_later(callback)
