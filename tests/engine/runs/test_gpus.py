"""GPUs are leased by their own ids, and a lease lasts as long as its attempt."""

from __future__ import annotations

from mlebench_console.engine.runs.scheduling import GpuPool, lease
from mlebench_console.environment.runner.host.readings import Gpu, read_nvidia
from tests.clocks import HandClock

GPUS = tuple(Gpu(f"GPU-{letter}", "A10", 24 << 30, None, None) for letter in "ab")


def test_an_attempt_holds_its_devices_until_it_is_live_no_more() -> None:
    pool = GpuPool(lambda: GPUS, HandClock())
    pool.hold(1, ("GPU-a",), 1.0)
    pool.hold(2, ("GPU-b",), 0.5)
    assert pool.free({1, 2}) == {"GPU-a": 0.0, "GPU-b": 0.5}
    assert pool.free({2}) == {"GPU-a": 1.0, "GPU-b": 0.5}
    assert pool.free({1, 2}) == {"GPU-a": 1.0, "GPU-b": 0.5}


def test_a_device_that_the_driver_lost_is_leased_to_nobody() -> None:
    clock = HandClock()
    pool = GpuPool(lambda: GPUS[1:], clock)
    pool.hold(1, ("GPU-a",), 1.0)
    assert pool.free({1}) == {"GPU-b": 1.0}


def test_who_holds_a_device_is_known_also_when_the_driver_has_lost_it() -> None:
    clock, read = HandClock(), list(GPUS)
    pool = GpuPool(lambda: tuple(read), clock)
    pool.hold(1, ("GPU-a",), 0.5)
    pool.hold(2, ("GPU-a",), 0.5)
    assert pool.holders() == [(GPUS[0], (1, 2), False), (GPUS[1], (), False)]
    del read[0]
    clock.moment += 31
    assert pool.holders() == [(GPUS[1], (), False), (GPUS[0], (1, 2), True)]


def test_a_run_without_gpus_needs_none_and_one_of_all_needs_some() -> None:
    assert lease({}, 0, 1.0) == ()
    assert lease({}, -1, 1.0) is None
    assert lease({"GPU-a": 0.4}, 1, 0.5) is None


def test_a_host_without_a_driver_has_no_gpus() -> None:
    assert all(gpu.uuid for gpu in read_nvidia())
