"""A host's own copies of datasets and images: made once for all its attempts, kept while one uses them.

Each has a name made of its digest, and beside it in the store's folder:

    <name>           a whole copy, a file or a folder, renamed when it was whole
    <name>.partial   one that is being made, or whose maker has died
    <name>.work      locked by who makes, mends or removes it
    <name>.lease     locked, together with others, by all that use it
    <name>.progress  how much of it is there while it is being made

The kernel drops these locks with their holder, so that whatever is killed, the next one goes on: a host's own disk is
no file system between hosts, where that could not be relied on.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from foundation import files, folders, locks
from foundation.locks import FileLock
from foundation.problems import EnvironmentProblem
from foundation.text import gigabytes

# Of a host's disk, what copies leave to the agents.
KEPT_FREE_BYTES = 1 << 30
LOOK_SECONDS = 0.5
_BLOCK = 1 << 20
_UNUSED_SECONDS = 14 * 86_400
_WORK, _LEASE, _PARTIAL, _PROGRESS = ".work", ".lease", ".partial", ".progress"
_ROOM = "room.work"


def make_store(folder: Path) -> Path:
    """Make the folder of a store, in one of this user's own.

    Raises:
        EnvironmentProblem: what is there belongs to somebody else.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for place in (folder.parent, folder):  # on a node it may be below a folder that all write to
        if place.exists() and place.stat().st_uid != os.getuid():
            why = "it belongs to somebody else, who could change what lies there"
            raise EnvironmentProblem(f"{place} can't be used", why, "Give the profile another scratch.")
    folders.make_own(folder)
    return folder


def store_of_node(scratch: Path) -> Path:
    """Make the folder of the store that all jobs of this user share on a node.

    Raises:
        EnvironmentProblem: what is there belongs to somebody else.
    """
    folders.make_own(scratch / f"mlebench-{os.getuid()}")
    return make_store(scratch / f"mlebench-{os.getuid()}" / "store")


class Copy:
    """One copy in a store: there, or about to be.

    Attributes:
        place: where it is when it is whole.
        partial: where it is made.
    """

    def __init__(self, store: Path, name: str) -> None:
        """Prepare; nothing is looked at yet."""
        self._store = store
        self.place = store / name
        self.partial = store / (name + _PARTIAL)
        self._lease: int | None = None

    def keep(self, wait: Callable[[], None]) -> None:
        """Have nobody remove it until it is let go, or this process has ended."""
        path = self._beside(_LEASE)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            while not _locks(descriptor, fcntl.LOCK_SH):
                wait()
                time.sleep(LOOK_SECONDS)
            os.utime(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._lease = descriptor

    def let_go(self) -> None:
        """Let it be removed when room is needed."""
        if self._lease is not None:
            os.close(self._lease)
            self._lease = None

    @contextmanager
    def working(self, wait: Callable[[], None]) -> Iterator[None]:
        """Be the only one that makes, mends or removes it, after whoever does so now."""
        with _holding(self._beside(_WORK), wait):
            yield

    @contextmanager
    def making(self, needed: int, keep_free: int, wait: Callable[[], None]) -> Iterator[None]:
        """Make room for what is to be put into `partial`, and count on it until that is there.

        Raises:
            EnvironmentProblem: there is not enough.
        """
        remove(self.partial)  # of one that was killed
        with _holding(self._store / _ROOM, wait):
            _make_room(self._store, self.place.name, needed + keep_free)
            # Under the same lock, so that no two count on the same room.
            self.note(0, needed)
        try:
            yield
        finally:
            self._beside(_PROGRESS).unlink(missing_ok=True)

    def note(self, done: int, total: int) -> None:
        """Write down how much is there of how much."""
        files.write_json(self._beside(_PROGRESS), [done, total], durable=False)

    def progress(self) -> tuple[int, int] | None:
        """Read how much is there of how much; None where nobody makes it."""
        return _progress(self._beside(_PROGRESS))

    def _beside(self, suffix: str) -> Path:
        return self._store / (self.place.name + suffix)


def copied(source: Path, target: Path, count: Callable[[int], None]) -> tuple[int, str]:
    """Copy a file, which nobody can write then; returns how many bytes were read and their SHA-256."""
    digest, size = hashlib.sha256(), 0
    with ExitStack() as opened:
        stream = opened.enter_context(source.open("rb", buffering=0))
        count(0)  # opening may have taken so long that nobody wants it any more, and others make the same
        sink = opened.enter_context(target.open("xb", buffering=0))
        while True:
            with _naming(source):
                block = stream.read(_BLOCK)
            if not block:
                break
            digest.update(block)
            with _naming(target):
                _write_all(sink, block)
            size += len(block)
            count(len(block))
        os.fchmod(sink.fileno(), 0o444)
    return size, digest.hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder.

    Raises:
        EnvironmentProblem: something of it is left.
    """
    if left := files.remove_tree(path):
        raise EnvironmentProblem(f"{path} can't be removed", "; ".join(left))


def _write_all(sink: FileIO, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[sink.write(view) :]


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let what goes wrong with an open file bear its name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _make_room(store: Path, name: str, needed: int) -> None:
    """Remove what has not been used for long, then what was not used for longest until there is room.

    Raises:
        EnvironmentProblem: there is not enough.
    """
    leases = [path for path in store.iterdir() if path.suffix == _LEASE and path.stem != name]
    used_at = {path.stem: path.stat().st_mtime for path in leases}
    others = sorted(used_at, key=lambda other: used_at[other])
    in_use = 0
    for other in others:
        is_old = time.time() - used_at[other] > _UNUSED_SECONDS
        is_left = (store / (other + _PARTIAL)).exists() and not (store / other).exists()
        if is_old or is_left or _free_bytes(store, others) < needed:
            in_use += not _discard(store, other)
    if (free := _free_bytes(store, others)) < needed:
        missing = f"{gigabytes(needed)} are needed, {gigabytes(needed - free)} are missing"
        used = f"; of {len(others)} others there {in_use} are in use" if others else ""
        raise EnvironmentProblem(f"there is no room below {store}", missing + used)


def _free_bytes(store: Path, others: Sequence[str]) -> int:
    """Return what is free on the disk and not about to be filled by others."""
    found = os.statvfs(store)
    coming = (_progress(store / (name + _PROGRESS)) for name in others)
    return found.f_bavail * found.f_frsize - sum(total - done for done, total in filter(None, coming))


def _discard(store: Path, name: str) -> bool:
    """Remove a copy; False where somebody uses it, makes it or waits for it."""
    with FileLock(store / (name + _WORK)) as work:
        if not work.acquire():
            return False
        lease = os.open(store / (name + _LEASE), os.O_RDWR | os.O_CLOEXEC)
        try:
            if not _locks(lease, fcntl.LOCK_EX):
                return False
            partial = store / (name + _PARTIAL)
            remove(partial)
            if (store / name).exists():
                remove((store / name).replace(partial))
            (store / (name + _PROGRESS)).unlink(missing_ok=True)
        finally:
            os.close(lease)
    return True


def _locks(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _holding(path: Path, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock of this host, after whoever has it now."""
    with FileLock(path) as lock:
        while not lock.acquire(note=str(os.getpid())):
            wait()
            time.sleep(LOOK_SECONDS)
        yield


def _progress(path: Path) -> tuple[int, int] | None:
    try:
        done, total = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return (done, total) if locks.is_held(path.with_suffix(_WORK)) else None
