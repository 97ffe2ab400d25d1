"""A zip as the tree of files that it holds, each read from where it lies; it extracts nothing unasked.

The whole is found harmless before anything is taken from it.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

import numpy as np

from competitions.kit.archives import safe_path, zip_directory, zip_members
from competitions.kit.archives.zip_members import DEFLATED, STORED, Member
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
        self,
        path: Path,
        descriptor: int,
        found: zip_directory.Members,
        known_bytes: int | None,
    ) -> None:
        self.path = path
        self.members = found
        self._descriptor = descriptor
        self._rows: dict[str, int] = {}
        self._folders = {"."}
        for row, name in enumerate(found.names):
            place = safe_path(name).as_posix() if UNUSUAL.search(name) else name
            if name.endswith(("/", "\\")):
                self._add_folders(place)
                continue
            if place in self._rows:
                raise self._refused(f"two of its members would lie at {place}")
            self._rows[place] = row
            self._add_folders(place.rpartition("/")[0] or ".")
        mixed = self._folders & self._rows.keys()
        if mixed:
            raise self._refused(f"two of its members would lie at {min(mixed)}")
        self._refuse_odd()
        self._refuse_bombs(known_bytes)

    def _add_folders(self, folder: str) -> None:
        while folder not in self._folders:
            self._folders.add(folder)
            folder = folder.rpartition("/")[0] or "."

    def _refuse_odd(self) -> None:
        found, rows = self.members, self._file_rows
        kinds = found.attributes[rows] >> 16 & 0o170000
        for reason, flags in (
            ("is a link or a device", ~np.isin(kinds, [0, stat.S_IFREG])),
            ("is encrypted", found.flags[rows] & _ENCRYPTED != 0),
            ("is compressed in a way that is not known", ~np.isin(found.methods[rows], [STORED, DEFLATED])),
        ):
            if flags.any():
                raise self._refused(f"its member {found.names[rows[int(flags.argmax())]]} {reason}")

    def _refuse_bombs(self, known_bytes: int | None) -> None:
        size = self.path.stat().st_size
        if self.size > size * _MOST_INFLATED + _HARMLESS_BYTES:
            raise self._refused(f"its {size:,} bytes claim to inflate to {self.size:,}")
        if known_bytes is not None and self.size > known_bytes * _MOST_AS_KNOWN + _HARMLESS_BYTES:
            raise self._refused(
                f"it claims to inflate to {self.size:,} bytes, about {known_bytes:,} are known"
            )
        rows = self._file_rows
        rows = rows[np.argsort(self.members.offsets[rows], kind="stable")]
        starts = self.members.offsets[rows]
        ends = starts + _LOCAL_HEADER_BYTES + self.members.packed[rows]
        overlapping = starts[1:] < ends[:-1]
        if overlapping.any():
            name = self.members.names[rows[int(overlapping.argmax()) + 1]]
            raise self._refused(f"its member {name} overlaps another one")
        if len(ends) and ends[-1] > size:
            raise self._refused("its members reach beyond its end")

    @property
    def _file_rows(self) -> Any:
        return np.fromiter(self._rows.values(), dtype=np.intp, count=len(self._rows))

    @property
    def size(self) -> int:
        """How many bytes the files have together."""
        return int(self.members.sizes[self._file_rows].sum())

    @property
    def files(self) -> list[str]:
        """The paths of all files, in the order in which they lie in the zip."""
        offsets = self.members.offsets
        return sorted(self._rows, key=lambda place: int(offsets[self._rows[place]]))

    @property
    def folders(self) -> list[str]:
        """The paths of all folders, each behind the one it lies in."""
        return sorted(self._folders)

    def is_file(self, place: str) -> bool:
        """Whether a file lies there."""
        return place in self._rows

    def is_folder(self, place: str) -> bool:
        """Whether a folder lies there."""
        return place in self._folders

    def member(self, place: str) -> Member:
        """The member that is the file at a path.

        Raises:
            FileNotFoundError: there is none.
        """
        row = self._rows.get(place)
        if row is None:
            raise FileNotFoundError(2, "No such file in the zip", str(self.path / place))
        found = self.members
        return Member(
            name=found.names[row],
            method=int(found.methods[row]),
            offset=int(found.offsets[row]),
            packed=int(found.packed[row]),
            size=int(found.sizes[row]),
            crc=int(found.crcs[row]),
        )

    def names_in(self, folder: str) -> list[str]:
        """The names of what lies directly in a folder."""
        if folder not in self._folders:
            raise FileNotFoundError(2, "No such folder in the zip", str(self.path / folder))
        return self._names.get(folder, [])

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for place in (*self._rows, *self._folders - {"."}):
            folder, _, name = place.rpartition("/")
            names.setdefault(folder or ".", []).append(name)
        return names

    def open(self, place: str) -> BufferedReader:
        """Open the file at a path."""
        return zip_members.opened(self._descriptor, self.member(place), self._damaged)

    def read(self, place: str) -> bytes:
        """All of the file at a path."""
        member = self.member(place)
        if max(member.size, member.packed) <= _AT_ONCE:
            return zip_members.read(self._descriptor, member, self._damaged)
        with self.open(place) as stream:
            return stream.read()

    def copy(self, place: str, target: IO[bytes], tell: Callable[[int], None] = _nobody) -> None:
        """Write the file at a path to an open one, telling how many bytes have been added."""
        if self.member(place).size <= _AT_ONCE:
            tell(target.write(self.read(place)))
            return
        with self.open(place) as stream:
            while block := stream.read(_BLOCK):
                tell(target.write(block))

    def _damaged(self, member: Member, why: str) -> DataProblem:
        return DataProblem(
            f"{self.path} is damaged", f"{member.name}: {why}", "Remove it; it is downloaded again then."
        )

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
        found = zip_directory.read(path)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise DataProblem(
            f"{path} cannot be read as a zip", str(error), "Remove it; it is downloaded again then."
        ) from error
    with path.open("rb") as stream:
        yield ZipTree(path, stream.fileno(), found, known_bytes)


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
        return _Size(self._tree.member(self._place).size)

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
