"""Secrets of an attempt on their way to its main process: a file in memory, written once, read once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environment.runner import protocol
from foundation import files, folders
from foundation.locks import FileLock
from foundation.problems import DataProblem, EnvironmentProblem

_MAX_BYTES = 1 << 20
_LAUNCH, _KEYS, _HIDDEN = ".json", ".keys.json", ".hidden.json"
_KINDS = (_LAUNCH, _KEYS, _HIDDEN)
_JOB = ".job"
_SENT = "secrets.json"
# What is written in memory is whole long before, unless who wrote it was killed.
_WRITING_SECONDS = 300.0
_DEPTH = len(Path(protocol.attempt_folder("sweep", "competition", 1, 1, "token")).parts)


@dataclass(frozen=True)
class SecretLaunch:
    """A start script's variables with the secrets in them, and what of it is kept out of its log."""

    variables: tuple[tuple[str, str], ...] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def leave(attempt: Path, launch: SecretLaunch) -> None:
    """Leave the secrets of an attempt for its main process, and their values for its runner to keep out of copies."""
    _leave(attempt, _HIDDEN, {"secrets": launch.secrets})
    _leave(attempt, _LAUNCH, {"variables": dict(launch.variables), "secrets": launch.secrets})


def take(attempt: Path) -> SecretLaunch:
    """Take the secrets of an attempt; afterwards they are in this process's memory alone.

    Raises:
        EnvironmentProblem: they are not there, as after a reboot.
    """
    place = _left(attempt, _LAUNCH)
    with files.reading_untrusted(place, max_bytes=_MAX_BYTES) as stream:
        values = json.load(stream)
    place.unlink()
    return SecretLaunch(tuple(values["variables"].items()), tuple(values["secrets"]))


def read_hidden(attempt: Path) -> tuple[str, ...]:
    """Read what is kept out of copies of an attempt's files; it stays until the attempt has ended.

    Raises:
        EnvironmentProblem: it is not there, as after a reboot.
    """
    with files.reading_untrusted(_left(attempt, _HIDDEN), max_bytes=_MAX_BYTES) as stream:
        values = json.load(stream)
    return tuple(str(value) for value in values["secrets"])


def leave_keys(attempt: Path, keys: Mapping[str, str]) -> None:
    """Leave the keys of an attempt's model providers, by their variables, for its gateway alone."""
    _leave(attempt, _KEYS, {"keys": dict(keys)})


def read_keys(attempt: Path) -> dict[str, str]:
    """Read the keys of an attempt's model providers; they stay until it has ended, for a gateway that follows.

    Raises:
        EnvironmentProblem: they are not there, as after a reboot.
    """
    with files.reading_untrusted(_left(attempt, _KEYS), max_bytes=_MAX_BYTES) as stream:
        values = json.load(stream)
    return {str(name): str(key) for name, key in values["keys"].items()}


def send(attempt: Path, folder: Path) -> None:
    """Move what was left for an attempt into a file of ours alone in its directory, for a job on another host."""
    _remove_half_sent(folder)
    left = {kind: place.read_text() for kind in _KINDS if (place := _place(attempt, kind)).exists()}
    if left:
        with files.replacing(folder / _SENT) as stream:
            os.fchmod(stream.fileno(), 0o600)  # before anything is in it
            stream.write(json.dumps(left).encode())
    discard(attempt)


def withdraw(folder: Path) -> None:
    """Remove what was sent for an attempt that no job will take."""
    (folder / _SENT).unlink(missing_ok=True)
    _remove_half_sent(folder)


def _remove_half_sent(folder: Path) -> None:
    """Remove what an engine that was killed has half written; there is but one, and this is it."""
    for left in folder.glob(f".{_SENT}.*{files.PARTIAL_SUFFIX}"):
        left.unlink(missing_ok=True)


