"""Measure the disk usage of an attempt: its directory, its container, and its deleted files that are still open.

    python -m mlebench_console.environment.runner.host.disk FOLDER

as root, in a container that shares an agent's process namespace, prints the bytes of its folders below FOLDER.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from mlebench_console.environment.container.processes import threads_with_own_files
from mlebench_console.environment.container.trees import walk
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.sandbox import Unreachable

_BLOCK = 512
_MOST_UNSEEN = 5
_STEPS_AT_ONCE = 256
_TURN_SECONDS = 0.5
_IN_MEMORY = ("devtmpfs", "hugetlbfs", "ramfs", "tmpfs")
_DELETED = b" (deleted)"

Refused = Callable[[str, OSError], None]


@dataclass(frozen=True)
class DiskUse:
    """A measurement.

    Attributes:
        bytes: on disk; a lower bound where measuring stopped because the limit was exceeded.
        unseen: entries that could not be read and so are not counted, a few at most.
        files: the entries of the attempt's directory, each of which takes one of the disk's inodes.
    """

    bytes: int
    unseen: tuple[str, ...]
    files: int = field(default=0, compare=False)


class DiskMeter:
    """Measures the disk usage of one attempt on another thread, so that a million files delay no other attempt.

    Attributes:
        entries: the number of entries in its directory that the last measurement read, without those on a node's disk.
    """

    def __init__(
        self,
        attempt: Path,
        elsewhere: Callable[[], int],
        worker: Executor,
        most: int | None = None,
        as_root: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Prepare.

        Args:
            attempt: the directory to measure; our recordings in it do not count.
            elsewhere: measures what the attempt has outside its directory; it may be slow, or raise Unreachable.
            worker: runs the measurement, in turns with those of other attempts.
            most: the limit; measuring stops when it is exceeded, so that it also ends
                in a tree that grows faster than it is read.
            as_root: measures the agent's own folders where there is a limit and some of them can't be read by
                this user; None where that is impossible.
        """
        self._attempt = attempt
        self._elsewhere = elsewhere
        self._worker = worker
        self._most = most
        self._as_root = as_root
        self.entries = 0
        self._sizes_in_directory = 0
        self._on_node: list[Path] = []
        self._steps: Generator[None, None, DiskUse | None] | None = None
        self._turn: Future[tuple[DiskUse | None] | None] | None = None

    def start(self, processes: Sequence[int] = (), *, whole: bool = True) -> bool:
        """Start a measurement, and return False if one is running.

        Args:
            processes: those that may have files open.
            whole: whether to measure the shared file system again too, which slows down those that share it.
        """
        if self._steps is not None:
            return False
        self._steps = self._measure(processes, whole=whole)
        self._turn = self._worker.submit(_measure_for_a_turn, self._steps)
        return True

    def take(self) -> DiskUse | None:
        """Return a measurement that was completed since the last call; None where there is none.

        Raises:
            Exception: it has failed; `start` begins another one.
        """
        if self._steps is None or self._turn is None or not self._turn.done():
            return None
        steps, self._steps = self._steps, None
        ended = self._turn.result()
        if ended is None:
            self._steps = steps
            self._turn = self._worker.submit(_measure_for_a_turn, steps)
            return None
        return ended[0]

    def _measure(self, processes: Sequence[int], *, whole: bool) -> Generator[None, None, DiskUse | None]:
        """Add up all sizes, in steps of one file each."""
        unseen: list[str] = []

        def refused(place: str, error: OSError) -> None:
            if len(unseen) < _MOST_UNSEEN:
                unseen.append(f"{place}: {error.strerror or error}")

        if whole:
            self.entries = self._sizes_in_directory = 0
            self._on_node = []
        total, files = self._sizes_in_directory, 0 if whole else self.entries
        between_hosts = _sizes_in_directory(self._attempt, refused, self._on_node) if whole else ()
        on_node = chain(_sizes_of_deleted(processes, refused), _sizes_below(self._on_node, refused))
        for size, is_on_node in chain(
            ((size, False) for size in between_hosts), ((size, True) for size in on_node)
        ):
            total += size
            files += 1
            if not is_on_node:
                self.entries += 1
                self._sizes_in_directory += size
            if self._most is not None and total > self._most:
                return DiskUse(total, tuple(unseen), files)
            yield
        try:
            seen_by_root = self._as_root() if unseen and self._most is not None else None
            if seen_by_root is not None:
                total, unseen = max(total, seen_by_root), []
            return DiskUse(total + self._elsewhere(), tuple(unseen), files)
        except Unreachable:
            return None  # an incomplete sum would look complete


def _measure_for_a_turn(steps: Generator[None, None, DiskUse | None]) -> tuple[DiskUse | None] | None:
    """Measure for a turn, and return the result in a tuple, or None if it takes another turn."""
    give_up = time.monotonic() + _TURN_SECONDS
    while True:
        try:
            for _ in range(_STEPS_AT_ONCE):
                next(steps)
        except StopIteration as end:
            return (end.value,)
        if time.monotonic() > give_up:
            return None


# Recordings, which the agent neither writes nor sees, and data that it only reads.
_OURS = (protocol.RECORDED_CALLS, protocol.DATASET, protocol.RESERVE)
_COPIES = (protocol.SNAPSHOTS, protocol.CODE_SNAPSHOTS)


def _sizes_in_directory(attempt: Path, refused: Refused, on_node: list[Path]) -> Iterator[int]:
    """Yield the bytes of each entry below an attempt's directory, and note its folders on a node's own disk."""
    below: list[Path] = []
    for place in sorted(attempt.iterdir()) if attempt.is_dir() else ():
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        if place.name in _OURS:
            continue
        yield found.st_blocks * _BLOCK
        if place.name in protocol.ON_THE_NODE and stat.S_ISLNK(found.st_mode):
            on_node.append(place.resolve())  # as a job of a batch system has them
        elif stat.S_ISDIR(found.st_mode) and place.name not in _COPIES:
            below.append(place)
    yield from _sizes_below(below, refused)


def _sizes_below(places: Sequence[Path], refused: Refused) -> Iterator[int]:
    """Yield the bytes of each entry below some folders; a file with several names is counted once."""
    counted: set[tuple[int, int]] = set()
    for place in places:
        for entry in walk(place, refused):
            status = entry.status
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                file = (status.st_dev, status.st_ino)
                if file in counted:
                    continue
                counted.add(file)
            yield status.st_blocks * _BLOCK


class WriteMeter:
    """Adds up what the processes of an attempt may have written, as the kernel counts it on their own host.

    What a process has counted goes to its parent when that waits for it. So nothing is missing but the work of
    processes for which nobody waited, and what is reserved and never written.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._total = 0

    def take(self, processes: Sequence[int]) -> int | None:
        """Return how many bytes these have written at most since the first look; None where one can't be looked at."""
        found: dict[int, int] = {}
        for process in processes:
            try:
                counters = dict(
                    line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines()
                )
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except PermissionError:
                return None
            found[process] = max(int(counters["wchar"]), int(counters["write_bytes"]))
        self._total += sum(max(0, count - self._last.get(process, 0)) for process, count in found.items())
        self._last = found
        return self._total


def _sizes_of_deleted(processes: Sequence[int], refused: Refused) -> Iterator[int]:
    """Yield the bytes of each deleted file on disk that a process still has open or mapped."""
    counted: set[tuple[int, int]] = set()
    for process in processes:
        try:
            for thread in threads_with_own_files(process):
                in_memory = _devices_in_memory(thread)
                for file, size in chain(_deleted_and_open(thread), _deleted_and_mapped(thread)):
                    if file[0] not in in_memory and file not in counted:
                        counted.add(file)
                        yield size
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError as error:
            refused(f"open files of process {process}", error)


def _deleted_and_open(process: Path) -> Iterator[tuple[tuple[int, int], int]]:
    for entry in os.scandir(process / "fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found = os.stat(entry.path)  # noqa: PTH116 - some hundred times a look
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                yield (found.st_dev, found.st_ino), found.st_blocks * _BLOCK


def _deleted_and_mapped(process: Path) -> Iterator[tuple[tuple[int, int], int]]:
    for line in (process / "maps").read_bytes().splitlines():
        if not line.endswith(_DELETED):
            continue
        addresses, _, _, device, inode, _ = line.split(maxsplit=5)
        try:
            found = (process / "map_files" / addresses.decode()).stat()
        except OSError:
            # Only root may stat the file; the size of the mapping is visible to its owner too.
            start, end = (int(address, 16) for address in addresses.split(b"-"))
            major, minor = (int(number, 16) for number in device.split(b":"))
            yield (os.makedev(major, minor), int(inode)), end - start
        else:
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                yield (found.st_dev, found.st_ino), found.st_blocks * _BLOCK


def _devices_in_memory(process: Path) -> set[int]:
    """Return the devices of file systems in memory that a process sees: the kernel's own, and mounted ones."""
    own = os.memfd_create("device")
    try:
        found = {os.fstat(own).st_dev}
    finally:
        os.close(own)
    for line in (process / "mountinfo").read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] in _IN_MEMORY:
            major, _, minor = before.split(" ", 3)[2].partition(":")
            found.add(os.makedev(int(major), int(minor)))
    return found


def main() -> None:
    """Print the bytes of the agent's folders and deleted files."""
    processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names are enough
    sizes = chain(_sizes_of_deleted(processes, _ignore), _sizes_in_directory(Path(sys.argv[1]), _ignore, []))
    sys.stdout.write(f"{sum(sizes)}\n")


def _ignore(_place: str, _error: OSError) -> None:
    """Ignore what not even root can read: it was moved, or its process has ended."""


if __name__ == "__main__":
    main()
