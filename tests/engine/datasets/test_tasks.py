"""Datasets are prepared in worker processes, which tell how far they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.datasets import queue
from mlebench_console.foundation.workers import Ended, Progressed, WorkerPool
from tests.engine.harness import COMPETITION


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(preload=queue.PRELOAD)
    yield made
    made.close()


def prepare(pool: WorkerPool, competition_id: str, data_dir: Path) -> tuple[Ended, list[Progressed]]:
    options = {"source": "demo"}
    wanted = {"competition_id": competition_id, "data_dir": str(data_dir), "edition": "v1"}
    pool.start(queue.PREPARE_DATASET, {**wanted, "options": options, "limits": {}})
    told: list[Progressed] = []
    while True:
        for news in pool.wait():
            if isinstance(news, Ended):
                return news, told
            told.append(news)


def test_preparing_tells_how_far_it_is(pool: WorkerPool, tmp_path: Path) -> None:
    ended, told = prepare(pool, COMPETITION, tmp_path / "data")
    assert ended.value["bytes_on_disk"] > 0
    assert told[0].step == "download"
    assert {one.step for one in told} == {"download", "prepare", "checksum"}
    assert (tmp_path / "data" / COMPETITION / "prepared" / "public" / "train.csv").is_file()


def test_what_can_not_be_done_comes_back_as_the_problem_that_it_is(pool: WorkerPool, tmp_path: Path) -> None:
    ended, _ = prepare(pool, "no-such-competition", tmp_path)
    assert ended.value is None
    assert "no-such-competition" in str(ended.problem)
