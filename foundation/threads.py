"""Run work in threads: on many items with the results in order, or in a daemon thread that nobody waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Yield the result of each item in order; the first error, here or at the caller, cancels what has not begun."""
    with ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(work, items)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def in_daemon_thread(work: Callable[[], Result]) -> Future[Result]:
    """Run work in a new daemon thread, for which a process that exits does not wait.

    Pools of threads are joined at exit, which one read from a stalled mount would then keep from happening.
    """
    outcome: Future[Result] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:  # noqa: BLE001 it is raised again where it is waited for
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome
