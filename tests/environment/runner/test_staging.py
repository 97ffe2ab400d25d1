"""A dataset on a node's own disk: whole or not there, verified, shared by the node's jobs, and without any answer."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from mlebench_console.engine.placements.staging import Images
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.runner import protocol, staging
from mlebench_console.environment.runner.host import store
from mlebench_console.environment.runner.host.disk import DiskMeter
from mlebench_console.environment.runner.host.store import store_of_node
from mlebench_console.environment.runner.staging import Staging
from mlebench_console.foundation import files
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import ProblemCode
from mlebench_console.foundation.problems import DataProblem
from tests.engine.harness import eventually
from tests.environment.runner.orders import order_with
from tests.environment.runner.prepared import ANSWER, LARGE, make_prepared


class Node:
    """A node's disk, and the jobs on it that want a dataset."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.jobs: list[Staging] = []

    def job(
        self,
        prepared: Path,
        mode: Literal["copy", "squashfs"] = "copy",
        *,
        limit_seconds: float = 60.0,
        keep_free_bytes: int = 0,
    ) -> Staging:
        """Return the staging of one more job, which has not begun."""
        place = self.folder / f"job-{len(self.jobs)}"
        place.mkdir()
        images, profile = Images(), SlurmProfile(staging=mode)
        wanted = eventually(lambda: images.order(prepared, profile))
        assert wanted is not None
        protocol.write(place / protocol.STAGING, replace(wanted, limit_seconds=limit_seconds))
        made = Staging(
            place,
            order_with(prepared_dir=str(prepared)),
            place / "public",
            self.scratch,
            keep_free_bytes=keep_free_bytes,
        )
        self.jobs.append(made)
        return made

    def staged(self, prepared: Path, mode: Literal["copy", "squashfs"] = "copy") -> Staging:
        """Return the staging of one more job, which is done."""
        made = self.job(prepared, mode)
        made.start()
        made.join()
        if not made.problem:
            made.put_in_place()
        return made

    def data(self, job: Staging) -> Path:
        return self.folder / f"job-{self.jobs.index(job)}" / "public"

    def datasets(self) -> list[str]:
        return sorted(path.name for path in store_of_node(self.scratch).iterdir() if path.is_dir())


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    for job in made.jobs:
        job.end()


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    return make_prepared(tmp_path / "one" / "prepared")


def content(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder by their paths, and its empty folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }


def assert_no_answers(node: Node) -> None:
    for path in node.scratch.rglob("*"):
        assert path.name not in ("private", "test.csv")
        assert not path.is_file() or ANSWER.encode() not in path.read_bytes()


def test_a_node_gets_all_public_data_and_not_one_answer(node: Node, prepared: Path) -> None:
    job = node.staged(prepared)
    assert job.problem == ""
    assert not job.is_reused
    assert content(node.data(job).resolve()) == content(prepared / "public")
    assert job.bytes_done == job.bytes_needed == LARGE + 4
    assert_no_answers(node)
    table = node.data(job) / "train.csv"
    assert not stat.S_IMODE(table.stat().st_mode) & 0o222


def test_a_second_job_of_the_node_copies_nothing_and_reads_nothing_of_the_source(
    node: Node, prepared: Path
) -> None:
    first = node.staged(prepared)
    for path in (prepared / "public").rglob("*.*"):
        path.unlink()
    second = node.staged(prepared)
    assert second.problem == ""
    assert second.is_reused
    assert node.data(second).resolve() == node.data(first).resolve()


