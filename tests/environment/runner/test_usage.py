"""What an attempt uses is measured of itself alone; what can't be told apart from others' stays unknown.

An attempt that is idle or fills the disk is over a limit; one that works is not.
"""

from __future__ import annotations

import os
from pathlib import Path

from mlebench_console.environment.container.processes import Process, ProcessTree, process_tree
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.gateway.records import Journal, OpenCall, OpenState
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host import readings
from mlebench_console.environment.runner.host.readings import Gpu
from mlebench_console.environment.runner.host.usage import UsageMeter, limit_exceeded
from mlebench_console.environment.runner.protocol import LimitExceeded, Order
from tests.environment.runner.orders import order_with

GPUS = (
    Gpu("GPU-a", "A100", 80, 30, 90),
    Gpu("GPU-b", "A100", 80, 50, 40),
    Gpu("GPU-c", "A100", 80, 99, 100),
    Gpu("GPU-d", "old", None, None, None),
)


def measured(*uuids: str) -> tuple[float | None, int | None]:
    meter = UsageMeter(Path("/nowhere"), order_with(gpu_uuids=uuids))
    found = meter.measure(process_tree(), os.getpid(), now=1.0, monotonic=1.0, disk_bytes=None, gpus=GPUS)
    return found.gpu_percent, found.gpu_memory_bytes


def test_only_the_gpus_that_were_given_count() -> None:
    assert measured("GPU-a", "GPU-b") == (65.0, 80)
    assert measured("GPU-c") == (100.0, 99)


def test_gpus_that_do_not_tell_or_are_gone_stay_unknown() -> None:
    assert measured("GPU-d") == (None, None)
    assert measured("GPU-lost") == (None, None)
    assert measured() == (None, None)


def test_the_hosts_own_network_is_nobodys(tmp_path: Path) -> None:
    assert readings.network_bytes(os.getpid()) is None


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
    assert readings.network_bytes(7, tmp_path) == 1500 + 700 + 20 + 3


def test_a_process_that_has_gone_has_no_network(tmp_path: Path) -> None:
    fake(tmp_path, 7, "2", TABLE)
    assert readings.network_bytes(8, tmp_path) is None


class Attempt:
    """An attempt of one process that is measured when a test says so."""

    def __init__(self, folder: Path, order: Order) -> None:
        self._order = order
        self._meter = UsageMeter(folder, order)
        self._cpu_seconds = 0.0
        self._at = 0.0
        self.idle_seconds = 0.0
        self.measure(0)  # the processor's share needs two measurements

    def measure(self, at: float, *, cpu: float = 0.0, disk: int | None = None) -> LimitExceeded | None:
        self._cpu_seconds += cpu / 100 * (at - self._at)
        self._at = at
        tree = ProcessTree({1: [Process(2, "agent", 1, self._cpu_seconds, 1)]})
        usage = self._meter.measure(tree, 1, now=at, monotonic=at, disk_bytes=disk)
        self.idle_seconds = usage.idle_seconds
        return limit_exceeded(usage, self._order)


def test_an_attempt_in_which_nothing_happens_is_idle(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, order_with(idle_limit_seconds=60))
    assert attempt.measure(59) is None
    assert attempt.idle_seconds == 59
    exceeded = attempt.measure(61)
    assert exceeded is not None
    assert exceeded.kind == "idle"


def test_work_output_and_files_count_as_something(tmp_path: Path) -> None:
    provider = ModelProvider("openai", "openai", "http://localhost", "KEY")
    attempt = Attempt(tmp_path, order_with(idle_limit_seconds=60, providers=(provider,)))
    assert attempt.measure(1, disk=1) is None
    assert attempt.measure(50, cpu=50, disk=1) is None
    (tmp_path / protocol.OUTPUT).mkdir()
    (tmp_path / protocol.LOG).with_suffix(".times").touch()
    assert attempt.measure(100, disk=1) is None
    assert attempt.measure(150, disk=2) is None
    assert attempt.measure(200, disk=2) is None
    journal = Journal(tmp_path)
    journal.begin(OpenCall("1", 1.0, "openai", "chat", "m", False, 1, 1, OpenState.WAITING))
    assert attempt.measure(205, disk=2) is None
    os.utime(tmp_path / protocol.OPEN_CALLS, (1.0, 1.0))  # that long ago the call began to wait
    assert attempt.measure(250, disk=2) is None
    journal.touch()
    assert attempt.measure(300, disk=2) is None
    assert attempt.measure(361, disk=2) is not None


def test_a_full_disk_is_told_with_its_figures(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, order_with(disk_limit_bytes=1000))
    assert attempt.measure(1, disk=1000) is None
    exceeded = attempt.measure(2, disk=1001)
    assert exceeded is not None
    assert "1,001 bytes" in exceeded.problem
