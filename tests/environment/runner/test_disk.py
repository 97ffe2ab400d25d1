"""What an attempt holds on disk is measured wherever an agent puts it, and goes on being measured."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlebench_console.environment.container.trees import TreeEntry, remove_tree
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.host.disk import DiskMeter, DiskUse
from mlebench_console.environment.runner.sandbox import Unreachable
from tests.engine.harness import eventually

MEGABYTE = 1 << 20


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    """A test's own folder, which must not lie in memory, as that is not counted."""
    return on_disk


@pytest.fixture
def worker() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as made:
        yield made


def measured(meter: DiskMeter, *processes: int) -> DiskUse:
    meter.start(processes)
    return ended(meter)


def ended(meter: DiskMeter) -> DiskUse:
    found = eventually(meter.take)
    assert found is not None
    return found


@pytest.fixture
def holds(worker: ThreadPoolExecutor) -> Callable[..., int]:
    def holds(folder: Path, *processes: int, most: int | None = None) -> int:
        use = measured(DiskMeter(folder, lambda: 0, worker, most), *processes)
        assert use.unseen == ()
        return use.bytes

    return holds


def test_files_of_all_folders_count_and_what_links_lead_to_does_not(
    tmp_path: Path, holds: Callable[..., int]
) -> None:
    attempt, other = tmp_path / "attempt", tmp_path / "other"
    (attempt / "code" / "er").mkdir(parents=True)
    other.mkdir()
    before = holds(attempt)
    (attempt / "code" / "er" / "file").write_bytes(b"x" * 100_000)
    (attempt / "run.json").write_bytes(b"x" * 100_000)
    (other / "file").write_bytes(b"x" * 100_000)
    (attempt / "code" / "link").symlink_to(other)
    (attempt / "logs").symlink_to(other)
    os.mkfifo(attempt / "code" / "pipe")
    assert 200_000 <= holds(attempt) - before < 250_000
    assert holds(tmp_path / "gone") == 0


def test_a_file_of_several_names_counts_once_and_our_snapshots_not_at_all(
    tmp_path: Path, holds: Callable[..., int]
) -> None:
    for name in (protocol.CODE, protocol.SUBMISSION, protocol.SNAPSHOTS, protocol.CODE_SNAPSHOTS):
        (tmp_path / name).mkdir()
    (tmp_path / protocol.CODE / "a").write_bytes(b"x" * MEGABYTE)
    (tmp_path / protocol.CODE / "b").hardlink_to(tmp_path / protocol.CODE / "a")
    (tmp_path / protocol.SUBMISSION / "c").hardlink_to(tmp_path / protocol.CODE / "a")
    (tmp_path / protocol.SNAPSHOTS / "1.csv").write_bytes(b"x" * MEGABYTE)
    (tmp_path / protocol.CODE_SNAPSHOTS / "object").write_bytes(b"x" * MEGABYTE)
    (tmp_path / protocol.RECORDED_CALLS).write_bytes(b"x" * MEGABYTE)
    assert MEGABYTE <= holds(tmp_path) < 1.5 * MEGABYTE


def test_what_lies_too_deep_for_any_path_counts(tmp_path: Path, holds: Callable[..., int]) -> None:
    (tmp_path / "code").mkdir()
    here = os.open(tmp_path / "code", os.O_RDONLY)
    for _ in range(1200):  # far over PATH_MAX, and over the number of files that a process may open
        os.mkdir("d" * 255, dir_fd=here)
        inside = os.open("d" * 255, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inside
    file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here)
    os.posix_fallocate(file, 0, 100 * MEGABYTE)
    os.close(file)
    os.close(here)
    try:
        assert holds(tmp_path) > 100 * MEGABYTE
    finally:
        assert remove_tree(tmp_path / "code") == []


def test_what_an_agent_closes_to_itself_counts_for_an_engine_without_root_too(tmp_path: Path) -> None:
    script = """
import os, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from mlebench_console.environment.runner.host.disk import DiskMeter
if os.getuid() == 0:
    os.setgid(1000), os.setuid(1000)
for mode in (0, 0o400, 0o444, 0o300):
    folder = Path("code", f"{mode:o}", "inner")
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * (1 << 20))
    (folder / "file").chmod(0)
    folder.chmod(mode)
    folder.parent.chmod(mode)
with ThreadPoolExecutor(1) as worker:
    meter = DiskMeter(Path("."), lambda: 0, worker)
    meter.start()
    while (found := meter.take()) is None:
        pass
print(found.bytes >> 20, found.unseen)
"""
    tmp_path.chmod(0o777)
    # By relative paths, since another user may not pass through the folders above.
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", "4 ()\n")