def test_jobs_that_begin_together_copy_once_and_see_how_far_that_is(
    node: Node, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, begun = threading.Event(), threading.Event()
    copy = staging._copy_file

    def held_up(*arguments: object) -> None:
        begun.set()
        may_go_on.wait()
        copy(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(staging, "_copy_file", held_up)
    monkeypatch.setattr(store, "POLL_SECONDS", 0.01)
    first, second = node.job(prepared), node.job(prepared)
    first.start()
    assert begun.wait(60)
    second.start()
    eventually(lambda: second.bytes_needed)
    assert second.bytes_done == 0
    assert not second.is_done
    may_go_on.set()
    first.join()
    second.join()
    assert (first.is_reused, second.is_reused) == (False, True)


def test_what_a_killed_job_has_left_is_never_taken_for_whole(node: Node, prepared: Path) -> None:
    job = node.staged(prepared)
    place = node.data(job).resolve().parent
    job.end()
    place.rename(place.with_name(place.name + ".partial"))
    (place.with_name(place.name + ".partial") / "public" / "train.csv").unlink()
    again = node.staged(prepared)
    assert not again.is_reused
    assert content(node.data(again).resolve()) == content(prepared / "public")
    assert node.datasets() == [place.name]


def test_what_others_have_tidied_up_is_brought_again_also_while_it_is_used(
    node: Node, prepared: Path
) -> None:
    node.staged(prepared)
    (node.data(node.jobs[0]) / "train.csv").unlink()
    (node.data(node.jobs[0]) / "nothing").rmdir()
    second = node.staged(prepared)
    assert second.problem == ""
    assert content(node.data(second).resolve()) == content(prepared / "public")


def test_a_file_that_is_not_what_the_manifest_lists_is_named_and_nothing_is_kept(
    node: Node, prepared: Path
) -> None:
    (prepared / "public" / "train.csv").write_text("a,x\n")
    job = node.staged(prepared)
    assert "public/train.csv is not what its manifest lists" in job.problem
    assert hashlib.sha256(b"a,x\n").hexdigest() in job.problem
    assert not [name for name in node.datasets() if not name.endswith(".partial")]


def test_a_source_or_a_manifest_that_is_gone_or_another_is_told(node: Node, prepared: Path) -> None:
    job = node.job(prepared)
    (prepared / "public" / "train.csv").unlink()
    job.start()
    job.join()
    assert "No such file or directory" in job.problem
    assert "train.csv" in job.problem
    later = node.job(prepared)
    (prepared / "manifest.jsonl").write_text("{}\n")
    later.start()
    later.join()
    assert "does not belong to" in later.problem


def test_room_is_made_by_removing_what_was_not_used_for_longest_and_never_what_is_used(
    node: Node, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, old, older = (make_prepared(tmp_path / name / "prepared") for name in ("used", "old", "older"))
    for data in (older, old):
        job = node.staged(data)
        job.end()
        lease = store_of_node(node.scratch) / (node.data(job).resolve().parent.name + ".lease")
        at = time.time() - (200 if data == older else 100)
        os.utime(lease, (at, at))
    in_use = node.data(node.staged(used)).resolve()
    disk = os.statvfs_result((1, 1, 0, 0, 0, 0, 0, 0, 0, 0))

    def statvfs(folder: Path) -> os.statvfs_result:
        """A disk that holds two datasets and a half."""
        held = sum(path.stat().st_size for path in folder.rglob("*.bin"))
        return os.statvfs_result((1, 1, 0, 0, LARGE * 3 + LARGE // 2 - held, *disk[5:]))

    monkeypatch.setattr(os, "statvfs", statvfs)
    job = node.staged(prepared)
    assert job.problem == ""
    names = {manifest_digest(data): data.parent.name for data in (used, old, older, prepared)}
    assert sorted(names[name] for name in node.datasets()) == ["old", "one", "used"]
    too_much = node.job(make_prepared(tmp_path / "more" / "prepared"), keep_free_bytes=3 * LARGE)
    too_much.start()
    too_much.join()
    assert "there is no room below" in too_much.problem
    assert too_much.problem_code is ProblemCode.DISK_FULL
    assert "MB are missing; of 4 others there 2 are in use" in too_much.problem
    assert in_use.is_dir()
    assert node.data(job).resolve().is_dir()


def manifest_digest(prepared: Path) -> str:
    return hashlib.sha256((prepared / "manifest.jsonl").read_bytes()).hexdigest()


def test_room_that_another_job_is_about_to_fill_is_not_counted(node: Node, prepared: Path) -> None:
    kept = store_of_node(node.scratch)
    free = os.statvfs(kept).f_bavail * os.statvfs(kept).f_frsize
    (kept / "other.lease").touch()
    files.write_json(kept / "other.progress", [0, free])
    with FileLock(kept / "other.work") as work:
        assert work.acquire()
        assert "there is no room" in node.staged(prepared).problem
    assert node.staged(prepared).problem == ""  # it has died


def test_a_disk_that_runs_full_is_told_with_the_file_that_it_did_not_take(
    node: Node, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "_write_all", full)
    problem = node.staged(prepared).problem
    assert problem.startswith(f"No space left on device: {store_of_node(node.scratch)}")
    assert ".partial/public/" in problem


def test_staging_ends_at_once_when_nobody_wants_it_any_more(
    node: Node, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = node.job(prepared)
    kept = store_of_node(node.scratch)
    with FileLock(kept / (manifest_digest(prepared) + ".work")) as work:
        assert work.acquire()
        job.start()
        eventually(lambda: job.bytes_needed)
        job.end()
        job.join(60)
        assert job.is_done
    assert node.datasets() == []


def test_staging_that_takes_the_agents_time_is_given_up(node: Node, prepared: Path) -> None:
    job = node.job(prepared, limit_seconds=0.0)
    with FileLock(store_of_node(node.scratch) / (manifest_digest(prepared) + ".work")) as work:
        assert work.acquire()
        job.start()
        eventually(lambda: job.bytes_needed)
        job.check_time()
        assert "staging_mb_per_second" in job.problem
        job.join(60)
        assert job.is_done


def test_whatever_goes_wrong_is_told_and_no_agent_begins_without_its_data(
    node: Node, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise MemoryError("too many files")

    monkeypatch.setattr(store, "_free_space", fails)
    assert node.staged(prepared).problem == "MemoryError: too many files"


def test_a_folder_that_somebody_else_could_write_to_is_not_used(node: Node, prepared: Path) -> None:
    taken = node.scratch / f"mlebench-{os.getuid()}"
    taken.mkdir()
    taken.chmod(0o777)
    assert node.staged(prepared).problem == ""
    assert not list(taken.iterdir())
    (own,) = node.scratch.glob(f"{taken.name}.*")
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    taken.chmod(0o755)
    assert node.staged(prepared).problem == ""
    assert list(taken.iterdir())
    assert stat.S_IMODE(taken.stat().st_mode) == 0o700


@pytest.mark.usefixtures("squashed_images")
def test_an_image_is_made_once_copied_verified_and_mounted_and_no_mount_is_left(
    node: Node, prepared: Path
) -> None:
    left = prepared.with_name(".prepared-public.squashfs.0a.partial")
    left.touch()
    os.utime(left, (1.0, 1.0))
    job = node.staged(prepared, "squashfs")
    assert job.problem == ""
    assert not left.exists()
    assert content(node.data(job)) == content(prepared / "public")
    assert_no_answers(node)
    image = prepared.with_name("prepared-public.squashfs")
    made_at = image.stat().st_mtime_ns
    second = node.staged(prepared, "squashfs")
    assert second.is_reused
    assert image.stat().st_mtime_ns == made_at
    for each in (job, second):
        assert node.data(each).is_mount()
        each.end()
        assert not node.data(each).is_mount()


@pytest.mark.usefixtures("squashed_images")
def test_no_image_is_made_of_data_that_are_not_what_the_manifest_lists(node: Node, prepared: Path) -> None:
    (prepared / "public" / "train.csv").write_text("a,x\n")
    with pytest.raises(DataProblem, match=r"public/train\.csv is not what its manifest lists"):
        node.job(prepared, "squashfs")


@pytest.mark.usefixtures("squashed_images")
def test_an_image_is_not_counted_as_what_its_agent_holds_on_disk(node: Node, prepared: Path) -> None:
    job = node.staged(prepared, "squashfs")
    attempt = node.folder / "attempt"
    attempt.mkdir()
    (attempt / protocol.DATASET).symlink_to(node.data(job).parent)
    with ThreadPoolExecutor(1) as worker:
        meter = DiskMeter(attempt, lambda: 0, worker)
        meter.start()
        found = eventually(meter.take)
    assert found is not None
    assert found.bytes < LARGE


@pytest.mark.usefixtures("squashed_images")
def test_an_image_that_has_changed_is_not_mounted(node: Node, prepared: Path) -> None:
    job = node.job(prepared, "squashfs")
    with prepared.with_name("prepared-public.squashfs").open("ab") as stream:
        stream.write(b"more")
    job.start()
    job.join()
    assert "is not what its manifest lists" in job.problem


@pytest.mark.usefixtures("squashed_images")
def test_a_node_that_can_not_mount_says_so(
    node: Node, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = node.job(prepared, "squashfs")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    job.start()
    job.join()
    job.put_in_place()
    assert "squashfuse is not installed" in job.problem
