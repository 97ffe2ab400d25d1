"""Jobs in worker processes: what kills one of them is its own problem, and its owner knows why."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mlebench_console.environment.container.processes import process_tree
from mlebench_console.environment.runner.host import readings
from mlebench_console.foundation.problems import EnvironmentProblem, StateProblem
from mlebench_console.foundation.workers import Ended, JobLimits, Progressed, WorkerPool
from tests.engine.harness import eventually

JOBS = "tests.foundation.jobs"
ROOT = str(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def importable_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have worker processes find these tests' jobs, as the checkout's root is not on their search path."""
    monkeypatch.setenv("PYTHONPATH", ROOT)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(capture_output=True)
    yield made
    made.close()


def run(pool: WorkerPool, name: str, limits: JobLimits | None = None, **arguments: object) -> Ended:
    """Run one job and wait for its end."""
    (ended,) = wait_for(pool, [pool.start(f"{JOBS}:{name}", arguments, limits)])
    return ended


def wait_for(pool: WorkerPool, numbers: list[int]) -> list[Ended]:
    ends: dict[int, Ended] = {}
    while not set(numbers) <= set(ends):
        ends |= {news.number: news for news in pool.wait() if isinstance(news, Ended)}
    return [ends[number] for number in numbers]


_OTHERS: set[int] = set()


@pytest.fixture(autouse=True)
def _other_children() -> None:
    """Note the children of this process that are not this test's: pools of tests that ran before it."""
    _OTHERS.clear()
    _OTHERS.update(servers())


def servers() -> list[int]:
    """The children that this test has made."""
    children = process_tree().get(os.getpid(), ())
    return [child.pid for child in children if child.pid not in _OTHERS]


def test_a_job_tells_how_far_it_is_and_returns_its_value(pool: WorkerPool) -> None:
    number = pool.start(f"{JOBS}:add", {"a": 1, "b": 2})
    news: list[Progressed | Ended] = []
    while not news or not isinstance(news[-1], Ended):
        news += pool.wait()
    assert news == [
        Progressed(number, "add", "both", 1, 2),
        Progressed(number, "add", "both", 2, 2),
        Ended(number, value=3),
    ]


def test_jobs_run_side_by_side(pool: WorkerPool) -> None:
    slow = pool.start(f"{JOBS}:wait", {"seconds": 600})
    assert run(pool, "add", a=1, b=1).value == 2
    pool.cancel(slow)
    (ended,) = wait_for(pool, [slow])
    assert (ended.signal, ended.exceeded) == (signal.SIGKILL, None)


@pytest.mark.parametrize(
    ("name", "limits", "exceeded"),
    [
        ("burn", JobLimits(wall_seconds=0.2), "wall"),
        ("burn", JobLimits(cpu_seconds=1), "cpu"),
        ("allocate", JobLimits(memory_bytes=1 << 30), "memory"),
    ],
)
def test_a_job_over_its_limits_dies_alone_and_its_limit_is_named(
    pool: WorkerPool, name: str, limits: JobLimits, exceeded: str
) -> None:
    arguments = {"count": 4 << 30} if name == "allocate" else {}
    ended = run(pool, name, limits, **arguments)
    assert ended.exceeded == exceeded
    assert isinstance(ended.problem, EnvironmentProblem)
    assert run(pool, "add", a=1, b=1).value == 2


def test_files_are_limited_in_number_and_size(pool: WorkerPool, tmp_path: Path) -> None:
    too_large = run(pool, "write", JobLimits(file_bytes=0), path=str(tmp_path / "new"))
    assert "File too large" in str(too_large.problem)
    too_many = run(pool, "open_many", JobLimits(open_files=64))
    assert "Too many open files" in str(too_many.problem)


def test_problems_come_back_as_they_are(pool: WorkerPool) -> None:
    ended = run(pool, "refuse")
    assert isinstance(ended.problem, StateProblem)
    assert str(ended.problem) == "it can't be done: because\nDo this."
    assert ended.raised


