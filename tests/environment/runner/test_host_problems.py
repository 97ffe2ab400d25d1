"""What the host shows at the end of an attempt, and that no attempt can bring it about by itself."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import Ending, HostProblem, Started
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.problems import HostMonitor
from mlebench_console.environment.runner.host.readings import Gpu
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
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
    assert witness.problem(STARTED) is None


def test_a_disk_that_others_have_filled_is_evidence(tmp_path: Path, free: SimpleNamespace) -> None:
    witness = HostMonitor(tmp_path, order_with(), tuple)
    witness.note_start()
    witness.note_disk_use(1 << 20, 0)
    free.f_bavail = 1
    found = witness.problem(STARTED)
    assert found is not None
    assert (found.code, found.path, found.free_bytes) == (ProblemCode.DISK_FULL, str(tmp_path), 1 << 20)
    assert "disk is full" in found.text


def test_a_disk_that_the_agent_has_filled_itself_is_none(tmp_path: Path, free: SimpleNamespace) -> None:
    witness = HostMonitor(tmp_path, order_with(), tuple)
    witness.note_start()
    free.f_bavail = 1
    assert witness.problem(STARTED) is None  # nobody knows what it holds
    witness.note_disk_use(1 << 40, 0)
    assert witness.problem(STARTED) is None


def test_a_disk_was_the_hosts_problem_if_it_was_full_before_or_the_agent_kept_to_its_limit(
    tmp_path: Path, free: SimpleNamespace
) -> None:
    free.f_bavail = 1
    at_start = HostMonitor(tmp_path, order_with(), tuple)
    at_start.note_start()
    at_start.note_disk_use(1 << 40, 0)
    assert at_start.problem(STARTED)
    free.f_bavail = 1000
    within_limit = HostMonitor(tmp_path, order_with(disk_limit_bytes=900 << 20), tuple)
    within_limit.note_start()
    within_limit.note_disk_use(900 << 20, 0)
    free.f_bavail = 1
    assert within_limit.problem(STARTED)


def test_an_agent_whose_limit_exceeds_what_was_free_buys_nothing_by_filling_the_disk_within_it(
    tmp_path: Path, free: SimpleNamespace
) -> None:
    free.f_bavail = 1000
    witness = HostMonitor(tmp_path, order_with(disk_limit_bytes=2000 << 20), tuple)
    witness.note_start()
    witness.note_disk_use(999 << 20, 0)
    free.f_bavail = 1
    assert witness.problem(STARTED) is None


@pytest.mark.parametrize(("own", "is_evidence"), [(100_000, False), (1, True), (None, False)])
def test_inodes_that_the_agent_has_taken_itself_are_no_evidence(
    tmp_path: Path, free: SimpleNamespace, own: int | None, *, is_evidence: bool
) -> None:
    free.f_files = free.f_favail = 100_000
    witness = HostMonitor(tmp_path, order_with(disk_limit_bytes=1 << 30), tuple)
    witness.note_start()
    witness.note_disk_use(1 << 20, own)
    free.f_favail = 0
    assert (witness.problem(STARTED) is not None) == is_evidence


def test_a_gpu_that_the_driver_does_not_find_any_more_is_evidence(tmp_path: Path) -> None:
    witness = HostMonitor(tmp_path, order_with(gpu_uuids=("GPU-a", "GPU-b")), lambda: (GPU,))
    found = witness.problem(STARTED)
    assert found is not None
    assert (found.code, found.devices) == (ProblemCode.GPU_LOST, ("GPU-b",))
    assert "GPU-b" in found.text


def test_a_part_of_a_gpu_is_not_called_lost_because_the_driver_lists_whole_ones(tmp_path: Path) -> None:
    witness = HostMonitor(tmp_path, order_with(gpu_uuids=("MIG-a",)), lambda: (GPU,))
    assert witness.problem(STARTED) is None


def test_a_restart_of_the_host_is_evidence(tmp_path: Path) -> None:
    witness = HostMonitor(tmp_path, order_with(), tuple)
    found = witness.problem(replace(STARTED, boot_id="another"))
    assert found is not None
    assert found.code == ProblemCode.HOST_RESTARTED


def test_a_problem_of_another_version_counts_as_other_and_damages_no_record(tmp_path: Path) -> None:
    problem = HostProblem("moon_eclipsed", "the moon was eclipsed", devices=("GPU-a",))
    ending = Ending("exited", 1, None, 1.0, 2.0, problem_code="unheard_of", host_problem=problem)
    protocol.write(tmp_path / protocol.EXIT, ending)
    assert protocol.read(tmp_path / protocol.EXIT, Ending) == ending
    assert ProblemCode(problem.code) is ProblemCode(ending.problem_code) is ProblemCode.OTHER


def test_containers_which_have_no_foundation_write_its_codes() -> None:
    assert output.NOT_STARTED == ProblemCode.NOT_STARTED
    for name in ("EXITED", "DEADLINE", "STOPPED", "UNSTARTED"):
        assert getattr(output, name) == EndReason[name]
