"""A signal that asks a process to end, for one that waits in between."""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

_MOST_SIGNALS = 1024


class EndSignal:
    """Records the first of some signals, each of which asks this process to end."""

    def __init__(self, *numbers: signal.Signals) -> None:
        """Handle these signals from now on; only the main thread can."""
        self.at: float | None = None
        # By a pipe, as a handler may run at any moment, even while a lock is held that it would need.
        self._woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda _number, _frame: self._note())

    def _note(self) -> None:
        self.at = self.at or time.time()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a signal has come."""
        return self._woken

    def wait(self, seconds: float) -> None:
        """Wait so long, or until any signal comes that this process handles."""
        select.select([self._woken], [], [], seconds)
        with suppress(BlockingIOError):
            while os.read(self._woken, _MOST_SIGNALS):
                pass
