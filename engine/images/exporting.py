"""Images as single files, for hosts without a daemon: exporting, importing and finding them."""

from __future__ import annotations

import hashlib
import io
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from mlebench_console.engine.images.building import ENVIRONMENT_LABEL, RECIPE_LABEL, NeededImage
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker.daemon import daemon_problems
from mlebench_console.environment.runner.process.image_files import ARCHIVE, SIF, SQUASHFS, SUFFIXES
from mlebench_console.environment.runner.protocol import ImageFile
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, UsageProblem

if TYPE_CHECKING:
    from docker import APIClient

FORMATS = tuple(SUFFIXES)
NOT_EXPORTED = "is not exported"
_DIGITS = 12
_PIECE_BYTES = 1 << 20
_USER = "nonroot"
_PASSWD = "/etc/passwd"  # noqa: S105 - a table of names
_MOST_PASSWD_BYTES = 1 << 20
_TOOLS = "Install squashfs-tools, or give --format archive."
_SQUASHED = (
    *("-tar", "-noappend", "-all-root", "-comp", "zstd", "-Xcompression-level", "3"),
    *("-no-progress", "-quiet"),
)
# The formats by preference: the first needs the least work by the runtime.
_PREFERRED = {protocol.APPTAINER: (SIF, SQUASHFS, ARCHIVE)}
_OTHERS = (SQUASHFS, ARCHIVE, SIF)


def export(
    client: APIClient, name: str, folder: Path, form: str = "", output: Path | None = None
) -> ImageFile:
    """Write an image to a single file, with its metadata in a file beside it.

    Args:
        client: of the daemon that has the image.
        name: of the image.
        folder: the folder of exported images, used without `output`.
        form: `squashfs`, `archive` or `sif`; by default squashfs where that is possible here, else archive.
        output: the file.

    Raises:
        UsageProblem: there is no such format.
        EnvironmentProblem: the image is missing, or a program is missing or fails.
    """
    form = form or (SQUASHFS if shutil.which("mksquashfs") else ARCHIVE)
    if form not in FORMATS:
        raise UsageProblem(f"there is no format '{form}'", "", f"Choose one of {', '.join(FORMATS)}.")
    with daemon_problems(f"the image {name} can't be exported"):
        known: dict[str, Any] = client.inspect_image(name)
    config = known.get("Config") or {}
    digest = str(known["Id"])
    file = output or folder / f"{name}-{digest.removeprefix('sha256:')[:_DIGITS]}{SUFFIXES[form]}"
    file.parent.mkdir(parents=True, exist_ok=True)
    with _container(client, name) as container:
        user = _user_in(client, container)
        with files.replacing(file) as stream:
            if form == SIF:
                _write_sif(client, name, Path(stream.name))
            else:
                with daemon_problems(f"the image {name} can't be exported"):
                    _write(client.export(container, chunk_size=_PIECE_BYTES), form, Path(stream.name), stream)
    described = ImageFile(
        name=name,
        path=str(file.absolute()),
        format=form,
        sha256=_digest(file),
        bytes=file.stat().st_size,
        image=digest,
        created=time.time(),
        labels=tuple(sorted((config.get("Labels") or {}).items())),
        variables=tuple(_pair(one) for one in config.get("Env") or ()),
    )
    return _describe(replace(described, **user))


def bring(file: Path, folder: Path) -> ImageFile:
    """Copy an image file from elsewhere into the folder of exported images, after checking its digest.

    Raises:
        DataProblem: it is not such a file, or does not match its description.
    """
    known = protocol.read(_sidecar(file), ImageFile)
    if known.format not in FORMATS or "/" in known.name or not known.name.strip("."):
        raise DataProblem(f"{_sidecar(file)} does not describe an image")
    folder.mkdir(parents=True, exist_ok=True)
    digits = known.image.removeprefix("sha256:")[:_DIGITS]
    target = folder / f"{known.name}-{digits}{SUFFIXES[known.format]}"
    digest = hashlib.sha256()
    with file.open("rb") as source, files.replacing(target) as copy:
        while piece := source.read(_PIECE_BYTES):
            digest.update(piece)
            copy.write(piece)
        if digest.hexdigest() != known.sha256:
            why = f"its SHA-256 is {digest.hexdigest()[:_DIGITS]}, not {known.sha256[:_DIGITS]}"
            raise DataProblem(
                f"{file} is not the file that {_sidecar(file).name} describes", why, "Copy it again."
            )
    return _describe(replace(known, path=str(target.absolute()), bytes=target.stat().st_size))


