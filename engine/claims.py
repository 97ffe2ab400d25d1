"""Locks on datasets that work across hosts and users of a shared file system: files with an owner and a heartbeat.

Kernel locks are valid only on one host, on some network file systems only in one process. A claim is a file that only
one process can create; its owner touches it regularly, and a claim that was not touched for long, or whose owner is
known to be dead, may be taken over.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from mlebench_console.engine.space import naming_full_disks
from mlebench_console.foundation.problems import StateProblem

HEARTBEAT_SECONDS = 15.0
_STALE_SECONDS = 180.0
_MODE = 0o664
_TRIES = 5


class Claimed(StateProblem):
    """Another process has the claim."""

    code: ClassVar[str] = "claimed"


@dataclass(frozen=True)
class Owner:
    """The owner of a claim.

    Attributes:
        place: the host's boot and process namespace, within which `pid` is valid.
        started: when the process started, in kernel ticks, because process ids are reused.
    """

    token: str
    host: str
    place: str
    pid: int
    started: str


@contextmanager
def claimed(path: Path, what: str) -> Iterator[None]:
    """Hold the claim at `path` while the block runs.

    Raises:
        Claimed: another living process holds it.
    """
    pid = os.getpid()
    me = Owner(secrets.token_hex(8), socket.gethostname(), _place(), pid, _started(pid))
    _take(path, me, what)
    ended = threading.Event()
    heartbeat = threading.Thread(target=_keep_touching, args=(path, ended), daemon=True)
    heartbeat.start()
    try:
        yield
    finally:
        ended.set()
        heartbeat.join()
        if _read(path) == me:
            path.unlink(missing_ok=True)


@contextmanager
def claimed_folder(folder: Path, claim: Path, what: str) -> Iterator[None]:
    """Create a folder and hold its claim while the block runs; a full disk is reported with the folder.

    Raises:
        Claimed: another living process holds it.
        DiskFull: something, perhaps the claim itself, could not be written for lack of space.
    """
    with naming_full_disks(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with claimed(claim, what):
            yield


def _take(path: Path, me: Owner, what: str) -> None:
    own = path.with_name(f"{path.name}.{me.token}")
    try:
        own.write_text(json.dumps(asdict(me)))
        own.chmod(_MODE)
        for _ in range(_TRIES):
            try:
                os.link(own, path)  # atomic over NFS too, where exclusive creation was not always
                _remove_leftovers(path)
                return
            except FileExistsError:
                _clear(path, what)
    finally:
        own.unlink(missing_ok=True)
    raise Claimed("other processes work on it", f"{path} keeps changing owners", subject=what)


def _remove_leftovers(path: Path) -> None:
    """Remove files of processes that were killed while they took the claim."""
    for left in path.parent.glob(f"{path.name}.*"):
        with suppress(FileNotFoundError):  # another process removes its own
            if _age(left) >= _STALE_SECONDS and left.stat().st_nlink == 1:
                left.unlink()


def _clear(path: Path, what: str) -> None:
    """Remove a dead owner's claim."""
    owner = _read(path)
    if owner is None:
        if path.exists() and _age(path) < _STALE_SECONDS:
            raise Claimed(
                "another process works on it", f"{path} can't be read", "Try again later.", subject=what
            )
    elif not _is_dead(path, owner):
        raise Claimed(
            "another process works on it",
            f"process {owner.pid} on {owner.host} holds {path}",
            "Wait for it to end.",
            subject=what,
        )
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return  # another process was faster; the next try finds its claim
    if _read(aside) != owner:  # another process has replaced the dead one's claim meanwhile: put it back
        # two may have taken over at once; each compares its token with the file, which names the one that stays
        with suppress(FileExistsError):
            os.link(aside, path)
    aside.unlink()


def _is_dead(path: Path, owner: Owner) -> bool:
    if owner.place == _place():
        return _started(owner.pid) != owner.started
    return _age(path) > _STALE_SECONDS


def _age(path: Path) -> float:
    """Return how long ago a file was touched, by the file system's clock, which all hosts share."""
    probe = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    probe.touch()
    try:
        return probe.stat().st_mtime - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
    finally:
        probe.unlink()


def _keep_touching(path: Path, ended: threading.Event) -> None:
    while not ended.wait(HEARTBEAT_SECONDS):
        with suppress(OSError):  # the file system hangs or the claim was taken over: the release finds out
            os.utime(path)


def _read(path: Path) -> Owner | None:
    try:
        return Owner(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _place() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"


def _started(pid: int) -> str:
    """Return when a process started; empty if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return text.rpartition(")")[2].split()[19]
