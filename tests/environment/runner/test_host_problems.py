"""What the host shows at the end of an attempt, and that no attempt can bring it about by itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Started
from mlebench_console.environment.runner.host.problems import HostMonitor
from mlebench_console.environment.runner.host.readings import Gpu
from tests.environment.runner.orders import order_with

STARTED = Started(1, 1.0, 1.0, output.boot_id(), isolated=True)
GPU = Gpu("GPU-a", "A10", None, None, None)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Say how much room the disk has: `free.f_bavail` in MiB."""
    disk = SimpleNamespace(f_bavail=100_000, f_frsize=1 << 20, f_files=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda _path: disk)
    return disk


def test_a_host_without_trouble_shows_none(tmp_path: Path) -> None:
    witness = HostMonitor(tmp_path, order_with(gpu_uuids=("GPU-a",)), lambda: (GPU,))
    witness.note_start()
    assert witness.problem(STARTED) == ""


def test_a_disk_that_others_have_filled_is_evidence(tmp_path: Path, free: SimpleNamespace) -> None:
    witness = HostMonitor(tmp_path, order_with(), tuple)
    witness.note_start()
    witness.note_disk_use(1 << 20)
    witness.note_disk_use(None)
    free.f_bavail = 1
    assert "disk is full" in witness.problem(STARTED)


def test_a_disk_that_the_agent_has_filled_itself_is_none(tmp_path: Path, free: SimpleNamespace) -> None:
    witness = HostMonitor(tmp_path, order_with(), tuple)
    witness.note_start()
    free.f_bavail = 1
    assert witness.problem(STARTED) == ""  # nobody knows what it holds
    witness.note_disk_use(1 << 40)
    assert witness.problem(STARTED) == ""


def test_a_disk_was_the_hosts_problem_if_it_was_full_before_or_the_agent_kept_to_its_limit(
    tmp_path: Path, free: SimpleNamespace
) -> None:
    free.f_bavail = 1
    at_start = HostMonitor(tmp_path, order_with(), tuple)
    at_start.note_start()
    at_start.note_disk_use(1 << 40)
    assert at_start.problem(STARTED)
    within_limit = HostMonitor(tmp_path, order_with(disk_limit_bytes=1 << 40), tuple)
    within_limit.note_disk_use(1 << 40)
    assert within_limit.problem(STARTED)


def test_a_gpu_that_the_driver_does_not_find_any_more_is_evidence(tmp_path: Path) -> None:
    witness = HostMonitor(tmp_path, order_with(gpu_uuids=("GPU-a", "GPU-b")), lambda: (GPU,))
    assert "GPU-b" in witness.problem(STARTED)


def test_a_restart_of_the_host_is_evidence(tmp_path: Path) -> None:
    witness = HostMonitor(tmp_path, order_with(), tuple)
    assert "restarted" in witness.problem(replace(STARTED, boot_id="another"))
