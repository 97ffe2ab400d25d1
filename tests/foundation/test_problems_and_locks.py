from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.foundation.clock import iso, run_group_stamp
from mlebench_console.foundation.locks import FileLock, is_held
from mlebench_console.foundation.problems import DataProblem, Problem


def test_a_problem_is_told_in_two_lines() -> None:
    problem = DataProblem("train.csv is damaged", "row 3 has 5 fields", "Download it again.")
    assert str(problem) == "train.csv is damaged: row 3 has 5 fields\nDownload it again."
    assert str(Problem("no engine")) == "no engine"


def test_a_record_of_a_problem_brings_its_class_back_where_it_is_known() -> None:
    record = DataProblem("it is damaged", "row 3", "Ask.", subject="spooky", retry_after=2.0).record
    again = Problem.of(record)
    assert type(again) is DataProblem and again.record == record
    assert str(again) == "spooky: it is damaged: row 3\nAsk."
    assert record.without_subject().in_one_line() == "it is damaged: row 3. Ask."
    foreign = Problem.of(replace(record, code="of_another_version"))
    assert type(foreign) is DataProblem and str(foreign) == str(again)


def test_a_problem_passes_whole_from_a_worker_to_its_parent() -> None:
    problem = pickle.loads(pickle.dumps(DataProblem("what", "why", "next")))  # our own bytes
    assert (type(problem), problem.what, problem.why, problem.next_step) == (
        DataProblem,
        "what",
        "why",
        "next",
    )


def test_a_lock_has_one_holder(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert not is_held(tmp_path / "lock")
    assert first.acquire(note="pid 1")
    assert not second.acquire(note="pid 2")
    assert is_held(tmp_path / "lock")
    assert (tmp_path / "lock").read_text() == "pid 1"
    first.release()
    assert second.acquire(note="pid 2")
    second.release()


def test_a_lock_that_is_shared_keeps_out_who_wants_it_alone(tmp_path: Path) -> None:
    first, second, alone = (FileLock(tmp_path / "lock") for _ in range(3))
    assert first.acquire(shared=True) and second.acquire(shared=True)
    assert not alone.acquire()
    first.release()
    assert not alone.acquire()
    second.release()
    (tmp_path / "lock").write_text("data")
    assert alone.acquire(wait=True)
    assert (tmp_path / "lock").read_text() == "data"
    assert not first.acquire(shared=True)
    alone.release()


def test_a_link_in_the_place_of_a_lock_is_followed_only_on_demand(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    with FileLock(tmp_path / "link") as followed:
        assert followed.acquire() and is_held(tmp_path / "lock")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(tmp_path / "link", follow_links=False).acquire()


def test_a_killed_holder_leaves_no_stale_lock(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from mlebench_console.foundation.locks import FileLock;"
        f"lock = FileLock(Path({str(tmp_path / 'lock')!r})); assert lock.acquire(note='x');"
        "print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_held(tmp_path / "lock")
        os.kill(holder.pid, signal.SIGKILL)
    assert not is_held(tmp_path / "lock")


def test_moments_are_written_as_mle_bench_writes_them() -> None:
    assert run_group_stamp(0.0) == "1970-01-01T00-00-00-GMT"
    assert iso(0.0) == "1970-01-01T00:00:00+00:00"
