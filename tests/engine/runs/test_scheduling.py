"""Which runs start: by slots, concurrency, priority and fairness."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.engine.runs.scheduling import Demand, Free
from mlebench_console.engine.runs.scheduling import choose as choose_runs
from mlebench_console.foundation.conditions import Resources


def demand(
    name: str, ready: range, *, concurrency: int = 9, live: int = 0, priority: int = 0, cpus: float = 1.0
) -> Demand:
    return Demand(name, priority, concurrency, live, tuple(ready), Resources(cpus))


def choose(demands: list[Demand], *, free_cpus: float, at_most: int) -> list[int]:
    """Choose where no run takes a GPU."""
    chosen = choose_runs(demands, free=Free(free_cpus, inf, {}), at_most=at_most)
    return [run_id for run_id, _gpu_uuids in chosen]


def test_a_sweep_starts_its_runs_in_their_order_up_to_its_concurrency() -> None:
    assert choose([demand("a", range(5), concurrency=3, live=1)], free_cpus=9, at_most=9) == [0, 1]


def test_slots_bound_what_starts() -> None:
    assert choose([demand("a", range(5), cpus=0.5)], free_cpus=1.5, at_most=9) == [0, 1, 2]


def test_equal_sweeps_take_turns() -> None:
    chosen = choose([demand("a", range(10, 15)), demand("b", range(20, 25))], free_cpus=4, at_most=9)
    assert chosen == [10, 20, 11, 21]


def test_a_new_sweep_catches_up_with_one_that_is_running() -> None:
    running = demand("a", range(10, 15), live=2)
    assert choose([running, demand("b", range(20, 25))], free_cpus=2, at_most=9) == [20, 21]


def test_the_higher_priority_goes_first() -> None:
    urgent = demand("z", range(20, 22), priority=5)
    assert choose([demand("a", range(10, 15)), urgent], free_cpus=3, at_most=9) == [20, 21, 10]


def test_small_runs_do_not_starve_a_large_one_that_is_next() -> None:
    large = demand("large", range(1), cpus=4, priority=1)
    assert choose([large, demand("small", range(10, 15))], free_cpus=2, at_most=9) == []


demands = st.lists(
    st.builds(
        lambda name, priority, concurrency, cpus, live, ready: Demand(
            name, priority, concurrency, live, tuple(range(ready)), Resources(cpus)
        ),
        st.uuids().map(str),
        st.integers(-3, 3),
        st.integers(1, 6),
        st.sampled_from([0.05, 0.5, 1.0, 3.0]),
        st.integers(0, 8),
        st.integers(0, 8),
    ),
    max_size=5,
)


@given(demands, st.floats(-2, 12), st.integers(0, 20))
def test_no_choice_ever_oversteps_a_bound(wanted: list[Demand], free: float, at_most: int) -> None:
    wanted = [
        replace(w, ready=tuple((i, n) for n in w.ready))  # type: ignore[misc]  # numbers that tell their sweep
        for i, w in enumerate(wanted)
    ]
    chosen = choose(wanted, free_cpus=free, at_most=at_most)
    assert len(chosen) == len(set(chosen)) <= at_most
    used = 0.0
    for number, one in enumerate(wanted):
        mine = [run for run in chosen if run[0] == number]  # type: ignore[index]  # see above
        assert mine == list(one.ready[: len(mine)])
        assert not mine or one.live + len(mine) <= one.concurrency
        used += one.resources.cpus * len(mine)
    assert not chosen or used <= free + 1e-6


def test_gpus_are_leased_with_the_slots_and_bound_what_starts() -> None:
    wants = replace(demand("a", range(4)), resources=Resources(gpus=1))
    chosen = choose_runs([wants], free=Free(9, inf, {"GPU-a": 1.0, "GPU-b": 1.0}), at_most=9)
    assert chosen == [(0, ("GPU-a",)), (1, ("GPU-b",))]


def test_several_runs_share_a_gpu_only_if_the_operator_says_so() -> None:
    sharing = replace(demand("a", range(4)), resources=Resources(gpus=1, runs_per_gpu=2))
    chosen = choose_runs([sharing], free=Free(9, inf, {"GPU-a": 1.0, "GPU-b": 0.5}), at_most=9)
    assert [gpu_uuids for _run_id, gpu_uuids in chosen] == [("GPU-b",), ("GPU-a",), ("GPU-a",)]


def test_all_gpus_are_waited_for() -> None:
    everything = replace(demand("a", range(1)), resources=Resources(gpus=-1))
    assert choose_runs([everything], free=Free(9, inf, {"GPU-a": 1.0, "GPU-b": 0.5}), at_most=9) == []
    assert choose_runs([everything], free=Free(9, inf, {}), at_most=9) == []
    chosen = choose_runs([everything], free=Free(9, inf, {"GPU-a": 1.0, "GPU-b": 1.0}), at_most=9)
    assert chosen == [(0, ("GPU-a", "GPU-b"))]


def test_a_run_starts_only_where_all_that_it_may_take_of_the_disk_is_free() -> None:
    wants = Demand("limited", 0, 9, 0, (1, 2, 3), Resources(1.0), disk_bytes=40)
    assert [run for run, _ in choose_runs([wants], free=Free(9, inf, {}, 100), at_most=9)] == [1, 2]
    assert choose_runs([wants], free=Free(9, inf, {}, 39), at_most=9) == []
