"""Tar archives, compressed by gzip or not: members brought from one to others in a single pass; zips are `archives`."""

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

from competitions.raw import RawDataProblem, RawPath, is_regular
from competitions.task import Preparation

_BLOCK = 1 << 14  # what tarfile holds ready it copies at each read, so that larger blocks are slower
_STEP = 1000
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Destination:
    """Where a member goes: to which archive, and under which name."""

    archive: Path
    name: str


def distribute(
    job: Preparation,
    source: RawPath,
    wanted: Mapping[str, Destination],
    *,
    by_name: Collection[Path] = (),
) -> None:
    """Bring the named files of a tar to new ones, which are not compressed, reading it once from front to back.

    Args:
        job: whose progress hook to call.
        source: the tar.
        wanted: where each file goes.
        by_name: new archives whose members are put in the order of their names, because the order of the
            source shows their classes; they lie in the scratch folder until all are read.

    Raises:
        DataProblem: the archive is damaged, or lacks a file.
    """
    missing = dict.fromkeys(wanted)
    waiting: list[tuple[Destination, Path]] = []
    with ExitStack() as stack, _as_data_problems(source):
        writers = _writers(stack, wanted)
        for member, content in files(source):
            if member.name not in missing:
                continue
            del missing[member.name]
            to = wanted[member.name]
            if to.archive in by_name:
                waiting.append((to, job.scratch / f"{len(waiting)}.waiting"))
                with waiting[-1][1].open("xb") as kept:
                    shutil.copyfileobj(content, kept)
            else:
                _add(writers[to.archive], to.name, member.size, content)
            _report(job, source, len(wanted) - len(missing), len(wanted))
        for to, path in sorted(waiting, key=lambda pair: pair[0].name):
            with path.open("rb") as content:
                _add(writers[to.archive], to.name, path.stat().st_size, content)
            path.unlink()
    if missing:
        raise RawDataProblem(f"{source} is incomplete", f"it holds no {next(iter(missing))}")


def pack(job: Preparation, folder: RawPath, wanted: Mapping[str, Destination]) -> None:
    """As `distribute`, for files that lie in a folder; all are put in the order of their new names.

    Raises:
        DataProblem: a file is missing.
    """
    with ExitStack() as stack:
        writers = _writers(stack, wanted)
        ordered = sorted(wanted.items(), key=lambda pair: pair[1].name)
        for done, (name, to) in enumerate(ordered, start=1):
            path = folder / name
            if not is_regular(path):
                raise job.missing(path.name, path.parent)
            with path.open("rb") as content:
                _add(writers[to.archive], to.name, path.stat().st_size, content)
            _report(job, folder, done, len(wanted))


def _writers(stack: ExitStack, wanted: Mapping[str, Destination]) -> dict[Path, tarfile.TarFile]:
    archives = dict.fromkeys(to.archive for to in wanted.values())
    for path in archives:
        path.parent.mkdir(parents=True, exist_ok=True)
    return {path: stack.enter_context(tarfile.open(path, "x")) for path in archives}


def _report(job: Preparation, source: RawPath, done: int, total: int) -> None:
    if done % _STEP == 0 or done == total:
        job.progress(source.name, done, total)


def _add(archive: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    member.size = size
    archive.addfile(member, content)


def files(path: RawPath) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """The regular files of an archive; each can be read until the next one is asked for."""
    with _as_data_problems(path), _inflated(path) as stream:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    yield member, content
        while stream.read(_BLOCK):  # the checksum of a gzip stands at its very end
            pass


@contextmanager
def _as_data_problems(path: RawPath) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RawDataProblem(f"{path} cannot be read as a tar", str(error)) from error


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
