"""What a host says of itself is kept as it says it, and what it does not say stays unknown."""

from __future__ import annotations

import os

import pytest

from environment.runner import host
from environment.runner.host import Gpu
from foundation.hardware import Hardware

A10 = Gpu("GPU-a", "NVIDIA A10", 24 << 30, None, None)
QUIET = Gpu("GPU-b", "Some GPU", None, None, None)


def untouchable() -> tuple[Gpu, ...]:
    raise AssertionError("the driver was asked for nothing")


def test_the_leased_devices_are_named_by_their_driver_and_no_other_is() -> None:
    found = host.hardware_of(("GPU-b", "GPU-a", "GPU-gone"), lambda: (A10, QUIET))
    assert found.gpus == ("Some GPU", "NVIDIA A10, 24 GiB")
    assert host.hardware_of(("GPU-a",), tuple).gpus == ()


def test_the_host_is_told_as_the_kernel_tells_it() -> None:
    found = host.hardware_of((), untouchable)
    assert found.cpus == os.cpu_count()
    assert found.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.gpus == ()


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
