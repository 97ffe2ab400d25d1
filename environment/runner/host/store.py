"""A host's store: its own copies of datasets and images, each made once for all attempts and kept while one uses it.

Each copy has a name made of its digest, and beside it in the store's folder:

    <name>           a complete copy, a file or a folder, renamed when it was complete
    <name>.partial   a copy that is being made, or whose maker was killed
    <name>.work      locked by whoever makes, repairs or removes it
    <name>.lease     locked, shared, by all that use it
    <name>.progress  how many of its bytes are there while it is being made

The kernel releases these locks when their holder dies, so that the next one continues after any kill. They are reliable
because the store is on the host's own disk, not on a file system that hosts share.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from mlebench_console.environment.container import trees
from mlebench_console.foundation import files, folders, locks
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import EnvironmentProblem
from mlebench_console.foundation.text import gigabytes

# Free space on a host's disk that copies leave to the agents.
KEPT_FREE_BYTES = 1 << 30
POLL_SECONDS = 0.5
_BLOCK_BYTES = 1 << 20
_UNUSED_SECONDS = 14 * 86_400
_WORK, _LEASE, _PARTIAL, _PROGRESS = ".work", ".lease", ".partial", ".progress"
_SPACE_LOCK = "room.work"


def _keep_waiting() -> None:
    """Do nothing between the attempts to acquire a lock."""


class NoRoom(EnvironmentProblem):
    """A host's disk has not enough space for a copy."""


def make_store(folder: Path) -> Path:
    """Make the folder of a store, below a folder of this user.

    Raises:
        EnvironmentProblem: one of them belongs to another user.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for place in (folder.parent, folder):  # on a node it may be in a folder where all users can write
        if place.exists() and place.stat().st_uid != os.getuid():
            why = "it belongs to another user, who could change its files"
            raise EnvironmentProblem(f"{place} can't be used", why, "Give the profile another scratch.")
    folders.make_own(folder)
    return folder


def store_of_node(scratch: Path) -> Path:
    """Make the folder of the store that all jobs of this user share on a node."""
    return make_store(folders.own_folder_in(scratch, f"mlebench-{os.getuid()}") / "store")


class Copy:
    """One copy in a store, complete or still to be made.

    Attributes:
        place: its path when it is complete.
        partial: its path while it is being made.
    """

    def __init__(self, store: Path, name: str) -> None:
        """Prepare, without reading the disk."""
        self._store = store
        self.place = store / name
        self.partial = store / (name + _PARTIAL)
        self._lease = FileLock(self._beside(_LEASE), follow_links=False)

    def acquire_lease(self, on_wait: Callable[[], None] = _keep_waiting) -> None:
        """Keep others from removing it until the lease is released or this process ends."""
        _poll(lambda: self._lease.acquire(shared=True), on_wait)
        os.utime(self._lease.descriptor)  # by which the least recently used copies are removed first

    def release_lease(self) -> None:
        """Allow others to remove it when they need space."""
        self._lease.release()

    @contextmanager
    def locked(self, on_wait: Callable[[], None] = _keep_waiting) -> Iterator[None]:
        """Hold the lock for making, repairing and removing it."""
        with _lock(self._beside(_WORK), on_wait):
            yield

    @contextmanager
    def reserving(
        self, needed: int, keep_free: int, on_wait: Callable[[], None] = _keep_waiting
    ) -> Iterator[None]:
        """Free and reserve space for what is written to `partial` in this context.

        Raises:
            NoRoom: there is not enough.
        """
        remove(self.partial)  # of a maker that was killed
        with _lock(self._store / _SPACE_LOCK, on_wait):
            _free_space(self._store, self.place.name, needed + keep_free)
            # Under the same lock, so that no two reserve the same space.
            self.write_progress(0, needed)
        try:
            yield
        finally:
            self._beside(_PROGRESS).unlink(missing_ok=True)

    def write_progress(self, done: int, total: int) -> None:
        """Write for others how many of its bytes are there."""
        files.write_json(self._beside(_PROGRESS), [done, total], durable=False)

    def read_progress(self) -> tuple[int, int] | None:
        """Return how many of its bytes are there, and of how many; None if it is not being made."""
        return _read_progress(self._beside(_PROGRESS))

    def _beside(self, suffix: str) -> Path:
        return self._store / (self.place.name + suffix)


def copy_file(source: Path, target: Path, on_bytes: Callable[[int], None]) -> tuple[int, str]:
    """Copy a file, make the copy read-only, and return how many bytes were read and their SHA-256.

    `on_bytes` gets the size of each block, and ends the copying by raising.
    """
    digest, size = hashlib.sha256(), 0
    with ExitStack() as opened:
        stream = opened.enter_context(source.open("rb", buffering=0))
        # Opening may have taken so long that the copy was cancelled, and another process makes it.
        on_bytes(0)
        sink = opened.enter_context(target.open("xb", buffering=0))
        while True:
            with _naming_in_errors(source):
                block = stream.read(_BLOCK_BYTES)
            if not block:
                break
            digest.update(block)
            with _naming_in_errors(target):
                _write_all(sink, block)
            size += len(block)
            on_bytes(len(block))
        os.fchmod(sink.fileno(), 0o444)
    return size, digest.hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a folder.

    Raises:
        EnvironmentProblem: a part of it can't be removed.
    """
    if left := trees.remove_tree(path):
        raise EnvironmentProblem(f"{path} can't be removed", "; ".join(left))


