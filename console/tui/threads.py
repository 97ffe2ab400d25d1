"""Background work in daemon threads, which the console does not wait for when it exits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


async def in_daemon_thread(work: Callable[[], Result]) -> Result:
    """Run work in a new daemon thread and return its result.

    The event loop's thread pool, which Textual workers use, is joined when the console exits: one read from a stalled
    mount would then keep the console from exiting and restoring the terminal.
    """
    outcome: Future[Result] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 it is raised again where it is waited for
            outcome.set_exception(error)

    threading.Thread(target=run, name="console-work", daemon=True).start()
    return await asyncio.wrap_future(outcome)