def test_what_a_problem_was_made_of_is_in_the_log_of_the_jobs_owner(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with closing(WorkerPool()) as pool:
        ended = run(pool, "misread")
    assert str(ended.problem) == "no table: ValueError"
    assert "Traceback" in (logged := capfd.readouterr().err) and "ValueError: not a number" in logged


def test_a_job_that_fails_leaves_its_last_words(pool: WorkerPool) -> None:
    ended = run(pool, "fail")
    assert "ValueError: no such thing" in str(ended.problem)
    assert "some words before" in ended.output and "Traceback" in ended.output
    assert not ended.raised


def test_what_a_job_started_ends_with_it(pool: WorkerPool) -> None:
    left = run(pool, "leave_a_child").value
    eventually(lambda: not Path(f"/proc/{left}").exists() or "Z" in Path(f"/proc/{left}/stat").read_text())


def test_jobs_see_the_given_variables_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    pool = WorkerPool(environment={"PATH": os.environ["PATH"], "PYTHONPATH": ROOT})
    try:
        assert "OPENAI_API_KEY" not in run(pool, "environment").value
    finally:
        pool.close()


@pytest.fixture
def sharing_pool() -> Iterator[WorkerPool]:
    made = WorkerPool(capture_output=True, per_process=3)
    yield made
    made.close()


def test_a_process_runs_as_many_jobs_in_turn_as_its_owner_lets_it(sharing_pool: WorkerPool) -> None:
    ends = [run(sharing_pool, "process_after", cpu_seconds=0) for _ in range(4)]
    first, second, third, fourth = (ended.value for ended in ends)
    assert first == second == third != fourth
    assert [ended.reused for ended in ends] == [False, True, True, False]


def test_jobs_that_run_at_once_are_in_different_processes(sharing_pool: WorkerPool) -> None:
    run(sharing_pool, "process_after", cpu_seconds=0)
    numbers = [
        sharing_pool.start(f"{JOBS}:process_after", {"cpu_seconds": 0.1}),
        sharing_pool.start(f"{JOBS}:process_after", {"cpu_seconds": 0.1}),
        sharing_pool.start(f"{JOBS}:process_after", {"cpu_seconds": 0.1}, fresh=True),
    ]
    ends = wait_for(sharing_pool, numbers)
    assert len({ended.value for ended in ends}) == 3
    assert [ended.reused for ended in ends] == [True, False, False]


def test_every_job_of_a_process_has_limits_of_its_own(sharing_pool: WorkerPool) -> None:
    limits = JobLimits(cpu_seconds=1)
    for _ in range(2):  # together they take more than one of them may
        assert isinstance(run(sharing_pool, "process_after", limits, cpu_seconds=0.7).value, int)
    late = run(sharing_pool, "burn", JobLimits(wall_seconds=0.2))
    assert (late.exceeded, late.reused) == ("wall", True)
    assert not run(sharing_pool, "process_after", limits, cpu_seconds=0).reused


def test_a_job_that_breaks_ends_its_process_and_keeps_its_last_words(sharing_pool: WorkerPool) -> None:
    assert run(sharing_pool, "add", a=1, b=2).value == 3
    failed = run(sharing_pool, "fail")
    assert failed.reused and "some words before" in failed.output
    next_one = run(sharing_pool, "refuse")
    assert (next_one.reused, next_one.output) == (False, "")
    assert run(sharing_pool, "add", a=1, b=2).reused, "to refuse is an answer like any other"


def test_a_process_that_is_killed_while_it_waits_is_not_missed(sharing_pool: WorkerPool) -> None:
    waiting = run(sharing_pool, "process_after", cpu_seconds=0).value
    os.kill(waiting, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{waiting}").exists())
    assert run(sharing_pool, "process_after", cpu_seconds=0).value != waiting


def test_a_killed_job_dies_alone(pool: WorkerPool) -> None:
    doomed = pool.start(f"{JOBS}:wait", {"seconds": 600})
    (server,) = servers()
    pid = eventually(lambda: next((found.pid for found in process_tree().get(server, ())), 0))
    os.kill(pid, signal.SIGKILL)
    killed, added = wait_for(pool, [doomed, pool.start(f"{JOBS}:add", {"a": 1, "b": 1})])
    assert (killed.signal, killed.exceeded, killed.lost) == (signal.SIGKILL, None, False)
    assert "SIGKILL" in str(killed.problem)
    assert added.value == 2


def test_after_a_kill_of_the_server_the_next_job_has_a_new_one(pool: WorkerPool) -> None:
    numbers = [pool.start(f"{JOBS}:wait", {"seconds": 600}) for _ in range(3)]
    readings.kill(servers())
    assert all(ended.lost for ended in wait_for(pool, numbers))
    assert run(pool, "add", a=1, b=1).value == 2


def test_what_a_killed_sandbox_leaves_keeps_nobody_waiting() -> None:
    # As bubblewrap does that is killed while it makes its sandbox: its child holds the pipes, and waits for it.
    with closing(WorkerPool(wrapper=("sh", "-c", "sleep 600 & wait"))) as pool:
        number = pool.start(f"{JOBS}:add", {"a": 1, "b": 1})
        (server,) = servers()
        left = eventually(lambda: process_tree().get(server, []))
        readings.kill([server])
        (ended,) = wait_for(pool, [number])
        assert ended.lost
    eventually(lambda: not any(Path(f"/proc/{process.pid}").exists() for process in left))


def test_workers_do_not_outlive_their_owner(pool: WorkerPool) -> None:
    run(pool, "add", a=1, b=1)
    (server,) = servers()
    os.kill(server, signal.SIGSTOP)
    pool.start(f"{JOBS}:add", {"a": 1, "b": 1})
    pool.close()
    eventually(lambda: not Path(f"/proc/{server}").exists())


def test_a_closed_pool_begins_anew(pool: WorkerPool) -> None:
    run(pool, "add", a=1, b=1)
    pool.close()
    assert servers() == []
    assert run(pool, "add", a=2, b=2).value == 4
