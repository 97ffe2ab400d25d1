"""Scheduling over time: whole campaigns are played through, and nobody starves, oversteps or waits needlessly."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench_console.engine.runs.scheduling import Demand, Free, choose
from mlebench_console.foundation.conditions import Resources

_EPSILON = 1e-6


@dataclass(frozen=True)
class Host:
    cpus: float
    memory: int
    gpus: tuple[str, ...] = ()


@dataclass
class Campaign:
    """Plays sweeps on a host: runs last as long as they say, and each moment starts what `choose` says."""

    host: Host
    sweeps: list[Demand]
    lasts: dict[int, int]
    now: int = 0
    live: list[tuple[int, int, str, tuple[str, ...]]] = field(default_factory=list)
    started: dict[int, int] = field(default_factory=dict)
    order: list[tuple[int, str]] = field(default_factory=list)

    def play(self) -> None:
        for _ in range(10_000):
            self._start()
            self._check()
            if not self.live:
                break
            self.now = self.live[0][0]
            while self.live and self.live[0][0] == self.now:
                heapq.heappop(self.live)
        waiting = [run for sweep in self.sweeps for run in sweep.ready if run not in self.started]
        assert waiting == [], "runs that fit were never started"

    def counts(self) -> Counter[str]:
        return Counter(name for _, _, name, _ in self.live)

    def free(self) -> Free:
        known = {sweep.sweep_id: sweep for sweep in self.sweeps}
        live = [(known[name], gpu_uuids) for _, _, name, gpu_uuids in self.live]
        gpus = dict.fromkeys(self.host.gpus, 1.0)
        for sweep, gpu_uuids in live:
            for uuid in gpu_uuids:
                gpus[uuid] -= sweep.resources.gpu_share
        return Free(
            self.host.cpus - sum(sweep.resources.cpus for sweep, _ in live),
            self.host.memory - sum(sweep.resources.memory_bytes or 0 for sweep, _ in live),
            gpus,
        )

    def demands(self) -> list[Demand]:
        counts = self.counts()
        return [
            replace(
                sweep,
                live=counts[sweep.sweep_id],
                ready=tuple(run for run in sweep.ready if run not in self.started),
            )
            for sweep in self.sweeps
        ]

    def _start(self) -> None:
        whose = {run: sweep.sweep_id for sweep in self.sweeps for run in sweep.ready}
        while chosen := choose(self.demands(), free=self.free(), at_most=3):
            for run_id, gpu_uuids in chosen:
                name = whose[run_id]
                self.started[run_id] = self.now
                self.order.append((self.now, name))
                ends = self.now + self.lasts[run_id]
                heapq.heappush(self.live, (ends, run_id, name, gpu_uuids))

    def _check(self) -> None:
        free, counts = self.free(), self.counts()
        assert free.cpus >= -_EPSILON and free.memory_bytes >= 0
        assert all(part >= -_EPSILON for part in free.gpus.values())
        assert all(counts[sweep.sweep_id] <= sweep.concurrency for sweep in self.sweeps)


USUAL = Resources()


def sweep(
    name: str, runs: range, resources: Resources = USUAL, *, priority: int = 0, concurrency: int = 99
) -> Demand:
    return Demand(name, priority, concurrency, 0, tuple(runs), resources)


def campaign(host: Host, *sweeps: Demand, lasts: int = 10) -> Campaign:
    runs = [run for one in sweeps for run in one.ready]
    return Campaign(host, list(sweeps), {run: lasts + run % 3 for run in runs})


HOST = Host(cpus=4, memory=100, gpus=("GPU-a", "GPU-b"))

campaigns = st.lists(
    st.tuples(
        st.integers(-2, 2),
        st.integers(1, 5),
        st.sampled_from([0.05, 0.5, 1.0, 2.0, 4.0]),
        st.sampled_from([0, 10, 40, 100]),
        st.sampled_from([-1, 0, 0, 1, 2]),
        st.sampled_from([1, 2, 3]),
        st.integers(1, 8),
    ),
    min_size=1,
    max_size=5,
)


@given(campaigns, st.integers(0, 10**6))
@settings(max_examples=60)
def test_every_run_that_fits_gets_its_turn_and_no_bound_is_overstepped(
    drawn: list[tuple[int, int, float, int, int, int, int]], salt: int
) -> None:
    sweeps, first = [], 0
    for number, (priority, concurrency, cpus, memory, gpus, sharing, count) in enumerate(drawn):
        sweeps.append(
            Demand(
                f"s{number}", priority, concurrency, 0, tuple(range(first, first + count)),
                Resources(cpus, memory, gpus=gpus, runs_per_gpu=sharing),
            )
        )  # fmt: skip
        first += count
    lasts = {run: 1 + (run * 7919 + salt) % 13 for run in range(first)}
    Campaign(HOST, sweeps, lasts).play()


def test_equal_sweeps_are_never_more_than_one_run_apart_while_both_have_work() -> None:
    played = campaign(HOST, sweep("a", range(40)), sweep("b", range(40, 80)))
    original = played._check

    def check() -> None:
        original()
        counts = played.counts()
        if all(demand.ready for demand in played.demands()):
            assert abs(counts["a"] - counts["b"]) <= 1

    played._check = check  # type: ignore[method-assign]  # looked at after each moment
    played.play()


def test_shares_follow_what_sweeps_may_have_at_once() -> None:
    played = campaign(
        Host(cpus=4, memory=0),
        sweep("wide", range(60), concurrency=6),
        sweep("narrow", range(60, 80), concurrency=2),
        lasts=10,
    )
    played.play()
    early = Counter(name for at, name in played.order if at < 50)
    assert 2 <= early["wide"] / early["narrow"] <= 4


def test_a_higher_priority_has_all_it_can_use_before_a_lower_one_gets_anything() -> None:
    played = campaign(Host(cpus=2, memory=0), sweep("low", range(6)), sweep("high", range(6, 12), priority=1))
    played.play()
    assert [name for _, name in played.order] == ["high"] * 6 + ["low"] * 6


def test_a_run_that_needs_the_whole_host_is_not_starved_by_small_ones() -> None:
    played = campaign(
        Host(cpus=4, memory=0), sweep("small", range(200)), sweep("large", range(200, 201), Resources(4.0))
    )
    played.play()
    assert played.started[200] <= 2 * 13, "it waits for those that run when it comes, not for all"


def test_waiting_for_a_gpu_keeps_no_run_from_starting_that_needs_none() -> None:
    played = campaign(
        HOST,
        sweep("gpu", range(6), Resources(gpus=1), priority=1),
        sweep("cpu", range(6, 8)),
    )
    played.play()
    assert played.started[6] == 0, "two hold the GPUs, a third waits with its slot kept, one slot is left"


def test_memory_bounds_what_runs_at_once() -> None:
    played = campaign(
        Host(cpus=99, memory=100),
        sweep("big", range(4), Resources(memory_bytes=60)),
        sweep("none", range(4, 8)),
    )
    played.play()
    assert sorted(played.started[run] for run in range(4, 8)) == [0] * 4, "what has no limit is not counted"
    assert len({played.started[run] for run in range(4)}) == 4


def test_several_runs_share_a_gpu_only_if_told() -> None:
    alone = campaign(HOST, sweep("alone", range(4), Resources(0.1, gpus=1)))
    alone.play()
    assert sorted(alone.started.values())[1:3] != [0, 0]
    shared = campaign(HOST, sweep("shared", range(4), Resources(0.1, gpus=1, runs_per_gpu=2)))
    shared.play()
    assert set(shared.started.values()) == {0}
