"""Images as compressed archives, for hosts without a daemon: exporting, importing and finding them."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mlebench_console.engine.images.building import ENVIRONMENT_LABEL, RECIPE_LABEL, NeededImage
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker.daemon import daemon_problems
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem

if TYPE_CHECKING:
    from docker import APIClient

_SUFFIX = ".tar.gz"
_COMPRESSION = 1  # a higher level saves little space and takes minutes
_DIGITS = 12
_PIECE_BYTES = 1 << 20
_USER = "nonroot"
_PASSWD = "/etc/passwd"  # noqa: S105 - a table of names
_MOST_PASSWD_BYTES = 1 << 20


def export(client: APIClient, name: str, folder: Path, output: Path | None = None) -> ImageFile:
    """Write an image's file system to a compressed archive, with its metadata in a file beside it.

    Args:
        client: of the daemon that has the image.
        name: of the image.
        folder: the folder of exported images, used without `output`.
        output: the file.

    Raises:
        EnvironmentProblem: the image is missing, or has no user for agents.
    """
    with daemon_problems(f"the image {name} can't be exported"):
        known: dict[str, Any] = client.inspect_image(name)
    config = known.get("Config") or {}
    image = str(known["Id"])
    file = output or folder / f"{name}-{image.removeprefix('sha256:')[:_DIGITS]}{_SUFFIX}"
    file.parent.mkdir(parents=True, exist_ok=True)
    with _container(client, name) as container:
        user = _user_in(client, container)
        unpacked_bytes = 0
        with (
            files.replacing(file) as stream,
            gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=_COMPRESSION, mtime=0) as archive,
            daemon_problems(f"the image {name} can't be exported"),
        ):
            for piece in client.export(container, chunk_size=_PIECE_BYTES):
                unpacked_bytes += archive.write(piece)
    with file.open("rb") as written:
        digest = hashlib.file_digest(written, "sha256").hexdigest()
    described = ImageFile(
        name=name,
        path=str(file.absolute()),
        sha256=digest,
        bytes=file.stat().st_size,
        unpacked_bytes=unpacked_bytes,
        image=image,
        created=time.time(),
        labels=tuple(sorted((config.get("Labels") or {}).items())),
        variables=tuple(
            (name, value) for name, _, value in (one.partition("=") for one in config.get("Env") or ())
        ),
    )
    return _describe(replace(described, **user))


def import_image(file: Path, folder: Path) -> ImageFile:
    """Copy an image file from elsewhere into the folder of exported images, after checking its digest.

    Raises:
        DataProblem: it is not such a file, or does not match its description.
    """
    known = protocol.read(_description(file), ImageFile)
    if "/" in known.name or not known.name.strip("."):
        raise DataProblem(f"{_description(file)} does not describe an image")
    folder.mkdir(parents=True, exist_ok=True)
    digits = known.image.removeprefix("sha256:")[:_DIGITS]
    target = folder / f"{known.name}-{digits}{_SUFFIX}"
    digest = hashlib.sha256()
    with file.open("rb") as source, files.replacing(target) as copy:
        while piece := source.read(_PIECE_BYTES):
            digest.update(piece)
            copy.write(piece)
        if digest.hexdigest() != known.sha256:
            why = f"its SHA-256 is {digest.hexdigest()[:_DIGITS]}, not {known.sha256[:_DIGITS]}"
            raise DataProblem(
                f"{file} is not the file that {_description(file).name} describes", why, "Copy it again."
            )
    return _describe(replace(known, path=str(target.absolute()), bytes=target.stat().st_size))


def exported(folder: Path) -> list[ImageFile]:
    """List the exported images of a folder, the newest first."""
    found = []
    for description in folder.glob("*.json"):
        file = description.with_name(description.name.removesuffix(".json"))
        try:
            known = protocol.read(description, ImageFile)
        except Problem:
            continue  # half copied, or not a description of an image
        if file.is_file():
            found.append(replace(known, path=str(file.absolute())))
    return sorted(found, key=lambda one: -one.created)


def find_exported(image: NeededImage, folder: Path) -> ImageFile:
    """Return the newest file of a needed image.

    Raises:
        EnvironmentProblem: there is none, or it was made from other files.
    """
    fault = "not exported"
    for one in exported(folder):
        if one.name == image.name:
            labels = dict(one.labels)
            fault = image.fault_of(labels.get(RECIPE_LABEL, ""), labels.get(ENVIRONMENT_LABEL, ""))
            if not fault:
                return one
    step = (
        "Export it where Docker is: mlebench-console images export AGENT, or bring it: images import FILE. "
        "Without an image: --runtime process."
    )
    raise EnvironmentProblem(f"the image {image.name} is {fault}", f"looked in {folder}", step)


def _describe(image: ImageFile) -> ImageFile:
    """Write the metadata of an image file beside it, after which it is listed."""
    protocol.write(_description(Path(image.path)), image)
    return image


def _description(file: Path) -> Path:
    return file.with_name(f"{file.name}.json")


@contextmanager
def _container(client: APIClient, name: str) -> Iterator[str]:
    """Create a container that is never started, and remove it at the end."""
    with daemon_problems(f"the image {name} can't be exported"):
        container = str(
            client.create_container(name, ["true"], name=f"mlebench-export-{uuid4().hex[:10]}")["Id"]
        )
    try:
        yield container
    finally:
        with daemon_problems("a container that was never started can't be removed"):
            client.remove_container(container, force=True, v=True)


def _user_in(client: APIClient, container: str) -> dict[str, Any]:
    """Read the agent's user from an image's /etc/passwd.

    Raises:
        EnvironmentProblem: there is none.
    """
    with daemon_problems("the image's users can't be read"):
        pieces, _ = client.get_archive(container, _PASSWD)
        content = b"".join(pieces)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        member = archive.next()
        table = archive.extractfile(member) if member is not None and member.isfile() else None
        lines = table.read(_MOST_PASSWD_BYTES).decode(errors="replace").splitlines() if table else []
    for line in lines:
        fields = line.split(":")
        if fields[0] == _USER:
            return {"user": _USER, "uid": int(fields[2]), "gid": int(fields[3]), "home": fields[5]}
    raise EnvironmentProblem(
        "the image can't run an agent",
        f"it has no user '{_USER}'",
        "Let its Dockerfile start from mlebench-env.",
    )
