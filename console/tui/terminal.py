"""A Textual app that leaves its terminal as it was on every way out, and that no terminal can hold up.

One that is slow gets fewer frames, one that stops reading gets none until it reads again. It leans on how the
pinned version of Textual writes; `tests/console/test_terminal.py` holds it to what that is for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App

from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.screen import Screen

# A frame is up to three writes; more than that waiting means that the terminal has not read the last frame yet.
_MOST_WAITING = 3
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# How long a terminal may take to read our last words.
_PATIENCE_SECONDS = 2.0
# No mouse, no focus events, no pasting in brackets, no key protocol; the normal screen and its cursor.
_RESTORING = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h"


class TerminalApp(App[str]):
    """What every app of ours over a terminal does about it.

    Attributes:
        failure: the error that ended the app, for whoever ran it; nothing of it is drawn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failure: BaseException | None = None
        self._missed_frames = False
        self._attributes = termios.tcgetattr(_terminal()) if os.isatty(_terminal()) else None
        self._giving_up: threading.Timer | None = None
        self._is_over: Callable[[], bool] = lambda: False

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has yet to read what was drawn before."""
        writer = getattr(self._driver, "_writer_thread", None)
        return writer is not None and writer._queue.qsize() > _MOST_WAITING

    def hold_terminal(self) -> None:
        """End in order when a signal asks for it."""
        if self.is_headless:
            return
        for number in _ENDING_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, partial(self.leave, 128 + number))

    def leave(self, code: int = 0) -> None:
        """End the app; if the terminal takes no last words, the process ends without them."""
        if self._giving_up is None and not self.is_headless:
            self._giving_up = threading.Timer(_PATIENCE_SECONDS, self._give_up, (code,))
            self._giving_up.daemon = True
            self._giving_up.start()
        self.exit(return_code=code)

    def left(self) -> None:
        """The terminal is as it was, nothing needs to be given up."""
        if self._giving_up is not None:
            self._giving_up.cancel()

    def end_when(self, is_over: Callable[[], bool]) -> None:
        """End the app by itself once nobody can see it any more."""
        self._is_over = is_over

    def catch_up(self) -> None:
        """Draw everything once more when the terminal, which had missed frames, reads again; end when it is gone."""
        if self._is_over():
            self.exit()
        writer = getattr(self._driver, "_writer_thread", None)
        if writer is not None and not writer.is_alive():
            self.leave(1)  # the terminal is gone
        elif self._missed_frames and not self.is_behind:
            self._missed_frames = False
            self.screen.refresh()

    def to_terminal(self, sequence: str) -> None:
        """Send our own control sequence to the terminal, past what is drawn; one that is behind does without."""
        if self._driver is not None and not self.is_behind:
            self._driver.write(sequence)

    def bell(self) -> None:
        """Ring, unless the terminal is behind."""
        self.to_terminal("\a")

    def panic(self, *_renderables: Any) -> None:
        """End because of an error, which is kept for whoever ran the app."""
        self._fail(self._exception or EnvironmentProblem("the terminal can't be read any more"))

    def _fatal_error(self) -> None:
        self._fail(self._exception or sys.exc_info()[1])

    def _fail(self, error: BaseException | None) -> None:
        # Textual would draw the traceback with all variables: what agents wrote, and secrets.
        self.failure = self.failure or error
        self._return_code = 1
        self._close_messages_no_wait()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        # Writing to a terminal that does not read would hold the event loop once 30 writes are waiting.
        if self.is_behind:
            self._missed_frames = True
        else:
            super()._display(screen, renderable)

    def _give_up(self, code: int) -> None:
        if self._attributes is not None:
            _trying(partial(termios.tcsetattr, _terminal(), termios.TCSANOW, self._attributes))
        os.set_blocking(_terminal(), False)
        _trying(partial(os.write, _terminal(), _RESTORING))
        os.set_blocking(_terminal(), True)
        os._exit(code)


def _terminal() -> int:
    """What Textual draws on."""
    return sys.__stderr__.fileno() if sys.__stderr__ is not None else 2


def _trying(does: Callable[[], Any]) -> bool:
    """Do something to a terminal that may be gone or not reading; tells whether it went."""
    try:
        does()
    except (OSError, termios.error):
        return False
    return True
