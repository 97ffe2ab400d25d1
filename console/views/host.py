"""The host: which live runs use what of it, and what fills its disks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from console.views.run import Point, read_samples
from engine.placements import nodes
from engine.placements.nodes import Nodes
from foundation.problems import StateProblem
from state import datasets, runs
from state.database import Database
from state.records import HERE, Attempt, Run, UsageSample

HISTORY_SECONDS = 6 * 3600.0
_BUCKETS = 120
# How long an attempt is taken to use what it used when it was measured last.
_HELD_SECONDS = 900.0


@dataclass(frozen=True)
class LiveRun:
    """A live run and the latest sample of what it uses; None where none was taken."""

    run: Run
    attempt: Attempt
    latest: UsageSample | None


@dataclass(frozen=True)
class HostUse:
    """What is running, and what it uses together over the last hours.

    Attributes:
        nodes: those of a batch system that live runs were given to, as the engine last heard of them; None for none.
        nodes_problem: why that can't be read.
    """

    live: tuple[LiveRun, ...] = ()
    datasets_bytes: int = 0
    datasets_count: int = 0
    cpu_percent: tuple[Point, ...] = ()
    memory_bytes: tuple[Point, ...] = ()
    nodes: Nodes | None = None
    nodes_problem: str = ""

    @property
    def runs_of_nodes(self) -> dict[str, int]:
        """How many live runs each node has."""
        found: defaultdict[str, int] = defaultdict(int)
        for one in self.live:
            if one.attempt.node:
                found[one.attempt.node] += 1
        return found


def host_use(database: Database, now: float) -> HostUse:
    """Read who uses what."""
    found = [run for run in runs.of_all_sweeps(database) if run.is_live]
    attempts = {run.id: runs.latest_attempt(database, run.id) for run in found}
    prepared = [each for each in datasets.all_datasets(database) if each.bytes_on_disk]
    known = [attempt.id for attempt in attempts.values() if attempt is not None]
    samples = read_samples(database.path.parent, known, since=now - HISTORY_SECONDS)
    live = tuple(
        LiveRun(run, attempt, samples[attempt.id][-1] if samples.get(attempt.id) else None)
        for run in found
        if (attempt := attempts[run.id]) is not None
    )
    known_nodes, problem = None, ""
    if any(each.attempt.placement != HERE for each in live):
        try:
            known_nodes = nodes.read(database.path.parent)
        except StateProblem as found_wrong:
            problem = found_wrong.cause
    return HostUse(
        live=tuple(sorted(live, key=lambda each: -_cpu_of(each))),
        datasets_bytes=sum(each.bytes_on_disk or 0 for each in prepared),
        datasets_count=len(prepared),
        cpu_percent=_together(samples, now, lambda sample: sample.cpu_percent),
        memory_bytes=_together(samples, now, lambda sample: sample.memory_bytes),
        nodes=known_nodes,
        nodes_problem=problem,
    )


def _cpu_of(live: LiveRun) -> float:
    return live.latest.cpu_percent or 0.0 if live.latest is not None else 0.0


def _together(
    samples: dict[int, list[UsageSample]], now: float, value: Callable[[UsageSample], float | None]
) -> tuple[Point, ...]:
    """The sum over all attempts at even steps of time, each one's mean within a step."""
    step = HISTORY_SECONDS / _BUCKETS
    totals: defaultdict[int, float] = defaultdict(float)
    newest = max((sample.at for found in samples.values() for sample in found), default=now)
    last_bucket = int((newest - now + HISTORY_SECONDS) / step)
    for found in samples.values():
        buckets: defaultdict[int, list[float]] = defaultdict(list)
        for sample in found:
            known = value(sample)
            if known is not None:
                buckets[int((sample.at - now + HISTORY_SECONDS) / step)].append(known)
        held = 0.0
        # Between two samples an attempt goes on using what it used, and so does one whose next sample is not there yet,
        # or the sum would fall at every gap and at its end.
        end = max(buckets, default=-1)
        if buckets and found[-1].at >= newest - _HELD_SECONDS:
            end = last_bucket
        for bucket in range(min(buckets, default=0), end + 1):
            values = buckets.get(bucket)
            held = sum(values) / len(values) if values else held
            totals[bucket] += held
    begin = now - HISTORY_SECONDS
    return tuple((begin + bucket * step, totals[bucket]) for bucket in sorted(totals))
