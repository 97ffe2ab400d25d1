"""What an attempt holds on disk: in its directory, in its container, and in files that have no name any more.

    python -m environment.runner.host.disk FOLDER

as root in a container that sees an agent's processes prints the bytes of its folders, which are below FOLDER.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from environment.container.trees import walk
from environment.runner import protocol
from environment.runner.sandbox import Unreachable

_BLOCK = 512
_MOST_UNSEEN = 5
_STEPS_AT_ONCE = 256
_TURN_SECONDS = 0.5
_IN_MEMORY = ("devtmpfs", "hugetlbfs", "ramfs", "tmpfs")
_DELETED = b" (deleted)"

Refused = Callable[[str, OSError], None]


@dataclass(frozen=True)
class DiskUse:
    """What was measured.

    Attributes:
        bytes: on disk; at least these when measuring stopped because that is over the limit already.
        unseen: what could not be looked at and so is not counted, a few at most.
    """

    bytes: int
    unseen: tuple[str, ...]


class DiskMeter:
    """Measures what one attempt holds on disk, on another thread: a million files delay no other attempt.

    Attributes:
        entries: how many were looked at in its directory the last time, those on a node's own disk not counted.
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
            attempt: the directory to be measured; snapshots and recordings in it are ours and do not count.
            elsewhere: measures what the attempt holds in other places; it may be slow, or Unreachable.
            worker: does the measuring, in turns with that of others.
            most: what the attempt may hold; measuring stops when it is over that, so that it ends also
                in a tree that grows faster than it is walked through.
            as_root: measures the agent's own folders where there is a limit to hold and some of it is closed
                to us; None where it can't.
        """
        self._attempt = attempt
        self._elsewhere = elsewhere
        self._worker = worker
        self._most = most
        self._as_root = as_root
        self.entries = 0
        self._between_hosts = 0
        self._on_node: list[Path] = []
        self._steps: Generator[None, None, DiskUse | None] | None = None
        self._turn: Future[tuple[DiskUse | None] | None] | None = None

    def start(self, processes: Sequence[int] = (), *, whole: bool = True) -> bool:
        """Measure; False where that is still being done.

        Args:
            processes: those that may hold files open.
            whole: whether also what lies between hosts is looked at anew, which costs those that share it.
        """
        if self._steps is not None:
            return False
        self._steps = self._measure(processes, whole=whole)
        self._turn = self._worker.submit(_go_on, self._steps)
        return True

    def take(self) -> DiskUse | None:
        """Return a measurement that has ended since the last call; None where there is none.

        Raises:
            Exception: it has failed; the next one begins anew.
        """
        if self._steps is None or self._turn is None or not self._turn.done():
            return None
        steps, self._steps = self._steps, None
        ended = self._turn.result()
        if ended is None:
            self._steps = steps
            self._turn = self._worker.submit(_go_on, steps)
            return None
        return ended[0]

    def _measure(self, processes: Sequence[int], *, whole: bool) -> Generator[None, None, DiskUse | None]:
        """Add everything up, in steps of one file each."""
        unseen: list[str] = []

        def refused(place: str, error: OSError) -> None:
            if len(unseen) < _MOST_UNSEEN:
                unseen.append(f"{place}: {error.strerror or error}")

        if whole:
            self.entries = self._between_hosts = 0
            self._on_node = []
        total = self._between_hosts
        between_hosts = _between_hosts(self._attempt, refused, self._on_node) if whole else ()
        on_node = chain(_without_a_name(processes, refused), _below_all(self._on_node, refused))
        for size, is_on_node in chain(
            ((size, False) for size in between_hosts), ((size, True) for size in on_node)
        ):
            total += size
            if not is_on_node:
                self.entries += 1
                self._between_hosts += size
            if self._most is not None and total > self._most:
                return DiskUse(total, tuple(unseen))
            yield
        try:
            seen_by_root = self._as_root() if unseen and self._most is not None else None
            if seen_by_root is not None:
                total, unseen = max(total, seen_by_root), []
            return DiskUse(total + self._elsewhere(), tuple(unseen))
        except Unreachable:
            return None  # half of it would look like the whole


def _go_on(steps: Generator[None, None, DiskUse | None]) -> tuple[DiskUse | None] | None:
    """Measure for a turn; return what was found, or None when it takes another turn."""
    give_up = time.monotonic() + _TURN_SECONDS
    while True:
        try:
            for _ in range(_STEPS_AT_ONCE):
                next(steps)
        except StopIteration as end:
            return (end.value,)
        if time.monotonic() > give_up:
            return None


# What an operator has recorded or replayed, which the agent neither writes nor sees, and data that it only reads.
_OURS = (protocol.RECORDED_CALLS, protocol.REPLAY, protocol.DATASET)
_COPIES = (protocol.SNAPSHOTS, protocol.CODE_SNAPSHOTS)


def _between_hosts(attempt: Path, refused: Refused, on_node: list[Path]) -> Iterator[int]:
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
    yield from _below_all(below, refused)


def _below_all(places: Sequence[Path], refused: Refused) -> Iterator[int]:
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
                told = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except PermissionError:
                return None
            found[process] = max(int(told["wchar"]), int(told["write_bytes"]))
        self._total += sum(max(0, count - self._last.get(process, 0)) for process, count in found.items())
        self._last = found
        return self._total


def _without_a_name(processes: Sequence[int], refused: Refused) -> Iterator[int]:
    """Yield the bytes of each file that was deleted, but which a process has open or mapped; on disk, not in memory."""
    counted: set[tuple[int, int]] = set()
    for process in processes:
        folder = Path("/proc", str(process))
        try:
            in_memory = _devices_in_memory(folder)
            for file, size in chain(_opened(folder), _mapped(folder)):
                if file[0] not in in_memory and file not in counted:
                    counted.add(file)
                    yield size
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except PermissionError as error:
            refused(f"open files of process {process}", error)


def _opened(process: Path) -> Iterator[tuple[tuple[int, int], int]]:
    for entry in os.scandir(process / "fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found = os.stat(entry.path)  # noqa: PTH116 - some hundred times a look
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                yield (found.st_dev, found.st_ino), found.st_blocks * _BLOCK


def _mapped(process: Path) -> Iterator[tuple[tuple[int, int], int]]:
    for line in (process / "maps").read_bytes().splitlines():
        if not line.endswith(_DELETED):
            continue
        addresses, _, _, device, inode, _ = line.split(maxsplit=5)
        try:
            found = (process / "map_files" / addresses.decode()).stat()
        except OSError:
            # Only root may look at the file; what of it is mapped is known to its owner too.
            start, end = (int(address, 16) for address in addresses.split(b"-"))
            major, minor = (int(number, 16) for number in device.split(b":"))
            yield (os.makedev(major, minor), int(inode)), end - start
        else:
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                yield (found.st_dev, found.st_ino), found.st_blocks * _BLOCK


def _devices_in_memory(process: Path) -> set[int]:
    """Find the file systems that a process sees whose files are memory: the kernel's own, and mounted ones."""
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
    """Print what the agent's folders and deleted files hold."""
    processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names are enough
    sizes = chain(_without_a_name(processes, _pass_over), _between_hosts(Path(sys.argv[1]), _pass_over, []))
    sys.stdout.write(f"{sum(sizes)}\n")


def _pass_over(_place: str, _error: OSError) -> None:
    """Leave out what not even root can look at: it has been moved or ended meanwhile."""


if __name__ == "__main__":
    main()
