"""Measuring what an attempt holds on disk, on a thread beside the loop: a million files keep nobody waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path

from environment.runner.sandbox import Unreachable


class DiskMeter:
    """Measures one attempt when told to; the figure can be taken when it is there."""

    def __init__(self, attempt: Path, elsewhere: Callable[[], int], worker: Executor) -> None:
        """Prepare.

        Args:
            attempt: the directory to be measured.
            elsewhere: tells what the attempt holds in other places; may take its time, or be unreachable.
            worker: does the measuring.
        """
        self._attempt = attempt
        self._elsewhere = elsewhere
        self._worker = worker
        self._walk: Future[int | None] | None = None

    def start(self) -> None:
        """Measure, unless that is being done."""
        if self._walk is None:
            self._walk = self._worker.submit(self._measure)

    def take(self) -> int | None:
        """The bytes of a measurement that has ended since the last time; None where there is none."""
        if self._walk is None or not self._walk.done():
            return None
        walk, self._walk = self._walk, None
        return walk.result()

    def _measure(self) -> int | None:
        try:
            return disk_usage(self._attempt) + self._elsewhere()
        except Unreachable:
            return None  # half of it would look like the whole


def disk_usage(folder: Path) -> int:
    """Bytes on disk below a folder, no links followed."""
    total = 0
    todo = [str(folder)]
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError:
            continue  # it went away or was closed to us while we walked: it counts as nothing
        for entry in entries:
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
    return total