def _write_all(sink: FileIO, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[sink.write(view) :]


@contextmanager
def _naming_in_errors(path: Path) -> Iterator[None]:
    """Add the path to errors of an open file, which don't contain it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _free_space(store: Path, name: str, needed: int) -> None:
    """Remove copies that were unused for long, then the least recently used ones until there is enough space.

    Raises:
        NoRoom: there is not enough.
    """
    leases = [path for path in store.iterdir() if path.suffix == _LEASE and path.stem != name]
    used_at = {path.stem: path.stat().st_mtime for path in leases}
    others = sorted(used_at, key=lambda other: used_at[other])
    in_use = 0
    for other in others:
        is_old = time.time() - used_at[other] > _UNUSED_SECONDS
        is_abandoned = (store / (other + _PARTIAL)).exists() and not (store / other).exists()
        if is_old or is_abandoned or _free_bytes(store, others) < needed:
            in_use += not _discard(store, other)
    if (free := _free_bytes(store, others)) < needed:
        missing = f"{gigabytes(needed)} are needed, {gigabytes(needed - free)} are missing"
        used = f"; of {len(others)} others there {in_use} are in use" if others else ""
        raise NoRoom(f"there is no room below {store}", missing + used)


def _free_bytes(store: Path, others: Sequence[str]) -> int:
    """Return the free bytes on the disk, without those that are reserved for others."""
    found = os.statvfs(store)
    reserved = (_read_progress(store / (name + _PROGRESS)) for name in others)
    return found.f_bavail * found.f_frsize - sum(total - done for done, total in filter(None, reserved))


def _discard(store: Path, name: str) -> bool:
    """Remove a copy, and return False if a process uses it, makes it or waits for it."""
    with FileLock(store / (name + _WORK)) as work, FileLock(store / (name + _LEASE)) as lease:
        if not (work.acquire() and lease.acquire()):
            return False
        partial = store / (name + _PARTIAL)
        remove(partial)
        if (store / name).exists():
            remove((store / name).replace(partial))
        (store / (name + _PROGRESS)).unlink(missing_ok=True)
    return True


@contextmanager
def _lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock of this host."""
    with FileLock(path) as lock:
        _poll(lambda: lock.acquire(note=str(os.getpid())), on_wait)
        yield


def _poll(acquire: Callable[[], bool], on_wait: Callable[[], None]) -> None:
    """Wait until something is acquired, calling `on_wait` between the attempts, which may raise to stop waiting."""
    while not acquire():
        on_wait()
        time.sleep(POLL_SECONDS)


def _read_progress(path: Path) -> tuple[int, int] | None:
    try:
        done, total = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return (done, total) if locks.is_held(path.with_suffix(_WORK)) else None
