"""Transfer of an attempt's secrets to its main process: files in memory, written once and read once."""

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

from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import files, folders
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem

_MAX_BYTES = 1 << 20
_LAUNCH, _KEYS, _HIDDEN = ".json", ".keys.json", ".hidden.json"
_KINDS = (_LAUNCH, _KEYS, _HIDDEN)
_JOB = ".job"
_SENT = "secrets.json"
# Writing to memory takes far less, so an older partial file is that of a killed writer.
_WRITING_SECONDS = 300.0
_DEPTH = len(Path(protocol.attempt_folder("sweep", "competition", 1, 1, "token")).parts)


@dataclass(frozen=True)
class SecretLaunch:
    """A start script's variables including secrets, and the values to keep out of its log."""

    variables: tuple[tuple[str, str], ...] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def leave(attempt: Path, launch: SecretLaunch) -> None:
    """Store the secrets of an attempt for its main process, and their values for its runner to keep out of copies."""
    _leave(attempt, _HIDDEN, {"secrets": launch.secrets})
    _leave(attempt, _LAUNCH, {"variables": dict(launch.variables), "secrets": launch.secrets})


def take(attempt: Path) -> SecretLaunch:
    """Read and remove the secrets of an attempt; afterwards they are only in this process's memory.

    Raises:
        EnvironmentProblem: they are not there, as after a reboot.
    """
    values = _read(attempt, _LAUNCH)
    _place(attempt, _LAUNCH).unlink()
    return SecretLaunch(tuple(values["variables"].items()), tuple(values["secrets"]))


def read_hidden(attempt: Path) -> tuple[str, ...]:
    """Read the values to keep out of copies of an attempt's files; they are stored until the attempt has ended.

    Raises:
        EnvironmentProblem: it is not there, as after a reboot.
    """
    return tuple(str(value) for value in _read(attempt, _HIDDEN)["secrets"])


def leave_keys(attempt: Path, keys: Mapping[str, str]) -> None:
    """Store the keys of an attempt's model providers, by their variables, for its gateway only."""
    _leave(attempt, _KEYS, {"keys": dict(keys)})


def read_keys(attempt: Path) -> dict[str, str]:
    """Read the keys of an attempt's model providers; they are stored until it has ended, for a restarted gateway.

    Raises:
        EnvironmentProblem: they are not there, as after a reboot.
    """
    return {str(name): str(key) for name, key in _read(attempt, _KEYS)["keys"].items()}


def send(attempt: Path, folder: Path) -> None:
    """Move an attempt's secrets to a private file in its directory, for a job on another host."""
    _remove_half_sent(folder)
    left = {kind: place.read_text() for kind in _KINDS if (place := _place(attempt, kind)).exists()}
    if left:
        with files.replacing(folder / _SENT) as stream:
            os.fchmod(stream.fileno(), 0o600)  # before anything is in it
            stream.write(json.dumps(left).encode())
    discard(attempt)


def withdraw(folder: Path) -> None:
    """Remove the secrets sent for an attempt that no job will run."""
    (folder / _SENT).unlink(missing_ok=True)
    _remove_half_sent(folder)


def _remove_half_sent(folder: Path) -> None:
    """Remove the partial file of a killed engine; there is only one engine, which is this process."""
    for left in folder.glob(f".{_SENT}.*{files.PARTIAL_SUFFIX}"):
        left.unlink(missing_ok=True)


def receive(folder: Path) -> FileLock | None:
    """Move the secrets that were sent to this host into its memory, once.

    Returns:
        The lock while which is held they stay there; None where nothing was sent.
    """
    sent = folder / _SENT
    if not sent.exists():
        return None
    with files.reading_untrusted(sent, max_bytes=_MAX_BYTES) as stream:
        left = json.load(stream)
    lock = FileLock(_place(folder, _JOB))
    while not (lock.acquire_soon() and lock.is_in_place()):
        lock.release()  # its file was removed meanwhile, as after the end of a job
    for kind, text in left.items():
        files.write_text(_place(folder, kind), text, durable=False)
    sent.unlink()
    return lock


def path_of(attempt: Path) -> Path:
    """Return the file with an attempt's secrets, for a container's main process, which truncates it.

    Raises:
        EnvironmentProblem: they are not there, as after a reboot.
    """
    place = _left(attempt, _LAUNCH)
    # Its group is the engine's, of which a container's root, without other permissions, is made a member.
    place.chmod(0o660)
    return place


def discard(attempt: Path) -> None:
    """Remove all stored secrets of an attempt, including the keys of model providers."""
    for kind in (*_KINDS, _JOB):
        _place(attempt, kind).unlink(missing_ok=True)


def discard_orphans() -> None:
    """Remove the secrets of attempts that have ended, or whose state was removed, so that no kill keeps them forever.

    Raises:
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
            continue  # its job runs here, and its state may be on another host
        try:
            with files.reading_untrusted(place, max_bytes=_MAX_BYTES) as stream:
                attempt = Path(json.load(stream)["attempt"])
            state_dir = attempt.parents[_DEPTH - 1]
        except (DataProblem, ValueError, LookupError, TypeError):
            continue  # read already, or being read now
        # A run directory on a shared file system may be unavailable for a while; the state is on this host.
        if (attempt / protocol.EXIT).exists() or not state_dir.exists():
            place.unlink(missing_ok=True)


def _leave(attempt: Path, kind: str, values: Mapping[str, Any]) -> None:
    files.write_json(_place(attempt, kind), {"attempt": str(attempt), **values}, durable=False)


def _read(attempt: Path, kind: str) -> dict[str, Any]:
    with files.reading_untrusted(_left(attempt, kind), max_bytes=_MAX_BYTES) as stream:
        values: dict[str, Any] = json.load(stream)
    return values


def _left(attempt: Path, kind: str) -> Path:
    place = _place(attempt, kind)
    if not place.exists():
        raise EnvironmentProblem("the agent's secrets are gone", "they are kept in memory until it starts")
    return place


def _place(attempt: Path, kind: str) -> Path:
    return memory_folder() / f"{hashlib.sha256(os.fsencode(attempt)).hexdigest()[:32]}{kind}"


def rate_file(url: str, key: str, alone: str = "") -> Path:
    """Return the file by which gateways of this host share the rate limit of one key.

    It is for all of them, or for the one that `alone` names, with its own share.
    """
    return memory_folder() / f"{hashlib.sha256(f'{url} {key} {alone}'.encode()).hexdigest()[:32]}.rate"


def memory_folder() -> Path:
    """Return the folder in memory that only this user can access.

    Raises:
        OSError: it can't be created.
    """
    memory = Path("/dev/shm")  # noqa: S108 - shared memory: it never reaches a disk
    base = memory if memory.is_dir() else Path(tempfile.gettempdir())
    return folders.own_folder_in(base, f"mlebench-console-{os.getuid()}")
