"""7z archives: chosen members of raw data taken out safely, and new archives made; zips are `archives`."""

from __future__ import annotations

import lzma
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from competitions.kit.archives import create_empty, safe_path
from competitions.raw import RawPath
from competitions.task import Preparation
from foundation.problems import DataProblem

if TYPE_CHECKING:
    import py7zr
    from py7zr.io import WriterFactory

_STEP = 1000


@contextmanager
def opened(path: RawPath) -> Iterator[py7zr.SevenZipFile]:
    """Open a 7z for reading.

    Raises:
        DataProblem: it is no 7z, or is damaged.
    """
    import py7zr
    from py7zr.exceptions import ArchiveError, PasswordRequired

    try:
        with path.open("rb") as stream, py7zr.SevenZipFile(stream) as archive:
            yield archive
    except (ArchiveError, PasswordRequired, lzma.LZMAError, zlib.error, EOFError, ValueError) as error:
        raise DataProblem(
            f"{path} cannot be read as a 7z",
            str(error) or type(error).__name__,
            "Download the competition's data again.",
        ) from error


def files_in(path: RawPath) -> list[str]:
    """The names of the members of a 7z that are files, in its own order."""
    with opened(path) as archive:
        return [member.filename for member in archive.files if member.is_file]


def extract_as(job: Preparation, path: RawPath, targets: Mapping[str, Path]) -> None:
    """Take the named members out of a 7z in one pass, each straight to its own path.

    Raises:
        DataProblem: the archive is damaged or lacks a member.
    """
    present = set(files_in(path))
    missing = [name for name in targets if name not in present]
    if missing:
        raise DataProblem(
            f"{path} is incomplete", f"it holds no {missing[0]}", "Download the competition's data again."
        )
    for folder in {target.parent for target in targets.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    create_empty(targets.values())
    if targets:
        by_name = {safe_path(name).as_posix(): target for name, target in targets.items()}
        with opened(path) as archive, ExitStack() as stack:
            archive.extract(targets=list(targets), factory=_writers(job, path, by_name, stack))


def extracted_file(job: Preparation, path: RawPath, name: str) -> Path:
    """Take one file out of a 7z into the job's scratch folder; it may lie in a folder of the 7z."""
    full_name = next((found for found in files_in(path) if found.rpartition("/")[2] == name), name)
    target = job.scratch / f"{path.name}.members" / name
    extract_as(job, path, {full_name: target})
    return target


def pack(job: Preparation, target: Path, files: Mapping[str, Path], *, compressed: bool = True) -> None:
    """Make a 7z of files under the given names; pictures are better stored than compressed again.

    It is compressed lightly: the usual strength takes minutes for what agents unpack once. Members are put
    in the order of their names, and files get one time: how they came may tell of which class they are.
    """
    import py7zr

    target.parent.mkdir(parents=True, exist_ok=True)
    filters = [{"id": py7zr.FILTER_LZMA2, "preset": 1} if compressed else {"id": py7zr.FILTER_COPY}]
    with py7zr.SevenZipFile(target, "x", filters=filters) as archive:
        now = time.time_ns()
        for done, (name, path) in enumerate(sorted(files.items()), start=1):
            os.utime(path, ns=(now, now))
            archive.write(path, name)
            if done % _STEP == 0 or done == len(files):
                job.progress(target.name, done, len(files))


def _writers(job: Preparation, path: RawPath, targets: Mapping[str, Path], stack: ExitStack) -> WriterFactory:
    from py7zr.io import Py7zIO, WriterFactory

    left = dict(targets)

    class Writer(Py7zIO):
        def __init__(self, target: Path) -> None:
            self._stream = target.open("wb")
            self._size = 0

        def write(self, s: bytes | bytearray) -> int:
            self._size += len(s)
            return self._stream.write(s)

        def read(self, size: int | None = None) -> bytes:  # noqa: ARG002 py7zr's interface
            raise OSError("what is taken out is written only")

        def seek(self, offset: int, whence: int = 0) -> int:
            return self._stream.seek(offset, whence)

        def flush(self) -> None:
            self._stream.flush()

        def size(self) -> int:
            return self._size

        def close(self) -> None:
            self._stream.close()

    class Writers(WriterFactory):
        def __init__(self) -> None:
            self._done = 0

        def create(self, filename: str) -> Py7zIO:
            try:
                writer = Writer(left.pop(filename))
                stack.callback(writer.close)  # py7zr leaves the one at which it fails open
            except KeyError:
                raise DataProblem(f"{path} was not taken", f"it holds {filename} twice") from None
            self._done += 1
            if self._done % _STEP == 0 or self._done == len(targets):
                job.progress(path.name, self._done, len(targets))
            return writer

    return Writers()
