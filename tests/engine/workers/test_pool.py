"""Tasks in worker processes: what kills one of them is its own problem."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.grading.report import Report
from engine.workers import Ended, GradeTask, Limits, PrepareTask, Progressed, Task, WorkerPool
from environment.runner import host
from tests.engine.harness import COMPETITION, eventually


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[WorkerPool]:
    made = WorkerPool(tmp_path / "work")
    yield made
    made.close()


def grade(prepared_data: Path) -> GradeTask:
    sample = prepared_data / COMPETITION / "prepared" / "public" / "sample_submission.csv"
    return GradeTask(str(sample), COMPETITION, str(prepared_data), "v1")


def news(pool: WorkerPool, tasks: list[tuple[Task, Limits]]) -> tuple[list[Ended], list[Progressed]]:
    """Start tasks, wait for their ends and return these in the order of the tasks."""
    numbers = [pool.start(task, limits) for task, limits in tasks]
    return wait_for(pool, numbers)


def wait_for(pool: WorkerPool, numbers: list[int]) -> tuple[list[Ended], list[Progressed]]:
    ends: dict[int, Ended] = {}
    told: list[Progressed] = []

    def all_ended() -> bool:
        for one in pool.poll():
            if isinstance(one, Ended):
                ends[one.number] = one
            else:
                told.append(one)
        return set(numbers) <= set(ends)

    eventually(all_ended)
    return [ends[number] for number in numbers], told


def test_a_submission_is_graded_in_a_worker(pool: WorkerPool, prepared_data: Path) -> None:
    (ended,), _ = news(pool, [(grade(prepared_data), Limits(60, 4 << 30))])
    assert ended.problem is None
    assert ended.value is not None
    assert Report.from_dict(ended.value).valid_submission


def test_preparing_tells_how_far_it_is(pool: WorkerPool, tmp_path: Path) -> None:
    task = PrepareTask(COMPETITION, str(tmp_path / "data"), "v1", "demo")
    (ended,), told = news(pool, [(task, Limits())])
    assert ended.value is not None
    assert ended.value["bytes_on_disk"] > 0
    assert told[0].step == "download"
    assert {one.step for one in told} == {"download", "prepare", "checksum"}
    assert (tmp_path / "data" / COMPETITION / "prepared" / "public" / "train.csv").is_file()


def test_a_task_that_takes_too_long_dies_alone(pool: WorkerPool, prepared_data: Path, tmp_path: Path) -> None:
    large = PrepareTask(COMPETITION, str(tmp_path / "data"), "v1", "demo")
    (slow, good), _ = news(pool, [(large, Limits(wall_seconds=0.01)), (grade(prepared_data), Limits(60))])
    assert slow.problem is not None
    assert "too long" in slow.problem.what
    assert not slow.blameless
    assert good.value is not None


def test_a_task_has_its_memory_bounded_and_a_killed_one_dies_alone(
    pool: WorkerPool, prepared_data: Path, tmp_path: Path
) -> None:
    large = PrepareTask("aerial-cactus-identification", str(tmp_path / "data"), "v1", "demo")
    doomed = pool.start(large, Limits(60, 7 << 30))

    def child() -> int:
        tree = host.process_tree()
        (nursery,) = tree.children[os.getpid()]
        return next((found.pid for found in tree.children.get(nursery.pid, ())), 0)

    pid = eventually(child)
    os.kill(pid, signal.SIGSTOP)
    bounds = Path(f"/proc/{pid}/limits").read_text()
    os.kill(pid, signal.SIGKILL)
    good = pool.start(grade(prepared_data), Limits(60))
    (killed, graded), _ = wait_for(pool, [doomed, good])
    assert str(7 << 30) in bounds
    assert killed.problem is not None
    assert "SIGKILL" in str(killed.problem)
    assert not killed.blameless
    assert graded.value is not None


def test_what_can_not_be_done_comes_back_as_the_problem_that_it_is(pool: WorkerPool, tmp_path: Path) -> None:
    (unprepared, unknown), _ = news(
        pool,
        [
            (GradeTask("x.csv", COMPETITION, str(tmp_path), "v1"), Limits()),
            (GradeTask("x.csv", "no-such-competition", str(tmp_path), "v1"), Limits()),
        ],
    )
    assert unprepared.problem is not None
    assert "not prepared" in unprepared.problem.what
    assert unknown.problem is not None
    assert "no-such-competition" in str(unknown.problem)


def test_after_a_kill_of_all_workers_the_next_task_has_new_ones(
    pool: WorkerPool, prepared_data: Path
) -> None:
    news(pool, [(grade(prepared_data), Limits())])
    numbers = [pool.start(grade(prepared_data), Limits()) for _ in range(3)]
    host.kill([child.pid for child in host.process_tree().children.get(os.getpid(), ())])
    ends, _ = wait_for(pool, numbers)
    assert all(ended.value is not None or ended.blameless for ended in ends)
    assert any(ended.blameless for ended in ends)
    (again,), _ = news(pool, [(grade(prepared_data), Limits())])
    assert again.value is not None


def test_workers_do_not_outlive_their_engine(pool: WorkerPool, prepared_data: Path) -> None:
    news(pool, [(grade(prepared_data), Limits())])
    (nursery,) = [child.pid for child in host.process_tree().children.get(os.getpid(), ())]
    os.kill(nursery, signal.SIGSTOP)
    pool.start(grade(prepared_data), Limits())
    pool.close()
    eventually(lambda: not Path(f"/proc/{nursery}").exists())
