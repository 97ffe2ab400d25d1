"""A zip as a tree of files that are read in place, without extraction.

All members are checked before any is read.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from io import BufferedReader, FileIO
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from mlebench_console.competitions.kit.archives import safe_path, zip_members
from mlebench_console.foundation.problems import DataProblem

_MOST_INFLATED = 200  # times the zip's size; real ones stay below 30
_MOST_AS_KNOWN = 10  # times the known size of the data, which is a rough figure for some
_HARMLESS_BYTES = 1 << 30
_LOCAL_HEADER_BYTES = 30
_AT_ONCE = 4 << 20  # bytes up to which a member is read whole instead of through a stream
_BLOCK = 1 << 20
_ENCRYPTED = 0x1
UNUSUAL = re.compile(r"(^|/)\.{0,2}(/|$)|\\")  # paths that are not in normal form


def _ignore(count: int) -> None:
    del count


class ZipTree:
    """The files and folders of a zip, by path."""

    def __init__(
        self, path: Path, archive: FileIO, members: Iterable[zipfile.ZipInfo], known_bytes: int | None
    ) -> None:
        self.path = path
        self._archive = archive
        self._files: dict[str, zipfile.ZipInfo] = {}
        self._folders = {"."}
        for member in members:
            name = member.filename
            place = safe_path(name).as_posix() if UNUSUAL.search(name) else name
            if name.endswith(("/", "\\")):
                self._add_folders(place)
                continue
            if place in self._files:
                raise self._refused(f"two of its members have the path {place}")
            self._files[place] = member
            self._add_folders(place.rpartition("/")[0] or ".")
        mixed = self._folders & self._files.keys()
        if mixed:
            raise self._refused(f"two of its members have the path {min(mixed)}")
        for member in self._files.values():
            if odd := _oddity(member):
                raise self._refused(f"its member {member.filename} {odd}")
        self._refuse_bombs(known_bytes)

    def _add_folders(self, folder: str) -> None:
        while folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0] or "."

    def _refuse_bombs(self, known_bytes: int | None) -> None:
        size = self.path.stat().st_size
        if self.size > size * _MOST_INFLATED + _HARMLESS_BYTES:
            raise self._refused(f"its {size:,} bytes claim to inflate to {self.size:,}")
        if known_bytes is not None and self.size > known_bytes * _MOST_AS_KNOWN + _HARMLESS_BYTES:
            raise self._refused(
                f"it claims to inflate to {self.size:,} bytes, about {known_bytes:,} are known"
            )
        end = 0
        for member in sorted(self._files.values(), key=lambda member: member.header_offset):
            if member.header_offset < end:
                raise self._refused(f"its member {member.filename} overlaps another one")
            end = member.header_offset + _LOCAL_HEADER_BYTES + member.compress_size
        if end > size:
            raise self._refused("its members reach beyond its end")

    @cached_property
    def size(self) -> int:
        """The total size of the files in bytes."""
        return sum(member.file_size for member in self._files.values())

    @property
    def files(self) -> list[str]:
        """The paths of all files, in the order of their positions in the zip."""
        return sorted(self._files, key=lambda place: self._files[place].header_offset)

    @property
    def folders(self) -> list[str]:
        """The paths of all folders, each after the one it lies in."""
        return sorted(self._folders)

    def is_file(self, place: str) -> bool:
        """Return whether there is a file with this path."""
        return place in self._files

    def is_folder(self, place: str) -> bool:
        """Return whether there is a folder with this path."""
        return place in self._folders

    def member(self, place: str) -> zipfile.ZipInfo:
        """Return the member with this path.

        Raises:
            FileNotFoundError: there is none.
        """
        if place not in self._files:
            raise FileNotFoundError(2, "No such file in the zip", str(self.path / place))
        return self._files[place]

    def names_in(self, folder: str) -> list[str]:
        """Return the names of the files and folders directly in a folder."""
        if folder not in self._folders:
            raise FileNotFoundError(2, "No such folder in the zip", str(self.path / folder))
        return self._names.get(folder, [])

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for place in (*self._files, *self._folders - {"."}):
            folder, _, name = place.rpartition("/")
            names.setdefault(folder or ".", []).append(name)
        return names

    def open(self, place: str) -> BufferedReader:
        """Open the file at a path."""
        return zip_members.opened(self._archive, self.member(place))

    def read(self, place: str) -> bytes:
        """Read the whole file at a path."""
        member = self.member(place)
        if max(member.file_size, member.compress_size) <= _AT_ONCE:
            return zip_members.read(self._archive, member)
        with self.open(place) as stream:
            return stream.read()

    def copy(self, place: str, target: IO[bytes], on_written: Callable[[int], None] = _ignore) -> None:
        """Copy the file at a path to an open one, calling `on_written` with the size of each block written."""
        if self.member(place).file_size <= _AT_ONCE:
            on_written(target.write(self.read(place)))
            return
        with self.open(place) as stream:
            while block := stream.read(_BLOCK):
                on_written(target.write(block))

    def _refused(self, why: str) -> DataProblem:
        return DataProblem(f"{self.path} was refused", why)


@contextmanager
def opened(path: Path, *, known_bytes: int | None = None) -> Iterator[ZipTree]:
    """Open a zip as a tree of files that are read in place.

    Args:
        path: the zip.
        known_bytes: roughly the known size of its files together.

    Raises:
        DataProblem: it is not a zip; or a member is a link, encrypted, has a path outside the folder or that of
            another member; or the files would be far too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise DataProblem(
            f"{path} cannot be read as a zip", str(error), "Remove it to have it downloaded again."
        ) from error
    with path.open("rb", buffering=0) as stream:
        yield ZipTree(path, stream, members, known_bytes)