def receive(folder: Path) -> FileLock | None:
    """Take what was sent to this host, once: it is in memory here afterwards, and nowhere else.

    Returns:
        The lock for as long as which it stays there, whatever ends this process; None where nothing was sent.
    """
    sent = folder / _SENT
    if not sent.exists():
        return None
    with files.reading_untrusted(sent, max_bytes=_MAX_BYTES) as stream:
        left = json.load(stream)
    lock = FileLock(_place(folder, _JOB))
    while not (lock.acquire_soon() and lock.is_in_place()):
        lock.release()  # it was removed in between, as that of a job that is over
    for kind, text in left.items():
        files.write_text(_place(folder, kind), text, durable=False)
    sent.unlink()
    return lock


def path_of(attempt: Path) -> Path:
    """Find the secrets of an attempt, for a container's main process, which empties the file.

    Raises:
        EnvironmentProblem: they are not there, as after a reboot.
    """
    place = _left(attempt, _LAUNCH)
    # Its group is the engine's own; a container's root, which may have no other right, is put into it.
    place.chmod(0o660)
    return place


def discard(attempt: Path) -> None:
    """Remove secrets that no main process took, what is kept out of copies, and the keys of model providers."""
    for kind in (*_KINDS, _JOB):
        _place(attempt, kind).unlink(missing_ok=True)


def discard_orphans() -> None:
    """Remove what was left for attempts that are over, or whose state is gone: no kill keeps a secret for ever.

    Raises:
        EnvironmentProblem: the folder in memory belongs to somebody else.
        OSError: something in it can't be removed.
    """
    for job in memory_folder().glob(f"*{_JOB}"):
        with FileLock(job) as lock:
            if lock.acquire():
                for kind in (*_KINDS, _JOB):
                    job.with_name(job.stem + kind).unlink(missing_ok=True)
    for left in memory_folder().glob(f".*{files.PARTIAL_SUFFIX}"):
        with suppress(FileNotFoundError):
            if time.time() - left.stat().st_mtime > _WRITING_SECONDS:
                left.unlink()
    for place in memory_folder().glob("*.json"):
        if place.with_name(place.name.partition(".")[0] + _JOB).exists():
            continue  # its job lives here, and the state that it is of may be on another host
        try:
            with files.reading_untrusted(place, max_bytes=_MAX_BYTES) as stream:
                attempt = Path(json.load(stream)["attempt"])
            state_dir = attempt.parents[_DEPTH - 1]
        except (DataProblem, ValueError, LookupError, TypeError):
            continue  # emptied by whoever has taken it, or being taken now
        # A run directory may be out of reach for a while, on a shared file system; the state is on this host.
        if (attempt / protocol.EXIT).exists() or not state_dir.exists():
            place.unlink(missing_ok=True)


def _leave(attempt: Path, kind: str, values: Mapping[str, Any]) -> None:
    files.write_json(_place(attempt, kind), {"attempt": str(attempt), **values}, durable=False)


def _left(attempt: Path, kind: str) -> Path:
    place = _place(attempt, kind)
    if not place.exists():
        raise EnvironmentProblem("the agent's secrets are gone", "they are kept in memory until it starts")
    return place


def _place(attempt: Path, kind: str) -> Path:
    return memory_folder() / f"{hashlib.sha256(os.fsencode(attempt)).hexdigest()[:32]}{kind}"


def rate_file(url: str, key: str, alone: str = "") -> Path:
    """Name the file by which gateways of this host share what a provider lets through for one key.

    It is for all of them, or for the one that is `alone` with what was set apart for it.
    """
    return memory_folder() / f"{hashlib.sha256(f'{url} {key} {alone}'.encode()).hexdigest()[:32]}.rate"


def memory_folder() -> Path:
    """Return the folder in memory that is this user's alone.

    Raises:
        EnvironmentProblem: it belongs to somebody else.
    """
    memory = Path("/dev/shm")  # noqa: S108 - shared memory: it never reaches a disk
    base = memory if memory.is_dir() else Path(tempfile.gettempdir())
    folder = base / f"mlebench-console-{os.getuid()}"
    folders.make_own(folder)
    return folder
