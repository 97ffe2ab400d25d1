"""Work done by other threads while what they did before is used; everything comes in its order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

_MOST_THREADS = 4  # more wait for the interpreter, and each holds what it works on


def in_turn(jobs: Iterable[Callable[[], Result]]) -> Iterator[Result]:
    """What the jobs return; a few of them are taken before their results are asked for."""
    threads = min(_MOST_THREADS, os.cpu_count() or 1)
    coming: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for job in jobs:
                coming.append(pool.submit(job))
                if len(coming) > threads:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()
        finally:
            for job_left in coming:
                job_left.cancel()


def ahead(items: Iterable[Result]) -> Iterator[Result]:
    """The items, each made by another thread while the one before it is used."""
    coming = iter(items)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(_next, coming)
        while item := taken.result():
            taken = pool.submit(_next, coming)
            yield item[0]


def _next(items: Iterator[Result]) -> tuple[Result] | None:
    for item in items:
        return (item,)
    return None
