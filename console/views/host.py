"""The host: the resources that live runs use, and the use of its disks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from mlebench_console.console.nouns.host import LiveRun
from mlebench_console.console.views.run import Point, read_samples
from mlebench_console.engine.placements import nodes
from mlebench_console.engine.placements.nodes import Nodes
from mlebench_console.foundation.conditions import HERE
from mlebench_console.foundation.measurements import UsageSample
from mlebench_console.foundation.problems import StateProblem
from mlebench_console.state import datasets, runs
from mlebench_console.state.database import Database

HISTORY_SECONDS = 6 * 3600.0
_BUCKETS = 120
# How long a measurement is assumed to hold after the last sample.
_HELD_SECONDS = 900.0


@dataclass(frozen=True)
class HostUse:
    """The live runs, and their total resource usage over the last hours.

    Attributes:
        nodes: the batch system's nodes with live runs, as last reported to the engine; None without a batch system.
        nodes_problem: why the nodes can't be read.
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
        """The number of live runs on each node."""
        found: defaultdict[str, int] = defaultdict(int)
        for one in self.live:
            if one.attempt.node:
                found[one.attempt.node] += 1
        return found


def host_use(database: Database, now: float) -> HostUse:
    """Read the live runs and their resource usage."""
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
    """Return the sum over all attempts in equal intervals of time, with each attempt's mean in an interval."""
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
        # Between two samples, and until the next one arrives, the last value is kept: otherwise the sum would drop at
        # every gap and at its end.
        end = max(buckets, default=-1)
        if buckets and found[-1].at >= newest - _HELD_SECONDS:
            end = last_bucket
        for bucket in range(min(buckets, default=0), end + 1):
            values = buckets.get(bucket)
            held = sum(values) / len(values) if values else held
            totals[bucket] += held
    begin = now - HISTORY_SECONDS
    return tuple((begin + bucket * step, totals[bucket]) for bucket in sorted(totals))
