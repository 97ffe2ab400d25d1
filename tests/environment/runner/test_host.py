"""What a host says of itself is kept as it says it, and what it does not say stays unknown."""

from __future__ import annotations

import os

import pytest

from mlebench_console.environment.runner.host import readings
from mlebench_console.environment.runner.host.readings import Gpu
from mlebench_console.environment.runner.protocol import GivenGpus
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problems import EnvironmentProblem

A10 = Gpu("GPU-a", "NVIDIA A10", 24 << 30, None, None)
QUIET = Gpu("GPU-b", "Some GPU", None, None, None)


def untouchable() -> tuple[Gpu, ...]:
    raise AssertionError("the driver was asked for nothing")


def test_the_leased_devices_are_named_by_their_driver_and_no_other_is() -> None:
    found = readings.hardware_of(("GPU-b", "GPU-a", "GPU-gone"), lambda: (A10, QUIET))
    assert found.gpus == ("Some GPU", "NVIDIA A10, 24 GiB")
    assert readings.hardware_of(("GPU-a",), tuple).gpus == ()


def test_the_host_is_told_as_the_kernel_tells_it() -> None:
    found = readings.hardware_of((), untouchable)
    assert found.cpus == os.cpu_count()
    assert found.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.gpus == ()


NODE_GPUS = tuple(
    Gpu(f"GPU-{letter}1234", "A100", None, None, None, minor) for minor, letter in ((3, "a"), (5, "b"))
)


@pytest.mark.parametrize(
    ("visible", "uuids", "nodes", "in_sandbox"),
    [
        ("0", ("GPU-a1234",), ("/dev/nvidia3",), "0"),
        ("1", ("GPU-b1234",), ("/dev/nvidia5",), "0"),  # where no other is seen it is the first
        ("1,0", ("GPU-b1234", "GPU-a1234"), ("/dev/nvidia5", "/dev/nvidia3"), "0,1"),
        ("GPU-b12", ("GPU-b1234",), ("/dev/nvidia5",), "GPU-b12"),
    ],
)
def test_the_devices_of_a_job_are_those_that_its_batch_system_names(
    visible: str, uuids: tuple[str, ...], nodes: tuple[str, ...], in_sandbox: str
) -> None:
    given = readings.given_gpus(visible, NODE_GPUS)
    assert (given.visible, given.uuids) == (visible, uuids)
    assert given.nodes[: len(nodes)] == nodes
    assert not [node for node in given.nodes[len(nodes) :] if node[-1].isdigit()]
    assert readings.visible_alone(given) == in_sandbox


def test_devices_of_a_job_that_nothing_can_name_stay_unknown() -> None:
    assert readings.given_gpus("0,1", ()) == GivenGpus("0,1")
    assert readings.visible_alone(GivenGpus("0,1")) == "0,1"
    part = readings.given_gpus("MIG-0a", NODE_GPUS)
    assert part == GivenGpus("MIG-0a", ("MIG-0a",))
    with pytest.raises(EnvironmentProblem, match="a part of a GPU"):
        readings.visible_alone(part)


@pytest.mark.parametrize("visible", ["", "2", "GPU-c", "NoDevFiles"])
def test_a_job_without_the_devices_that_it_asked_for_is_told(visible: str) -> None:
    with pytest.raises(EnvironmentProblem):
        readings.given_gpus(visible, NODE_GPUS)


@pytest.mark.parametrize(
    ("known", "words"),
    [
        (Hardware(), ""),
        (Hardware(cpus=36), "36 x CPU"),
        (Hardware("EPYC", 36, 440 << 30), "36 x EPYC, 440 GiB"),
        (Hardware(memory_bytes=1 << 30, gpus=("A10", "A10", "T4")), "1 GiB, 2 x A10, 1 x T4"),
    ],
)
def test_only_what_is_known_is_put_into_words(known: Hardware, words: str) -> None:
    assert known.in_words() == words
