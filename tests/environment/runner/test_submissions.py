"""Snapshots of what an agent hands in."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import SubmissionRefused, SubmissionTaken
from mlebench_console.environment.runner.submissions import MOST_BYTES, Refusals, SubmissionWatch
from mlebench_console.foundation.files import NotRegular, TooLarge
from mlebench_console.foundation.problems import DataProblem


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    for name in (protocol.SUBMISSION, protocol.SNAPSHOTS):
        (tmp_path / name).mkdir()
    return tmp_path


def watch(
    attempt: Path,
    *,
    limit: int = 1000,
    every: float = 0.0,
    taken: Sequence[SubmissionTaken] = (),
    most: int = MOST_BYTES,
) -> SubmissionWatch:
    return SubmissionWatch(attempt, limit_bytes=limit, every_seconds=every, taken=taken, most_bytes=most)


def submit(attempt: Path, text: str, *, moment: int) -> Path:
    path = attempt / protocol.SUBMISSION / protocol.SUBMISSION_FILE
    path.write_text(text)
    os.utime(path, (moment, moment))
    return path


def test_a_file_is_taken_once_it_has_settled_and_only_once(attempt: Path) -> None:
    watched = watch(attempt)
    assert watched.check(1, 1) is None
    submit(attempt, "one", moment=1)
    assert watched.check(2, 2) is None
    taken = watched.check(3, 3)
    assert taken is not None
    assert (taken.sequence, taken.elapsed_seconds) == (1, 3)
    assert (attempt / taken.path).read_text() == "one"
    assert watched.check(4, 4) is None


def test_a_file_that_is_still_being_written_waits(attempt: Path) -> None:
    watched = watch(attempt)
    for moment in range(1, 5):
        submit(attempt, "x" * moment, moment=moment)
        assert watched.check(moment, moment) is None


def test_the_same_content_again_is_no_new_snapshot(attempt: Path) -> None:
    watched = watch(attempt)
    submit(attempt, "one", moment=1)
    assert [watched.check(n, n) is None for n in (1, 2)] == [True, False]
    submit(attempt, "one", moment=5)
    assert [watched.check(n, n) for n in (3, 4, 5)] == [None, None, None]
    assert [path.name for path in (attempt / protocol.SNAPSHOTS).iterdir()] == ["1.csv"]


def test_snapshots_keep_their_distance_but_the_final_one_does_not(attempt: Path) -> None:
    watched = watch(attempt, every=100)
    submit(attempt, "one", moment=1)
    assert [watched.check(n, n) is None for n in (1, 2)] == [True, False]
    submit(attempt, "two", moment=5)
    assert [watched.check(n, n) for n in (3, 4)] == [None, None]
    final = watched.take_final(5, 5)
    assert final is not None
    assert final.sequence == 2


def test_the_final_submission_may_be_the_newest_snapshot(attempt: Path) -> None:
    watched = watch(attempt)
    submit(attempt, "one", moment=1)
    assert [watched.check(n, n) is None for n in (1, 2)] == [True, False]
    final = watched.take_final(9, 9)
    assert final is not None
    assert (final.sequence, final.path) == (1, "snapshots/1.csv")
    assert final is watched.last


def test_another_runner_goes_on_counting(attempt: Path) -> None:
    first = watch(attempt)
    submit(attempt, "one", moment=1)
    assert [first.check(n, n) is None for n in (1, 2)] == [True, False]
    assert first.last is not None
    second = watch(attempt, taken=[first.last])
    assert [second.check(n, n) for n in (3, 4)] == [None, None]
    submit(attempt, "two", moment=5)
    taken = [second.check(n, n) for n in (5, 6)][1]
    assert taken is not None
    assert taken.sequence == 2


def test_what_is_too_large_is_refused_once(attempt: Path) -> None:
    watched = watch(attempt, limit=3)
    submit(attempt, "four", moment=1)
    assert watched.check(1, 1) is None
    with pytest.raises(DataProblem, match="at most 3"):
        watched.check(2, 2)
    assert watched.check(3, 3) is None


def test_a_deleted_submission_is_none_in_the_end(attempt: Path) -> None:
    watched = watch(attempt)
    submit(attempt, "one", moment=1)
    assert [watched.check(n, n) is None for n in (1, 2)] == [True, False]
    (attempt / protocol.SUBMISSION / protocol.SUBMISSION_FILE).unlink()
    assert watched.take_final(9, 9) is None


def test_a_wall_clock_that_is_set_changes_neither_distance_nor_elapsed_time(attempt: Path) -> None:
    watched = watch(attempt, every=10)
    submit(attempt, "one", moment=1)
    assert [watched.check(1000, elapsed) is None for elapsed in (1, 2)] == [True, False]
    submit(attempt, "two", moment=2)
    assert [watched.check(9e9, elapsed) for elapsed in (3, 4)] == [None, None]
    taken = watched.check(5, 13)
    assert taken is not None
    assert (taken.at, taken.elapsed_seconds) == (5, 13)


def test_the_same_refusal_is_told_ever_more_seldom_and_counted() -> None:
    refusals = Refusals(())
    told = [
        refusals.note(float(n), TooLarge("submission.csv was not read", f"it has {2000 + n} bytes"))
        for n in range(140_000)
    ]
    assert [one.times for one in told if one is not None] == [1, 10, 100, 1000, 10_000, 100_000]
    other = refusals.note(1.0, NotRegular("submission.csv was not read", "is a symbolic link"))
    assert other is not None
    assert (other.code, other.times) == ("not_regular", 1)
    assert [(one.at, one.times) for one in refusals.unreported()] == [(139_999.0, 140_000)]
    assert refusals.unreported() == []


def test_refusals_are_counted_on_by_another_runner() -> None:
    refusals = Refusals(SubmissionRefused(at, "is a link", "not_regular", at) for at in (1, 8))
    assert refusals.unreported() == []
    assert refusals.note(9.0, NotRegular("it is a folder")) is None
    told = refusals.note(10.0, NotRegular("is a link"))
    assert told == SubmissionRefused(10.0, "is a link", "not_regular", 10)


def test_snapshots_are_thinned_out_and_the_first_and_the_newest_stay(attempt: Path) -> None:
    taken: list[SubmissionTaken] = []
    watched = watch(attempt, most=1000)
    for minute in range(1, 201):
        if minute == 100:  # a new runner goes on
            watched = watch(attempt, most=1000, taken=taken)
        submit(attempt, f"{minute:100}", moment=minute)
        found = [watched.check(minute, 60.0 * minute) for _ in range(2)][1]
        assert found is not None and (attempt / found.path).exists()
        taken.append(found)
        kept = list((attempt / protocol.SNAPSHOTS).iterdir())
        assert sum(path.stat().st_size for path in kept) <= 1000
    ages = sorted(200 - int(path.stem) for path in (attempt / protocol.SNAPSHOTS).iterdir())
    assert len(ages) == 10
    assert ages[:2] == [0, 1] and ages[-1] == 199
    assert sum(age < 50 for age in ages) > 4  # some of every age, fewer of what is older
    assert sum(50 <= age < 199 for age in ages) > 0


def test_however_large_they_are_the_two_newest_snapshots_stay(attempt: Path) -> None:
    watched = watch(attempt, most=10)
    for number in range(1, 5):
        submit(attempt, f"{number:100}", moment=number)
        assert [watched.check(number, number) is None for _ in range(2)] == [True, False]
    assert sorted(path.name for path in (attempt / protocol.SNAPSHOTS).iterdir()) == ["3.csv", "4.csv"]
    final = watched.take_final(9, 9)
    assert final is not None and (attempt / final.path).exists()
