"""Snapshots of an agent's code: as it was at each submission, bounded, hostile-safe and without secrets."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlebench_console.environment.runner import code_snapshots, protocol
from mlebench_console.environment.runner.code_snapshots import (
    CodeLimits,
    CodeSnapshot,
    CodeSnapshots,
    read_kept,
    read_snapshot,
)
from mlebench_console.foundation import files
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem

WORKER = ThreadPoolExecutor(1)


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    protocol.make_folders(tmp_path / "attempt")
    return tmp_path / "attempt"


def snapshots(
    attempt: Path,
    *hidden: str,
    limits: CodeLimits | None = None,
    known: Callable[[], tuple[str, ...]] | None = None,
) -> CodeSnapshots:
    return CodeSnapshots(attempt, known or (lambda: hidden), WORKER, SystemClock(), limits=limits)


def keep(taking: CodeSnapshots, attempt: Path, sequence: int) -> CodeSnapshot:
    taking.keep(sequence)
    assert taking.advance(30) == ""
    found = read_snapshot(attempt, sequence)
    assert found is not None
    return found


def write(attempt: Path, **contents: str) -> None:
    for name, text in contents.items():
        (attempt / protocol.CODE / f"{name}.py").write_text(text)


def texts(attempt: Path, snapshot: CodeSnapshot) -> dict[str, str]:
    return {each.path: read_kept(attempt, each).decode() for each in snapshot.files}


def objects(attempt: Path) -> list[Path]:
    return sorted((attempt / protocol.CODE_SNAPSHOTS / code_snapshots.OBJECTS).iterdir())


def test_code_is_kept_as_it_was_at_each_submission_each_content_once(attempt: Path) -> None:
    taking = snapshots(attempt)
    write(attempt, main="one", same="same")
    keep(taking, attempt, 1)
    write(attempt, main="two")
    keep(taking, attempt, 2)
    first, second = read_snapshot(attempt, 1), read_snapshot(attempt, 2)
    assert first is not None and second is not None
    assert texts(attempt, first) == {"main.py": "one", "same.py": "same"}
    assert texts(attempt, second) == {"main.py": "two", "same.py": "same"}
    assert len(objects(attempt)) == 3


def test_a_change_that_leaves_size_and_time_as_they_were_is_kept(attempt: Path) -> None:
    taking = snapshots(attempt)
    write(attempt, main="one")
    keep(taking, attempt, 1)
    path = attempt / protocol.CODE / "main.py"
    before = path.stat()
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert texts(attempt, keep(taking, attempt, 2)) == {"main.py": "two"}


def test_what_is_no_code_or_too_large_is_named_and_not_kept(attempt: Path, tmp_path: Path) -> None:
    code = attempt / protocol.CODE
    (tmp_path / "answers.csv").write_text("answers")
    (code / "link.py").symlink_to(tmp_path / "answers.csv")
    (code / "folder").symlink_to(tmp_path)
    os.mkfifo(code / "pipe")
    (code / "model.bin").write_bytes(b"\0" * 10)
    (code / "large.csv").write_text("x" * 101)
    (code / ".git").mkdir()
    (code / ".git" / "config").write_text("origin")
    (code / "a/b/c").mkdir(parents=True)
    (code / "a/b/c/deep.py").write_text("deep")
    (code / os.fsdecode(b"\xff.py")).write_text("name")
    found = keep(snapshots(attempt, limits=CodeLimits(file_bytes=100, depth=2)), attempt, 1)
    assert texts(attempt, found) == {"\\xff.py": "name"}
    assert {each.path: each.why for each in found.left_out} == {
        "link.py": "it is a link",
        "folder": "it is a link",
        "pipe": "it is not a regular file",
        "model.bin": "it is binary",
        "large.csv": "it has more than 100 bytes",
        ".git": "a folder of this name holds no code of the agent's own",
        "a/b/c": "it is more than 2 folders deep",
    }


def test_a_link_in_place_of_the_folder_leads_nowhere(attempt: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "answers.py").write_text("answers")
    (attempt / protocol.CODE).rmdir()
    (attempt / protocol.CODE).symlink_to(tmp_path / "private")
    assert keep(snapshots(attempt), attempt, 1).files == ()


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (CodeLimits(files=3), "there are 3 files already"),
        (CodeLimits(bytes=12), "the others have 12 bytes already"),
    ],
)
def test_a_snapshot_is_bounded_in_files_and_bytes(attempt: Path, limits: CodeLimits, told: str) -> None:
    for number in range(300):
        (attempt / protocol.CODE / f"{number}.py").write_text("x" * 4)
    found = keep(snapshots(attempt, limits=limits), attempt, 1)
    assert len(found.files) == 3
    assert {each.why for each in found.left_out} == {told}
    assert len(found.left_out) + found.more_left_out == 297


def test_names_and_time_are_bounded_too_and_the_manifest_says_so(attempt: Path) -> None:
    for number in range(30):
        (attempt / protocol.CODE / f"{number}.py").write_text("x")
    assert "20 names were seen" in keep(snapshots(attempt, limits=CodeLimits(seen=20)), attempt, 1).cut
    assert "0 s were over" in keep(snapshots(attempt, limits=CodeLimits(seconds=0)), attempt, 2).cut


def test_over_all_bounds_older_snapshots_go_and_the_first_and_the_newest_stay(attempt: Path) -> None:
    taking = snapshots(attempt, limits=CodeLimits(total_bytes=20_000))
    for number in range(1, 31):
        write(attempt, main=f"{number:04d}" * 500, same="same")
        keep(taking, attempt, number)
    held = sum(
        path.stat().st_size for path in (attempt / protocol.CODE_SNAPSHOTS).rglob("*") if path.is_file()
    )
    kept = [number for number in range(1, 31) if read_snapshot(attempt, number) is not None]
    assert held <= 20_000
    assert 3 <= len(kept) < 30
    assert (kept[0], kept[-2:]) == (1, [29, 30])
    for number in kept:
        found = read_snapshot(attempt, number)
        assert found is not None
        assert texts(attempt, found) == {"main.py": f"{number:04d}" * 500, "same.py": "same"}


def test_no_secret_is_in_a_snapshot_neither_in_content_nor_in_names(attempt: Path) -> None:
    write(attempt, main="key = 'sesame-open'", **{"sesame-open": "x"})
    (attempt / protocol.CODE / "sesame-open.bin").write_bytes(b"\0")
    found = keep(snapshots(attempt, "sesame-open"), attempt, 1)
    assert texts(attempt, found) == {"main.py": "key = '[secret]'", "[secret].py": "x"}
    for path in (attempt / protocol.CODE_SNAPSHOTS).rglob("*"):
        assert path.is_dir() or b"sesame" not in path.read_bytes()


def test_without_knowing_the_secrets_nothing_is_kept_and_that_is_told(attempt: Path) -> None:
    def gone() -> tuple[str, ...]:
        raise EnvironmentProblem("the agent's secrets are gone")

    write(attempt, main="key")
    taking = snapshots(attempt, known=gone)
    taking.keep(3)
    assert taking.advance(30) == (
        "the code as it was at submission 3 was not kept: the agent's secrets are gone"
    )
    assert taking.is_idle
    assert objects(attempt) == []


def test_a_kill_between_any_two_writes_leaves_nothing_half_and_the_next_runner_goes_on(
    attempt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(attempt, main="one", other="two")
    keep(snapshots(attempt), attempt, 1)
    write(attempt, main="three", other="four")
    real, writes, survived = files.write_bytes, 0, 0

    class Killed(BaseException):
        pass

    def write_some(path: Path, content: bytes, *, durable: bool = True) -> None:
        nonlocal writes
        writes += 1
        if writes > survived:
            path.with_name(f".{path.name}.ab{files.PARTIAL_SUFFIX}").write_bytes(content[:1])
            raise Killed
        real(path, content, durable=durable)

    for survived in range(3):  # noqa: B007 - write_some looks at it
        writes = 0
        with monkeypatch.context() as patched:
            patched.setattr(files, "write_bytes", write_some)
            taking = snapshots(attempt)
            taking.keep(2)
            assert "was not kept" in taking.advance(30)
        assert read_snapshot(attempt, 2) is None
        first = read_snapshot(attempt, 1)
        assert first is not None
        assert texts(attempt, first) == {"main.py": "one", "other.py": "two"}
    found = keep(snapshots(attempt), attempt, 2)
    assert texts(attempt, found) == {"main.py": "three", "other.py": "four"}
    assert len(objects(attempt)) == 4
    assert not list((attempt / protocol.CODE_SNAPSHOTS).rglob(f"*{files.PARTIAL_SUFFIX}"))


def test_a_manifest_that_leads_elsewhere_or_an_object_that_was_changed_is_not_believed(attempt: Path) -> None:
    write(attempt, main="one")
    found = keep(snapshots(attempt), attempt, 1)
    place = attempt / protocol.CODE_SNAPSHOTS / "1.json"
    for path in ("../main.py", "/main.py", "a/../../main.py", ""):
        place.write_text(place.read_text().replace(f'"path": "{found.files[0].path}"', f'"path": "{path}"'))
        changed = read_snapshot(attempt, 1)
        assert changed is not None and changed.files == ()
        place.write_text(place.read_text().replace(f'"path": "{path}"', '"path": "main.py"'))
    objects(attempt)[0].write_text("two")
    with pytest.raises(DataProblem, match="damaged"):
        read_kept(attempt, found.files[0])