def _oddity(member: zipfile.ZipInfo) -> str | None:
    """Return why a member is refused regardless of its content; None if it is not."""
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        return "is a link or a device"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed by an unknown method"
    return None


@dataclass(frozen=True)
class _Size:
    st_size: int


@dataclass(frozen=True, eq=False)
class ZipPath:
    """A file or folder of a zip with the interface of `pathlib.Path`; see `competitions.raw`."""

    _tree: ZipTree
    _place: str = "."

    def __str__(self) -> str:
        return str(self._tree.path / self._place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZipPath) and (self._tree, self._place) == (other._tree, other._place)

    def __hash__(self) -> int:
        return hash(self._place)

    def __lt__(self, other: ZipPath) -> bool:
        return self._place.split("/") < other._place.split("/")

    def __truediv__(self, key: str | os.PathLike[str]) -> ZipPath:
        name = os.fspath(key)
        if self._place == "." or UNUSUAL.search(name):
            return ZipPath(self._tree, str(PurePosixPath(self._place, name)))
        return ZipPath(self._tree, f"{self._place}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self._place.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last part without its suffix."""
        return PurePosixPath(self._place).stem

    @property
    def suffix(self) -> str:
        """The suffix with its dot."""
        return PurePosixPath(self._place).suffix

    @property
    def parent(self) -> ZipPath:
        """The folder it lies in."""
        return ZipPath(self._tree, self._place.rpartition("/")[0] or ".")

    def relative_to(self, other: ZipPath) -> PurePosixPath:
        """Return the path relative to a folder that it lies below."""
        return PurePosixPath(self._place).relative_to(other._place)

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self._tree.is_file(self._place)

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return self._tree.is_folder(self._place)

    def iterdir(self) -> Iterator[ZipPath]:
        """Yield what lies directly in a folder."""
        return (self / name for name in self._tree.names_in(self._place))

    def glob(self, pattern: str) -> Iterator[ZipPath]:
        """Yield what lies below and matches a pattern, part by part."""
        first, _, rest = pattern.partition("/")
        for path in self.iterdir() if self.is_dir() else ():
            if fnmatchcase(path.name, first):
                if not rest:
                    yield path
                else:
                    yield from path.glob(rest)

    def rglob(self, pattern: str) -> Iterator[ZipPath]:
        """Yield everything below, at any depth, whose name matches a pattern."""
        for path in self.iterdir() if self.is_dir() else ():
            if fnmatchcase(path.name, pattern):
                yield path
            yield from path.rglob(pattern)

    def stat(self) -> _Size:
        """Return the size of a file."""
        return _Size(self._tree.member(self._place).file_size)

    def open(self, mode: Literal["rb"]) -> BufferedReader:
        """Open a file."""
        del mode  # only "rb" is supported
        return self._tree.open(self._place)

    def read_bytes(self) -> bytes:
        """Read a whole file."""
        return self._tree.read(self._place)

    def read_text(self, encoding: str) -> str:
        """Read a whole file as text."""
        return self.read_bytes().decode(encoding)

    def copy_to(self, target: IO[bytes]) -> None:
        """Copy it to an open file."""
        self._tree.copy(self._place, target)
