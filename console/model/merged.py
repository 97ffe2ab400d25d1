"""The last lines of several runs' logs as one, in the order in which they were printed."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from console.model.logfile import LogFile
from engine.runs import protocol
from environment.runlog import log_times
from foundation.problems import Problem
from state import runs
from state.database import Database

MOST_LINES = 1000


@dataclass(frozen=True)
class Source:
    """One run's log; `label` names the run."""

    label: str
    log: Path


@dataclass(frozen=True)
class MergedLine:
    """A line, whose it is (its place among the sources), and when it was printed."""

    at: float
    source: int
    start: int
    text: str


def sources(database: Database, run_ids: Sequence[int]) -> tuple[Source, ...]:
    """Where the logs of the runs' latest attempts lie; runs that never started have none."""
    found = []
    for run_id in run_ids:
        run, attempt = runs.get(database, run_id), runs.latest_attempt(database, run_id)
        if attempt is not None:
            log = database.path.parent / attempt.directory / protocol.LOG
            found.append(Source(f"{run.competition_id} s{run.seed}", log))
    return tuple(found)


def merged(logs: Sequence[Source], most: int = MOST_LINES) -> tuple[MergedLine, ...]:
    """The last lines of all of them together; waits for the disk."""
    streams = [_tail(place, each.log, most) for place, each in enumerate(logs)]
    return tuple(list(heapq.merge(*streams, key=lambda line: line.at))[-most:])


def _tail(place: int, log: Path, most: int) -> Iterator[MergedLine]:
    """The last lines of one log; one that can't be read has none."""
    try:
        file = LogFile(log)
    except (OSError, Problem):
        return
    try:
        times, lines = log_times(log), file.backward(file.end, most)
    except OSError:
        return
    finally:
        file.close()
    for line in lines:
        index = bisect_right(times.offsets, line.start) - 1
        yield MergedLine(times.moments[index] if index >= 0 else 0.0, place, line.start, line.text)