def exported(folder: Path) -> list[ImageFile]:
    """List the exported images of a folder, the newest first."""
    found = []
    for sidecar in folder.glob("*.json"):
        file = sidecar.with_name(sidecar.name.removesuffix(".json"))
        try:
            known = protocol.read(sidecar, ImageFile)
        except Problem:
            continue  # half copied, or not a description of an image
        if file.is_file() and known.format in FORMATS:
            found.append(replace(known, path=str(file.absolute())))
    return sorted(found, key=lambda one: -one.created)


def find_exported(image: NeededImage, folder: Path, runtime: str) -> ImageFile:
    """Return the file of a needed image, in the format that suits a runtime best.

    Raises:
        EnvironmentProblem: there is none, or it was made from other files.
    """
    of_name = [one for one in exported(folder) if one.name == image.name]
    good = [one for one in of_name if not image.fault_of(*_recipe(one))]
    order = _PREFERRED.get(runtime, _OTHERS)
    if good:
        return min(good, key=lambda one: order.index(one.format))
    fault = image.fault_of(*_recipe(of_name[0])) if of_name else NOT_EXPORTED
    step = "Export it where Docker is: mlebench-console images export AGENT, or bring it: images import FILE"
    raise EnvironmentProblem(f"the image {image.name} {fault}", f"looked in {folder}", step)


def _recipe(image: ImageFile) -> tuple[str, str]:
    labels = dict(image.labels)
    return labels.get(RECIPE_LABEL, ""), labels.get(ENVIRONMENT_LABEL, "")


def _describe(image: ImageFile) -> ImageFile:
    """Write the metadata of an image file beside it, after which it is listed."""
    protocol.write(_sidecar(Path(image.path)), image)
    return image


def _sidecar(file: Path) -> Path:
    return file.with_name(f"{file.name}.json")


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


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


def _write(pieces: Iterable[bytes], form: str, place: Path, stream: IO[bytes]) -> None:
    if form == ARCHIVE:
        for piece in pieces:
            stream.write(piece)
        return
    program = shutil.which("mksquashfs")
    if program is None:
        raise EnvironmentProblem("images can't be squashed here", "mksquashfs is not installed", _TOOLS)
    place.unlink()  # mksquashfs would append to an existing file
    with subprocess.Popen(
        # A low compression level: a higher one saves little space and takes minutes.
        [program, "-", str(place), *_SQUASHED],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as squashing:
        assert squashing.stdin is not None and squashing.stderr is not None
        try:
            for piece in pieces:
                squashing.stdin.write(piece)
        except BrokenPipeError:
            pass  # its standard error says why
        squashing.stdin.close()
        message = squashing.stderr.read().decode(errors="replace")
    if squashing.returncode != 0:
        raise EnvironmentProblem("the image can't be squashed", " ".join(message.split())[-300:])


def _write_sif(client: APIClient, name: str, place: Path) -> None:
    program = shutil.which("apptainer")
    if program is None:
        raise EnvironmentProblem(
            "a sif can't be made here",
            "apptainer is not installed",
            "Give --format squashfs, which it runs too.",
        )
    with TemporaryDirectory(prefix="mlebench-export-", dir=place.parent) as folder:
        archive = Path(folder, "image.tar")
        with daemon_problems(f"the image {name} can't be exported"), archive.open("wb") as stream:
            for piece in client.get_image(name):
                stream.write(piece)
        done = subprocess.run(
            [program, "build", "--force", str(place), f"docker-archive:{archive}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise EnvironmentProblem("the sif can't be made", " ".join(done.stderr.split())[-300:])


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