HOLD = """
import ctypes, mmap, os, sys, threading
name = sys.argv[1] + "/unlinked"
file = os.open(name, os.O_CREAT | os.O_RDWR)
os.posix_fallocate(file, 0, 8 << 20)
os.unlink(name)
if sys.argv[2] == "mapped":
    held = mmap.mmap(file, 8 << 20)
    os.close(file)
memory = os.memfd_create("memory")
os.posix_fallocate(memory, 0, 8 << 20)
system = ctypes.CDLL(None)
other_lives = threading.Event()
def live():
    if sys.argv[3] == "a thread's own":
        assert system.unshare(0x400) == 0  # CLONE_FILES: its table of open files is now a copy
    other_lives.set()
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=live).start()
other_lives.wait()
if sys.argv[3] == "a thread's own":
    os.close(file)
print("ready", flush=True)
if sys.argv[3] == "whose first thread has ended":
    system.syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("how", "process"),
    [
        ("open", "usual"),
        ("mapped", "usual"),
        ("open", "whose first thread has ended"),
        ("mapped", "whose first thread has ended"),
        ("open", "a thread's own"),
    ],
)
def test_a_deleted_file_that_a_process_holds_counts_and_memory_does_not(
    tmp_path: Path, holds: Callable[..., int], how: str, process: str
) -> None:
    (tmp_path / "code").mkdir()
    command = [sys.executable, "-c", HOLD, str(tmp_path / "code"), how, process]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        if process == "whose first thread has ended":
            first = Path(f"/proc/{holder.pid}/task/{holder.pid}/stat")
            eventually(lambda: " Z " in first.read_text())
        assert 8 * MEGABYTE <= holds(tmp_path, holder.pid) < 9 * MEGABYTE
        assert holds(tmp_path) < MEGABYTE
        holder.communicate()
    assert holds(tmp_path, holder.pid) < MEGABYTE


def test_what_can_not_be_read_for_whatever_reason_is_said(
    tmp_path: Path, worker: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_process: Path) -> set[int]:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("mlebench_console.environment.runner.host.disk._devices_in_memory", fails)
    seen = measured(DiskMeter(tmp_path, lambda: MEGABYTE, worker), os.getpid())
    assert seen == DiskUse(MEGABYTE, (f"open files of process {os.getpid()}: Invalid argument",))


def test_what_is_closed_to_us_is_left_to_root_to_measure(
    tmp_path: Path, worker: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_place: Path, refused: Callable[[str, OSError], None]) -> Iterator[TreeEntry]:
        refused("code/closed", PermissionError(13, "Permission denied"))
        return iter(())

    monkeypatch.setattr("mlebench_console.environment.runner.host.disk.walk", closed)
    (tmp_path / "code").mkdir()
    most = 10 * MEGABYTE
    seen = measured(DiskMeter(tmp_path, lambda: 1, worker, most, lambda: 5 * MEGABYTE))
    assert seen == DiskUse(5 * MEGABYTE + 1, ())
    unseen = measured(DiskMeter(tmp_path, lambda: 1, worker, most, lambda: None))
    assert unseen.bytes < MEGABYTE and unseen.unseen == ("code/closed: Permission denied",)


def test_measuring_ends_at_the_limit_in_a_tree_that_grows_while_it_is_measured(
    tmp_path: Path, holds: Callable[..., int]
) -> None:
    for number in range(2000):
        (tmp_path / "code" / str(number)).mkdir(parents=True)
    assert 100_000 < holds(tmp_path, most=100_000) < 200_000


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
    assert ended(meter) == DiskUse(1000, ())
    assert meter.take() is None


def test_a_measurement_that_fails_is_followed_by_another(tmp_path: Path, worker: ThreadPoolExecutor) -> None:
    answers: list[Exception | int] = [RuntimeError("no"), Unreachable("no", "daemon"), 5]

    def elsewhere() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    meter = DiskMeter(tmp_path, elsewhere, worker)
    meter.start()
    with pytest.raises(RuntimeError):
        ended(meter)
    found = None
    while found is None:
        meter.start()
        found = meter.take()
    assert found == DiskUse(5, ())
    assert answers == []


def test_large_trees_are_measured_in_turns(
    tmp_path: Path, worker: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlebench_console.environment.runner.host.disk._TURN_SECONDS", 0.0)
    for number in range(1000):
        (tmp_path / "code" / str(number)).mkdir(parents=True)
    large = DiskMeter(tmp_path, lambda: 0, worker)
    large.start()
    small = DiskMeter(tmp_path / "gone", lambda: 0, worker)
    assert measured(small).bytes == 0
    assert large.take() is None
    assert ended(large).bytes > 1000
