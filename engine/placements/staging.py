"""The engine's part of staging datasets to nodes' own disks: its expected duration, and making images.

An image is one file with all public data of a dataset, made once beside the prepared dataset. The nodes' part is in
`environment/runner/staging.py`.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from mlebench_console.engine.layout import MANIFEST, MARKER, squashfs_image
from mlebench_console.engine.settings import SlurmProfile
from mlebench_console.environment.container.warden import die_with
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import StagingOrder
from mlebench_console.foundation import files
from mlebench_console.foundation.manifests import PUBLIC, Seal, check_seal, parse, seal_of
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, reading
from mlebench_console.foundation.threads import in_daemon_thread

DIRECT = "direct"
# Before the first byte: reading the manifest, and waiting for a node's disk.
_LEAST_SECONDS = 120.0
_FILES_PER_SECOND = 500.0
_LEFT_SECONDS = 86_400.0
_NICE = 10
_LONGEST_MESSAGE = 400


def staging_seconds(prepared: Path, profile: SlurmProfile) -> float:
    """Return how long a job may take to stage a dataset, before its agent's time begins.

    Raises:
        DataProblem: the staged data can't be verified.
    """
    if profile.staging == DIRECT:
        return 0.0
    seal = _seal(prepared)  # of all files, with the answers: more than what is copied
    return (
        _LEAST_SECONDS + seal.bytes / (profile.staging_mb_per_second * 1e6) + seal.files / _FILES_PER_SECOND
    )


def require_squashfs(prepared: Path) -> None:
    """Check that a dataset has an image, or that one can be made.

    Raises:
        DataProblem: its content can't be verified.
        EnvironmentProblem: it can't be made.
    """
    if _image(prepared, _seal(prepared)) is None and shutil.which("mksquashfs") is None:
        raise EnvironmentProblem(
            f"there is no image of {prepared}",
            "mksquashfs is not installed",
            'Install squashfs-tools, or set staging = "copy" in the profile.',
        )


class Images:
    """Makes images of datasets in the background, each once; a killed engine never leaves a half-made image."""

    def __init__(self) -> None:
        self._working: dict[Path, Future[None]] = {}

    def order(self, prepared: Path, profile: SlurmProfile) -> StagingOrder | None:
        """Return how a job stages a dataset; None while its image is being made.

        Raises:
            Problem: it can't be staged.
        """
        work = self._working.get(prepared)
        if work is not None and not work.done():
            return None
        limit = staging_seconds(prepared, profile)
        seal = _seal(prepared)
        if profile.staging == protocol.COPY:
            return StagingOrder(protocol.COPY, seal.sha256, limit_seconds=limit)
        made = _image(prepared, seal)
        if made is not None:
            self._working.pop(prepared, None)
            return StagingOrder(protocol.SQUASHFS, made, str(squashfs_image(prepared)), limit)
        if work is None:
            require_squashfs(prepared)
            self._working[prepared] = in_daemon_thread(partial(_make_image, prepared, seal))
            return None
        del self._working[prepared]
        error = work.exception()
        if isinstance(error, Problem):
            raise error
        raise EnvironmentProblem(f"no image of {prepared} can be made", str(error or "")) from error


def _make_image(prepared: Path, seal: Seal) -> None:
    image = squashfs_image(prepared)
    for left in image.parent.glob(f".{image.name}.*{files.PARTIAL_SUFFIX}"):
        if (
            time.time() - left.stat().st_mtime > _LEFT_SECONDS
        ):  # by an engine that was killed; others may be at it
            left.unlink()
    made = image.with_name(f".{image.name}.{secrets.token_hex(4)}{files.PARTIAL_SUFFIX}")
    engine = os.getpid()

    def be_modest() -> None:
        die_with(engine)
        os.nice(_NICE)

    _verify(prepared, seal)
    try:
        done = subprocess.run(
            ["mksquashfs", str(prepared / "public"), str(made), "-noappend", "-no-progress", "-all-root"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            preexec_fn=be_modest,
            check=False,
        )
        if done.returncode != 0:
            message = " ".join(done.stderr.decode("utf-8", "replace").split())[-_LONGEST_MESSAGE:]
            raise EnvironmentProblem(f"no image of {prepared} can be made", f"mksquashfs: {message}")
        with made.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            os.fsync(stream.fileno())
        made.replace(image)
    finally:
        made.unlink(missing_ok=True)
    files.write_json(_record(image), {"manifest": seal.sha256, "sha256": digest})


def _verify(prepared: Path, seal: Seal) -> None:
    """Compare the public data with their manifest, before they are put into an image.

    Raises:
        DataProblem: they differ.
    """
    path = prepared / MANIFEST
    with reading(path):
        content = path.read_bytes()
    check_seal(content, seal, str(path))
    for entry in parse(content, str(path)).entries:
        if entry.is_folder or not entry.path.startswith(PUBLIC):
            continue
        with reading(prepared / entry.path), (prepared / entry.path).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != entry.sha256:
            raise DataProblem(
                f"{prepared / entry.path} is not what its manifest lists",
                f"expected SHA-256 {entry.sha256}, found {found}",
            )


def _image(prepared: Path, seal: Seal) -> str | None:
    """Return the SHA-256 of a dataset's image; None without one, or if it is of an earlier preparation."""
    image = squashfs_image(prepared)
    try:
        record = json.loads(_record(image).read_bytes())
        return str(record["sha256"]) if record["manifest"] == seal.sha256 and image.is_file() else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _record(image: Path) -> Path:
    return image.with_name(f"{image.name}.json")


def _seal(prepared: Path) -> Seal:
    try:
        marker = json.loads((prepared / MARKER).read_bytes())
    except (OSError, ValueError):
        marker = {}
    seal = seal_of(marker) if isinstance(marker, dict) else None
    if seal is None:
        raise DataProblem(
            f"{prepared} can't be brought to nodes",
            "it has no manifest by which a copy could be verified",
            f"Give it one: mlebench-console datasets verify --record -c {prepared.parent.name}",
        )
    return seal
