"""Files arrive under their new names, as copies, and never through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.competitions.kit import placing
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob


def test_copies_share_nothing_with_raw(make_job: MakeJob) -> None:
    job = make_job()
    (job.raw / "a").write_bytes(b"content")
    placing.place(job, [(job.raw / "a", job.public / "deep" / "b")])
    made = job.public / "deep" / "b"
    assert made.read_bytes() == b"content"
    assert made.stat().st_ino != (job.raw / "a").stat().st_ino


def test_files_whose_old_neighbours_tell_their_class_come_in_the_order_of_their_new_names(
    make_job: MakeJob, created: list[str]
) -> None:
    job = make_job()
    (job.raw / "cats").mkdir()
    for name in "abc":
        (job.raw / "cats" / name).write_text(name)
    created.clear()
    wanted = {"a": "3", "b": "1", "c": "2"}
    pairs = [(job.raw / "cats" / old, job.public / new) for old, new in wanted.items()]
    placing.place(job, pairs, anew=True)
    assert created == ["1", "2", "3"]
    for old, new in pairs:
        assert new.read_bytes() == old.read_bytes()
        assert new.stat().st_ino != old.stat().st_ino


def test_what_is_moved_comes_into_being_in_the_order_of_its_new_names_and_is_gone_from_its_old_place(
    make_job: MakeJob, created: list[str]
) -> None:
    job = make_job()
    pairs = [
        (job.scratch / name, job.public / "deep" / new) for name, new in (("b", "1"), ("a", "3"), ("c", "2"))
    ]
    for old, _ in pairs:
        old.write_text(old.name)
    before = {old.stat().st_ino for old, _ in pairs}
    made = len(created)
    placing.move(job, pairs)
    assert created[made:] == ["1", "2", "3"]
    assert before.isdisjoint(new.stat().st_ino for _, new in pairs)
    assert [new.read_text() for _, new in pairs] == ["b", "a", "c"]
    assert not list(job.scratch.iterdir())


def test_a_missing_file_is_named(make_job: MakeJob) -> None:
    job = make_job()
    with pytest.raises(DataProblem, match=r"77\.jpg is missing"):
        placing.place(job, [(job.raw / "77.jpg", job.public / "77.jpg")])


def test_a_link_in_raw_is_not_followed(make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job()
    (job.raw / "a").symlink_to("/etc/hostname")
    with pytest.raises(DataProblem, match="not a regular file"):
        placing.copy_file(job, job.raw / "a", job.public / "a")


def test_a_tree_comes_with_its_empty_folders(make_job: MakeJob) -> None:
    job = make_job()
    (job.raw / "t" / "empty").mkdir(parents=True)
    (job.raw / "t" / "full").mkdir()
    (job.raw / "t" / "full" / "x").write_bytes(b"1")
    placing.place_tree(job, job.raw / "t", job.public / "t")
    assert (job.public / "t" / "empty").is_dir()
    assert (job.public / "t" / "full" / "x").read_bytes() == b"1"


def test_named_files_keep_their_names_and_folders_and_may_be_named_twice(make_job: MakeJob) -> None:
    job = make_job()
    (job.raw / "train" / "cats").mkdir(parents=True)
    for name in ("cats/1.jpg", "cats/2.jpg", "3.jpg"):
        (job.raw / "train" / name).write_text(name)
    placing.place_named(job, ["cats/2.jpg", "3.jpg", "cats/2.jpg"], job.raw / "train", job.public / "test")
    placed = {path.relative_to(job.public).as_posix() for path in job.public.rglob("*") if path.is_file()}
    assert placed == {"test/cats/2.jpg", "test/3.jpg"}


def test_a_missing_tree_is_named(make_job: MakeJob) -> None:
    job = make_job()
    (job.raw / "00001").mkdir()
    pairs = [(job.raw / name, job.public / name) for name in ("00001", "00002")]
    with pytest.raises(DataProblem, match="00002 is missing"):
        placing.place_trees(job, pairs)


def test_two_files_for_one_name_are_told(make_job: MakeJob) -> None:
    job = make_job()
    for name in "ab":
        (job.raw / name).write_text(name)
    with pytest.raises(DataProblem, match="another raw file was placed at"):
        placing.place(job, [(job.raw / name, job.public / "c") for name in "ab"])


def test_progress_counts_to_the_end_and_may_cancel(make_job: MakeJob) -> None:
    told: list[int] = []
    job = make_job(progress=lambda what, done, total: told.append(done))
    sources = [job.raw / str(number) for number in range(600)]
    for source in sources:
        source.write_bytes(b"")
    placing.place(job, [(source, job.public / source.name) for source in sources])
    assert told[-1] == 600

    def cancel(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        placing.place(make_job(progress=cancel), [(source, job.private / source.name) for source in sources])


def test_named_files_are_left_out_at_any_depth(make_job: MakeJob, tmp_path: Path) -> None:
    for name in ("a/truth.csv", "a/b/truth.csv", "a/b/log.txt", "truth.csv"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(name)
    placing.place_trees(make_job(), [(tmp_path / "tree", tmp_path / "made")], left_out={"truth.csv"})
    assert [path.name for path in (tmp_path / "made").rglob("*") if path.is_file()] == ["log.txt"]
    assert (tmp_path / "made" / "a" / "b").is_dir()
