"""Locks between processes of one host, which the kernel releases when their holder dies.

Locks between hosts and users of a shared file system are in `engine.claims`.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

# In a state directory: what its engine has locked, and the status that it writes while it runs.
ENGINE_LOCK = "engine.lock"
ENGINE_STATUS = "engine.status.json"
_TRIES = 50
_TRY_SECONDS = 0.02


class FileLock:
    """A `flock` on a file; the file itself stays, and holds data or the name of its holder.

    The kernel releases the lock when the last descriptor is closed, so a killed holder never leaves a
    stale one. Child programs inherit it only if its descriptor is passed to them.
    """

    def __init__(self, path: Path, *, follow_links: bool = True) -> None:
        self.path = path
        self._flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
        self._descriptor: int | None = None

    def acquire(self, *, note: str | None = None, shared: bool = False, wait: bool = False) -> bool:
        """Take the lock, and return False if it is not free.

        Args:
            note: who holds it, written into the file; None leaves the content as it is.
            shared: hold it together with others that share it.
            wait: wait until it is free.
        """
        if self._descriptor is not None:
            return True
        descriptor = os.open(self.path, self._flags, 0o600)
        try:
            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(descriptor, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        try:
            if note is not None:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, note.encode(), 0)
        except OSError:
            os.close(descriptor)  # no lock without a note that identifies its holder
            raise
        self._descriptor = descriptor
        return True

    def acquire_soon(self) -> bool:
        """Take the lock with this process's id as note, retrying, since `is_held` takes the lock for a moment."""
        for _ in range(_TRIES):
            if self.acquire(note=str(os.getpid())):
                return True
            time.sleep(_TRY_SECONDS)
        return False

    @property
    def descriptor(self) -> int:
        """The descriptor that holds the lock; a child program that inherits it holds the lock as well."""
        assert self._descriptor is not None  # the lock must have been acquired
        return self._descriptor

    def is_in_place(self) -> bool:
        """Return whether the lock's file is still at its path, not removed or replaced."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self.descriptor))

    def release(self) -> None:
        """Release the lock; harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        """Enter with the lock already acquired by the caller."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release the lock, also after an exception."""
        self.release()


def signal_holder(path: Path, number: int) -> None:
    """Signal the process that holds the lock at `path`, by the id that it has noted there; no other can have it."""
    text = path.read_text().strip()
    if text.isdigit() and is_held(path):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(int(text), number)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock at `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
