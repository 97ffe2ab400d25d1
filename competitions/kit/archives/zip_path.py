"""A file or folder of an opened zip, used as one on the disk is; what the zip holds is the tree's business."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from io import BufferedReader
from pathlib import PurePosixPath
from typing import IO, Literal

from competitions.kit.archives.zip_tree import UNUSUAL, ZipTree


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
