"""Measuring what the attempts of this host use, all of them with one look at the processes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engine.runs.runner.processes import Tree

_MAX_FILES = 50_000


@dataclass(frozen=True)
class Measured:
    """One line of usage.jsonl; None where it could not be measured."""

    at: float
    cpu_percent: float | None
    memory_bytes: int
    disk_bytes: int | None
    processes: int


class UsageMeter:
    """Measures one attempt; the processor's share needs two looks."""

    def __init__(self, attempt: Path) -> None:
        self._attempt = attempt
        self._cpu: dict[int, float] = {}
        self._looked_at: float | None = None

    def measure(self, tree: Tree, root: int, *, now: float, monotonic: float, with_disk: bool) -> Measured:
        """Measure everything below the process `root`."""
        processes = tree.below(root)
        percent = None
        if self._looked_at is not None and monotonic > self._looked_at:
            used = sum(max(0.0, found.cpu_seconds - self._cpu.get(found.pid, 0.0)) for found in processes)
            percent = round(100 * used / (monotonic - self._looked_at), 1)
        self._cpu = {found.pid: found.cpu_seconds for found in processes}
        self._looked_at = monotonic
        return Measured(
            now,
            percent,
            sum(found.memory_bytes for found in processes),
            disk_usage(self._attempt) if with_disk else None,
            len(processes),
        )


def disk_usage(folder: Path) -> int | None:
    """Bytes on disk below a folder, no links followed; None when it holds too many files to count."""
    total = counted = 0
    todo = [str(folder)]
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError:
            continue  # it went away or was closed to us while we walked: it counts as nothing
        for entry in entries:
            counted += 1
            if counted > _MAX_FILES:
                return None
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except FileNotFoundError:
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
    return total
