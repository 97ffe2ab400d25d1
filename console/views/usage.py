"""What an attempt has used, over its whole time, thinned to what a plot can show."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from state.records import UsageSample
from state.samples import DATABASE_NAME, Samples

Point = tuple[float, float]

_MOST_POINTS = 600


@dataclass(frozen=True)
class Usage:
    """Curves of one attempt, each of (moment, value); one that was never measured is empty."""

    cpu_percent: tuple[Point, ...] = ()
    memory_bytes: tuple[Point, ...] = ()
    disk_bytes: tuple[Point, ...] = ()
    processes: tuple[Point, ...] = ()
    gpu_percent: tuple[Point, ...] = ()
    gpu_memory_bytes: tuple[Point, ...] = ()
    network_rate: tuple[Point, ...] = ()
    latest: UsageSample | None = None


def read_usage(state_dir: Path, attempt_id: int) -> Usage:
    """Read an attempt's samples; nothing where none were ever taken. It waits for the disk."""
    if not (state_dir / DATABASE_NAME).is_file():
        return Usage()
    try:
        samples = Samples(state_dir, writable=False)
    except sqlite3.OperationalError:
        return Usage()  # the engine is just making it
    try:
        found = samples.of_attempt(attempt_id)
    finally:
        samples.close()
    return Usage(
        cpu_percent=_curve(found, lambda sample: sample.cpu_percent),
        memory_bytes=_curve(found, lambda sample: sample.memory_bytes),
        disk_bytes=_curve(found, lambda sample: sample.disk_bytes),
        processes=_curve(found, lambda sample: sample.processes),
        gpu_percent=_curve(found, lambda sample: sample.gpu_percent),
        gpu_memory_bytes=_curve(found, lambda sample: sample.gpu_memory_bytes),
        network_rate=_thinned(_rates(found)),
        latest=found[-1] if found else None,
    )


def _rates(samples: list[UsageSample]) -> list[Point]:
    """Bytes a second between samples of a counter; one that begins anew gives none for that moment."""
    counted = [(sample.at, sample.network_bytes) for sample in samples if sample.network_bytes is not None]
    return [
        (at, (now - before) / (at - earlier))
        for (earlier, before), (at, now) in pairwise(counted)
        if at > earlier and now >= before
    ]


def _curve(samples: list[UsageSample], value: Callable[[UsageSample], float | None]) -> tuple[Point, ...]:
    return _thinned([(sample.at, float(known)) for sample in samples if (known := value(sample)) is not None])


def _thinned(points: list[Point]) -> tuple[Point, ...]:
    if len(points) <= _MOST_POINTS:
        return tuple(points)
    # Of neighbours the largest stays: a peak is what one looks for.
    step = -(-len(points) // _MOST_POINTS)
    groups = [points[place : place + step] for place in range(0, len(points), step)]
    return tuple(max(group, key=lambda point: point[1]) for group in groups)
