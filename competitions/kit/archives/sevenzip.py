"""7z archives: chosen members of raw data taken out safely, and new archives made; zips are `archives`."""

from __future__ import annotations

import lzma
import os
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from competitions.kit.archives import create_empty, safe_path
from competitions.raw import RawDataProblem, RawPath
from competitions.task import Preparation
from foundation.problems import DataProblem

if TYPE_CHECKING:
    import py7zr

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
        raise RawDataProblem(f"{path} cannot be read as a 7z", str(error) or type(error).__name__) from error


def files_in(path: RawPath) -> list[str]:
    """The names of the members of a 7z that are files, in its own order."""
    with opened(path) as archive:
        return [member.filename for member in archive.files if member.is_file]


def extract_as(job: Preparation, path: RawPath, targets: Mapping[str, Path]) -> None:
    """Take the named members out of a 7z in one pass, each straight to its own path.

    Raises:
        DataProblem: the archive is damaged or lacks a member.
    """
    from py7zr.io import Py7zIO, WriterFactory

    _expect(path, targets)
    for folder in {target.parent for target in targets.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    create_empty(targets.values())
    left = {safe_path(name).as_posix(): target for name, target in targets.items()}

    class Writer(Py7zIO):
        def __init__(self, target: Path) -> None:
            self._stream = stack.enter_context(
                target.open("wb")
            )  # py7zr leaves the one at which it fails open

        def write(self, s: bytes | bytearray) -> int:
            return self._stream.write(s)

        def read(self, size: int | None = None) -> bytes:  # noqa: ARG002 py7zr's interface
            raise OSError("what is taken out is written only")

        def seek(self, offset: int, whence: int = 0) -> int:
            return self._stream.seek(offset, whence)

        def flush(self) -> None:
            self._stream.flush()

        def size(self) -> int:
            return self._stream.tell()

        def close(self) -> None:
            self._stream.close()

    class Writers(WriterFactory):
        def create(self, filename: str) -> Py7zIO:
            if filename not in left:
                raise DataProblem(f"{path} was not taken", f"it holds {filename} twice")
            target = left.pop(filename)
            done = len(targets) - len(left)
            if done % _STEP == 0 or not left:
                job.progress(path.name, done, len(targets))
            return Writer(target)

    if targets:
        with opened(path) as archive, ExitStack() as stack:
            archive.extract(targets=list(targets), factory=Writers())


def read(path: RawPath, name: str, *, most: int | None = None) -> bytes:
    """One file of a 7z; it may lie in a folder there.

    Args:
        path: the 7z.
        name: the file.
        most: keep no more than so many of its first bytes; damage behind them is found even so.

    Raises:
        DataProblem: the archive is damaged or lacks the file.
    """
    from py7zr.io import BytesIOFactory

    full_name = next((found for found in files_in(path) if found.rpartition("/")[2] == name), name)
    _expect(path, [full_name])
    factory = BytesIOFactory(sys.maxsize if most is None else most)
    with opened(path) as archive:
        archive.extract(targets=[full_name], factory=factory)
    return factory.products[safe_path(full_name).as_posix()].read(most)


def pack(
    job: Preparation, target: Path, files: Mapping[str, Path | bytes], *, compressed: bool = True
) -> None:
    """Make a 7z of contents, and of files and folders that lie in the scratch folder, under the given names.

    Files are removed as soon as they are in it. Pictures are better stored than compressed again; other
    things are compressed lightly: the usual strength takes minutes for what agents unpack once. Members are
    put in the order of their names, and files get one time: how they came may show their classes.
    """
    import py7zr

    target.parent.mkdir(parents=True, exist_ok=True)
    filters = [{"id": py7zr.FILTER_LZMA2, "preset": 1} if compressed else {"id": py7zr.FILTER_COPY}]
    with py7zr.SevenZipFile(target, "x", filters=filters) as archive:
        now = time.time_ns()
        for done, (name, content) in enumerate(sorted(files.items()), start=1):
            if isinstance(content, bytes):
                archive.writestr(content, name)
            else:
                os.utime(content, ns=(now, now))
                archive.write(content, name)
                if content.is_file():
                    content.unlink()
            if done % _STEP == 0 or done == len(files):
                job.progress(target.name, done, len(files))


def _expect(path: RawPath, names: Iterable[str]) -> None:
    present = set(files_in(path))
    missing = next((name for name in names if name not in present), None)
    if missing is not None:
        raise RawDataProblem(f"{path} is incomplete", f"it holds no {missing}")
