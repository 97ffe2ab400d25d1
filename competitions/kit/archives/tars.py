"""Tar archives, gzipped or not: copy members from one to several others in a single pass; zips are in `archives`."""

from __future__ import annotations

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mlebench_console.competitions.raw import RawDataProblem, RawPath, is_regular, read_as
from mlebench_console.competitions.task import Preparation

_BLOCK = 1 << 14  # tarfile copies its buffer at each read, so that larger blocks are slower
_GZIP = b"\x1f\x8b"
_FAULTS = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)


@dataclass(frozen=True)
class Destination:
    """The archive that a member is copied to, and its name there."""

    archive: Path
    name: str


def distribute(
    job: Preparation,
    source: RawPath,
    destinations: Mapping[str, Destination],
    *,
    by_name: Collection[Path] = (),
) -> None:
    """Copy the named files of a tar to new uncompressed tars, reading it once from front to back.

    Args:
        job: whose progress hook to call.
        source: the tar.
        destinations: where each file goes.
        by_name: new archives whose members are ordered by name, because the order in the source reveals
            their classes; they are kept in the scratch folder until all are read.

    Raises:
        DataProblem: the archive is damaged, or lacks a file.
    """
    missing = dict.fromkeys(destinations)
    waiting: list[tuple[Destination, Path]] = []
    with ExitStack() as stack, read_as("a tar", source, *_FAULTS):
        writers = _writers(stack, destinations)
        for member, content in files(source):
            if member.name not in missing:
                continue
            del missing[member.name]
            to = destinations[member.name]
            if to.archive in by_name:
                waiting.append((to, job.scratch / f"{len(waiting)}.waiting"))
                with waiting[-1][1].open("xb") as kept:
                    shutil.copyfileobj(content, kept)
            else:
                _add(writers[to.archive], to.name, member.size, content)
            job.progress(source.name, len(destinations) - len(missing), len(destinations))
        for to, path in sorted(waiting, key=lambda pair: pair[0].name):
            with path.open("rb") as content:
                _add(writers[to.archive], to.name, path.stat().st_size, content)
            path.unlink()
    if missing:
        raise RawDataProblem(f"{source} is incomplete", f"{next(iter(missing))} is missing in it")


def pack(job: Preparation, folder: RawPath, destinations: Mapping[str, Destination]) -> None:
    """Do as `distribute` for the files of a folder, all ordered by their new names.

    Raises:
        DataProblem: a file is missing.
    """
    with ExitStack() as stack:
        writers = _writers(stack, destinations)
        ordered = sorted(destinations.items(), key=lambda pair: pair[1].name)
        for done, (name, to) in enumerate(ordered, start=1):
            path = folder / name
            if not is_regular(path):
                raise job.missing(path.name, path.parent)
            with path.open("rb") as content:
                _add(writers[to.archive], to.name, path.stat().st_size, content)
            job.progress(folder.name, done, len(destinations))


def _writers(stack: ExitStack, destinations: Mapping[str, Destination]) -> dict[Path, tarfile.TarFile]:
    archives = dict.fromkeys(to.archive for to in destinations.values())
    for path in archives:
        path.parent.mkdir(parents=True, exist_ok=True)
    return {path: stack.enter_context(tarfile.open(path, "x")) for path in archives}


def _add(archive: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    archive.addfile(member, content)


def files(path: RawPath) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Yield the regular files of an archive; each can be read until the next one is requested."""
    with read_as("a tar", path, *_FAULTS), _inflated(path) as stream:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member, content
        while stream.read(_BLOCK):  # the checksum of a gzip stands at its very end
            pass


@contextmanager
def _inflated(path: RawPath) -> Iterator[IO[bytes]]:
    with path.open("rb") as stream:
        compressed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        if compressed:
            with gzip.open(stream) as inflated:
                yield inflated  # type: ignore[misc]  # typeshed allows text here, which this mode never gives
        else:
            yield stream
