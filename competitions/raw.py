"""Access to raw data: files and folders by name, on disk or inside the zip that Kaggle delivers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, Literal, Protocol, Self, TypeVar, cast, runtime_checkable

from mlebench_console.foundation.problems import DataProblem


class RawDataProblem(DataProblem):
    """Raw data are damaged, incomplete or not in the expected form; downloading them again may help."""

    def __init__(
        self,
        what: str,
        why: str = "",
        next_step: str = "Download the competition's data again.",
        *,
        subject: str = "",
    ) -> None:
        super().__init__(what, why, next_step, subject=subject)


@contextmanager
def read_as(what: str, path: object, *faults: type[Exception]) -> Iterator[None]:
    """Turn these errors, of reading a raw file inside, into the problem that it cannot be read as this.

    Raises:
        RawDataProblem: it cannot be read.
    """
    try:
        yield
    except faults as error:
        kind = type(error).__name__
        why = (
            f"{kind}: {error}" if isinstance(error, LookupError | TypeError | AttributeError) else str(error)
        )
        raise RawDataProblem(f"{path} cannot be read as {what}", why or kind) from error


class HasSize(Protocol):
    """The result of `RawPath.stat`."""

    @property
    def st_size(self) -> int:
        """How many bytes it has."""


@runtime_checkable
class RawPath(Protocol):
    """A raw file or folder: a `pathlib.Path`, or a member of the zip that Kaggle delivers.

    It has the methods of `Path` that work without extracting anything, with the same meaning.
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
        """Return the path of something below."""

    def __lt__(self, other: Any, /) -> bool:
        """Compare by parts."""

    def __hash__(self) -> int:
        """Return equal hashes for equal paths."""

    def relative_to(self, other: Self, /) -> PurePath:
        """Return the path relative to a folder that it lies below."""

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""

    def is_file(self) -> bool:
        """Return whether it is a file."""

    def is_dir(self) -> bool:
        """Return whether it is a folder."""

    def iterdir(self) -> Iterator[Self]:
        """Yield what lies directly in a folder, in any order."""

    def glob(self, pattern: str, /) -> Iterator[Self]:
        """Yield what lies below and matches a pattern, part by part, in any order."""

    def rglob(self, pattern: str, /) -> Iterator[Self]:
        """Yield everything below, at any depth, whose name matches a pattern, in any order."""

    def stat(self) -> HasSize:
        """Return the size of a file."""

    def open(self, mode: Literal["rb"]) -> BufferedReader:
        """Open a seekable file, though going back may take as long as reading it again."""

    def read_bytes(self) -> bytes:
        """Read a whole file."""

    def read_text(self, encoding: str) -> str:
        """Read a whole file as text."""


AnyPath = TypeVar("AnyPath", bound=RawPath)


def is_regular(path: RawPath) -> bool:
    """Return whether it is a regular file and not a link to one."""
    return path.is_file() and not (isinstance(path, Path) and path.is_symlink())


def walk(folder: AnyPath) -> Iterator[tuple[AnyPath, list[str]]]:
    """Yield a folder and all folders below it, each with the names of the files in it."""
    if isinstance(folder, Path):  # os.walk needs no stat of each file
        for base, _, names in os.walk(folder):
            yield cast(AnyPath, Path(base)), names
        return
    inside = list(folder.iterdir())
    yield folder, [path.name for path in inside if not path.is_dir()]
    for path in inside:
        if path.is_dir():
            yield from walk(path)
