"""What an attempt uses is measured of itself alone; what can't be told apart from others' stays unknown."""

from __future__ import annotations

import os
from pathlib import Path

from environment.runner import host
from environment.runner.gpus import Gpu
from environment.runner.usage import UsageMeter

GPUS = (
    Gpu("GPU-a", "A100", 80, 30, 90),
    Gpu("GPU-b", "A100", 80, 50, 40),
    Gpu("GPU-c", "A100", 80, 99, 100),
    Gpu("GPU-d", "old", None, None, None),
)


def measured(*uuids: str) -> tuple[float | None, int | None]:
    meter = UsageMeter(uuids)
    found = meter.measure(
        host.process_tree(), os.getpid(), now=1.0, monotonic=1.0, disk_bytes=None, gpus=GPUS
    )
    return found.gpu_percent, found.gpu_memory_bytes


def test_only_the_gpus_that_were_given_count() -> None:
    assert measured("GPU-a", "GPU-b") == (65.0, 80)
    assert measured("GPU-c") == (100.0, 99)


def test_gpus_that_do_not_tell_or_are_gone_stay_unknown() -> None:
    assert measured("GPU-d") == (None, None)
    assert measured("GPU-lost") == (None, None)
    assert measured() == (None, None)


def test_the_hosts_own_network_is_nobodys(tmp_path: Path) -> None:
    assert host.network_bytes(os.getpid()) is None


def fake(proc: Path, process: int, namespace: str, table: str) -> None:
    folder = proc / str(process)
    (folder / "ns").mkdir(parents=True)
    (folder / "ns/net").symlink_to(f"net:[{namespace}]")
    (folder / "net").mkdir()
    (folder / "net/dev").write_text(table)
    (proc / "self/ns").mkdir(parents=True, exist_ok=True)
    if not (proc / "self/ns/net").is_symlink():
        (proc / "self/ns/net").symlink_to("net:[1]")


TABLE = """Inter-|   Receive                             |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:  999999 1 0 0 0 0 0 0  999999 1 0 0 0 0 0 0
  eth0:    1500 10 0 0 0 0 0 0 700 5 0 0 0 0 0 0
  eth1:      20 1 0 0 0 0 0 0 3 1 0 0 0 0 0 0
"""


def test_a_network_of_its_own_is_counted_without_its_loopback(tmp_path: Path) -> None:
    fake(tmp_path, 7, "2", TABLE)
    assert host.network_bytes(7, tmp_path) == 1500 + 700 + 20 + 3


def test_a_process_that_has_gone_has_no_network(tmp_path: Path) -> None:
    fake(tmp_path, 7, "2", TABLE)
    assert host.network_bytes(8, tmp_path) is None
