"""What an attempt holds on disk is measured beside the loop, whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from environment.runner.host import disk_usage
from environment.runner.sandbox import Unreachable
from environment.runner.usage import DiskMeter
from tests.engine.harness import eventually


@pytest.fixture
def worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def test_files_of_all_folders_count_and_what_links_lead_to_does_not(tmp_path: Path) -> None:
    attempt, other = tmp_path / "attempt", tmp_path / "other"
    (attempt / "deep" / "er").mkdir(parents=True)
    other.mkdir()
    before = disk_usage(attempt)
    (attempt / "deep" / "er" / "file").write_bytes(b"x" * 100_000)
    (other / "file").write_bytes(b"x" * 100_000)
    (attempt / "link").symlink_to(other)
    os.mkfifo(attempt / "pipe")
    assert 100_000 <= disk_usage(attempt) - before < 150_000
    assert disk_usage(tmp_path / "gone") == 0


def test_a_measurement_waits_for_nobody_and_is_taken_once(tmp_path: Path, worker: ThreadPoolExecutor) -> None:
    go = threading.Event()

    def elsewhere() -> int:
        assert go.wait(60)
        return 1000

    meter = DiskMeter(tmp_path, elsewhere, worker)
    assert meter.take() is None
    meter.start()
    meter.start()  # while one is being done, none is begun
    assert meter.take() is None
    go.set()
    assert eventually(meter.take) == disk_usage(tmp_path) + 1000
    assert meter.take() is None


def test_what_can_not_be_reached_leaves_no_half_figure(tmp_path: Path, worker: ThreadPoolExecutor) -> None:
    answers: list[Unreachable | int] = [Unreachable("no", "daemon"), 5]

    def elsewhere() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Unreachable):
            raise answer
        return answer

    meter = DiskMeter(tmp_path, elsewhere, worker)
    found = None
    while found is None:
        meter.start()
        found = meter.take()
    assert found == disk_usage(tmp_path) + 5
    assert answers == []
