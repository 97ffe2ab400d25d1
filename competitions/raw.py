"""What raw data are to those who read them: files and folders by name, wherever they lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BufferedReader
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol, Self, TypeVar, cast, runtime_checkable

from foundation.problems import DataProblem


class RawDataProblem(DataProblem):
    """Raw data are damaged, incomplete or not as they are known to be; another download is what helps."""

    def __init__(
        self, what: str, why: str = "", next_step: str = "Download the competition's data again."
    ) -> None:
        super().__init__(what, why, next_step)


class HasSize(Protocol):
    """What is asked of a file without opening it."""

    @property
    def st_size(self) -> int:
        """How many bytes it has."""


@runtime_checkable
class RawPath(Protocol):
    """A raw file or folder: a `pathlib.Path`, or a member of the zip that Kaggle delivers.

    It is that part of a `Path` which can be had without extracting anything, and means the same.
    """

    @property
    def name(self) -> str:
        """The last part."""

    @property
    def stem(self) -> str:
        """The last part without its suffix."""

    @property
    def suffix(self) -> str:
        """The suffix with its dot."""

    @property
    def parent(self) -> Self:
        """The folder it lies in."""

    def __truediv__(self, key: str | PathLike[str], /) -> Self:
        """What lies below."""

    def __lt__(self, other: Any, /) -> bool:
        """By its parts."""

    def __hash__(self) -> int:
        """The same for the same file."""

    def relative_to(self, other: Self, /) -> PurePath:
        """The way to it from a folder that it lies below."""

    def exists(self) -> bool:
        """Whether there is such a file or folder."""

    def is_file(self) -> bool:
        """Whether it is a file."""

    def is_dir(self) -> bool:
        """Whether it is a folder."""

    def iterdir(self) -> Iterator[Self]:
        """What lies directly in a folder, in any order."""

    def glob(self, pattern: str, /) -> Iterator[Self]:
        """What lies below and matches a pattern, part by part, in any order."""

    def rglob(self, pattern: str, /) -> Iterator[Self]:
        """What lies anywhere below and has a name that matches a pattern, in any order."""

    def stat(self) -> HasSize:
        """How large a file is."""

    def open(self, mode: Literal["rb"]) -> BufferedReader:
        """Open a file; it can be sought in, though going back may take as long as reading it again."""

    def read_bytes(self) -> bytes:
        """All of a file."""

    def read_text(self, encoding: str) -> str:
        """All of a file as text."""


AnyPath = TypeVar("AnyPath", bound=RawPath)


def is_regular(path: RawPath) -> bool:
    """Whether it is a file itself, and no link to one."""
    return path.is_file() and not (isinstance(path, Path) and path.is_symlink())


def walk(folder: AnyPath) -> Iterator[tuple[AnyPath, list[str]]]:
    """A folder and all those below it, each with the names of what it holds besides folders."""
    if isinstance(folder, Path):  # it tells files from folders without a look at each
        for base, _, names in os.walk(folder):
            yield cast(AnyPath, Path(base)), names
        return
    inside = list(folder.iterdir())
    yield folder, [path.name for path in inside if not path.is_dir()]
    for path in inside:
        if path.is_dir():
            yield from walk(path)
