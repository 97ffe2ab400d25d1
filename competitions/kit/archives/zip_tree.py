"""A zip as the tree of files that it holds, each read from where it lies; it extracts nothing unasked.

The whole is found harmless before anything is taken from it.
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

from competitions.kit.archives import safe_path, zip_members
from foundation.problems import DataProblem

_MOST_INFLATED = 200  # times the zip: the real ones stay below 30, and nobody's data need more
_MOST_AS_KNOWN = 10  # times what the data are known to come to, which is a rough figure for some
_HARMLESS_BYTES = 1 << 30
_LOCAL_HEADER_BYTES = 30
_AT_ONCE = 4 << 20  # bytes of a member that is rather read at one go than through a stream
_BLOCK = 1 << 20
_ENCRYPTED = 0x1
UNUSUAL = re.compile(r"(^|/)\.{0,2}(/|$)|\\")  # paths that are not spelt in the shortest way


def _nobody(count: int) -> None:
    del count


class ZipTree:
    """What a zip holds, by path."""

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
                raise self._refused(f"two of its members would lie at {place}")
            self._files[place] = member
            self._add_folders(place.rpartition("/")[0] or ".")
        mixed = self._folders & self._files.keys()
        if mixed:
            raise self._refused(f"two of its members would lie at {min(mixed)}")
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
        """How many bytes the files have together."""
        return sum(member.file_size for member in self._files.values())

    @property
    def files(self) -> list[str]:
        """The paths of all files, in the order in which they lie in the zip."""
        return sorted(self._files, key=lambda place: self._files[place].header_offset)

    @property
    def folders(self) -> list[str]:
        """The paths of all folders, each behind the one it lies in."""
        return sorted(self._folders)

    def is_file(self, place: str) -> bool:
        """Whether a file lies there."""
        return place in self._files

    def is_folder(self, place: str) -> bool:
        """Whether a folder lies there."""
        return place in self._folders

    def member(self, place: str) -> zipfile.ZipInfo:
        """The member that is the file at a path.

        Raises:
            FileNotFoundError: there is none.
        """
        if place not in self._files:
            raise FileNotFoundError(2, "No such file in the zip", str(self.path / place))
        return self._files[place]

    def names_in(self, folder: str) -> list[str]:
        """The names of what lies directly in a folder."""
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
        """All of the file at a path."""
        member = self.member(place)
        if max(member.file_size, member.compress_size) <= _AT_ONCE:
            return zip_members.read(self._archive, member)
        with self.open(place) as stream:
            return stream.read()

    def copy(self, place: str, target: IO[bytes], tell: Callable[[int], None] = _nobody) -> None:
        """Write the file at a path to an open one, telling how many bytes have been added."""
        if self.member(place).file_size <= _AT_ONCE:
            tell(target.write(self.read(place)))
            return
        with self.open(place) as stream:
            while block := stream.read(_BLOCK):
                tell(target.write(block))

    def _refused(self, why: str) -> DataProblem:
        return DataProblem(f"{self.path} was not taken", why)


@contextmanager
def opened(path: Path, *, known_bytes: int | None = None) -> Iterator[ZipTree]:
    """Open a zip whose files are then read from where they lie.

    Args:
        path: the zip.
        known_bytes: about how much it is known to inflate to.

    Raises:
        DataProblem: it is no zip, or would write outside its folder, over itself, or beyond all measure.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise DataProblem(
            f"{path} cannot be read as a zip", str(error), "Remove it; it is downloaded again then."
        ) from error
    with path.open("rb", buffering=0) as stream:
        yield ZipTree(path, stream, members, known_bytes)


def _oddity(member: zipfile.ZipInfo) -> str | None:
    """Why a member is not taken whatever it holds, if so."""
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        return "is a link or a device"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in a way that is not known"
    return None


@dataclass(frozen=True)
class _Size:
    st_size: int


@dataclass(frozen=True, eq=False)
class ZipPath:
    """A file or folder of a zip, used as a `pathlib.Path` is; see `competitions.raw`."""

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
        """The way to it from a folder that it lies below."""
        return PurePosixPath(self._place).relative_to(other._place)

    def exists(self) -> bool:
        """Whether there is such a file or folder."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Whether it is a file."""
        return self._tree.is_file(self._place)

    def is_dir(self) -> bool:
        """Whether it is a folder."""
        return self._tree.is_folder(self._place)

    def iterdir(self) -> Iterator[ZipPath]:
        """What lies directly in a folder."""
        return (self / name for name in self._tree.names_in(self._place))

    def glob(self, pattern: str) -> Iterator[ZipPath]:
        """What lies below and matches a pattern, part by part."""
        first, _, rest = pattern.partition("/")
        for path in self.iterdir() if self.is_dir() else ():
            if fnmatchcase(path.name, first):
                if not rest:
                    yield path
                else:
                    yield from path.glob(rest)

    def rglob(self, pattern: str) -> Iterator[ZipPath]:
        """What lies anywhere below and has a name that matches a pattern."""
        for path in self.iterdir() if self.is_dir() else ():
            if fnmatchcase(path.name, pattern):
                yield path
            yield from path.rglob(pattern)

    def stat(self) -> _Size:
        """How large a file is."""
        return _Size(self._tree.member(self._place).file_size)

    def open(self, mode: Literal["rb"]) -> BufferedReader:
        """Open a file."""
        del mode  # there is no other one
        return self._tree.open(self._place)

    def read_bytes(self) -> bytes:
        """All of a file."""
        return self._tree.read(self._place)

    def read_text(self, encoding: str) -> str:
        """All of a file as text."""
        return self.read_bytes().decode(encoding)

    def copy_to(self, target: IO[bytes]) -> None:
        """Write it to an open file."""
        self._tree.copy(self._place, target)
