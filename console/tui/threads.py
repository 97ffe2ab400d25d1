"""Work in daemon threads: a console that ends waits for none of them, nor for a read that a mount never answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


async def in_daemon_thread(work: Callable[[], Result]) -> Result:
    """Return what some work returns.

    Its thread is none of the event loop's pool, as that of a Textual worker would be: the pool is waited for when the
    console ends, and one read that a stalled mount never answers would keep the terminal from being given back.
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
