"""7z archives: safe extraction of raw data, and making new archives; zips are in `archives`."""

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

from mlebench_console.competitions.kit.archives import create_empty, safe_path
from mlebench_console.competitions.raw import RawDataProblem, RawPath, read_as
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import DataProblem

if TYPE_CHECKING:
    import py7zr


@contextmanager
def opened(path: RawPath) -> Iterator[py7zr.SevenZipFile]:
    """Open a 7z for reading.

    Raises:
        DataProblem: it is not a 7z, or is damaged.
    """
    import py7zr
    from py7zr.exceptions import ArchiveError, PasswordRequired

    faults = (ArchiveError, PasswordRequired, lzma.LZMAError, zlib.error, EOFError, ValueError)
    with read_as("a 7z", path, *faults), path.open("rb") as stream, py7zr.SevenZipFile(stream) as archive:
        yield archive


def files_in(path: RawPath) -> list[str]:
    """Return the names of a 7z's members that are files, in the archive's order."""
    with opened(path) as archive:
        return [member.filename for member in archive.files if member.is_file]


def extract_as(job: Preparation, path: RawPath, targets: Mapping[str, Path]) -> None:
    """Extract the named members of a 7z in one pass, each to its own path.

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
            # py7zr leaves the stream open at which it fails, so the stack closes it
            self._stream = stack.enter_context(target.open("wb"))

        def write(self, s: bytes | bytearray) -> int:
            return self._stream.write(s)

        def read(self, size: int | None = None) -> bytes:  # noqa: ARG002 py7zr's interface
            raise OSError("extracted members are only written")

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
                raise DataProblem(f"{path} was refused", f"it contains {filename} twice")
            target = left.pop(filename)
            job.progress(path.name, len(targets) - len(left), len(targets))
            return Writer(target)

    if targets:
        with opened(path) as archive, ExitStack() as stack:
            archive.extract(targets=list(targets), factory=Writers())


def read(path: RawPath, name: str, *, most: int | None = None) -> bytes:
    """Read one file of a 7z, in any of its folders.

    Args:
        path: the 7z.
        name: the file.
        most: return at most this many of its first bytes; damage after them is still found.

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
    """Make a 7z of bytes, and of files and folders in the scratch folder, under the given names.

    Each file is removed once it is archived. Images are better stored than compressed again; the rest is
    compressed lightly, because the usual level takes minutes for what agents unpack once. Members are ordered
    by name, and files get one time, since order and times may reveal their classes.
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
            job.progress(target.name, done, len(files))


def _expect(path: RawPath, names: Iterable[str]) -> None:
    present = set(files_in(path))
    missing = next((name for name in names if name not in present), None)
    if missing is not None:
        raise RawDataProblem(f"{path} is incomplete", f"{missing} is missing in it")
