"""Reading a submission that an agent wrote: caps on bytes, columns and rows before pandas sees it."""

from __future__ import annotations

import csv
import io
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from foundation.files import reading_untrusted
from foundation.problems import LFS_POINTER, DataProblem

if TYPE_CHECKING:
    import pandas as pd

_CHUNK = 1 << 20
_MARGIN = 10  # a submission may be this many times as large as the larger of answers and sample
_SPARE_BYTES = 64 << 20
_SPARE_LINES = 1_000_000
_SPARE_COLUMNS = 10_000
_HEADER_BYTES = 1 << 20


class NoSubmission(Exception):
    """There is no file to grade."""


class NotCsv(Exception):
    """The file is there but cannot be read as a table."""


@dataclass(frozen=True)
class SizeLimits:
    """How large a submission may be."""

    bytes: int
    lines: int
    columns: int


def limits_for(answers: Path, sample: Path) -> SizeLimits:
    """Limits far above what a right submission needs, from the files that it must resemble."""
    size = max((path.stat().st_size for path in (answers, sample) if path.is_file()), default=0)
    header = _first_line(sample).count(b",") + 1
    return SizeLimits(
        bytes=_MARGIN * size + _SPARE_BYTES,
        lines=_MARGIN * _lines(sample, answers) + _SPARE_LINES,
        columns=_MARGIN * header + _SPARE_COLUMNS,
    )


def limits_like(table: pd.DataFrame) -> SizeLimits:
    """The same for a right submission that is as large as this table."""
    size = int(table.memory_usage(index=False, deep=True).sum())
    return SizeLimits(
        bytes=_MARGIN * size + _SPARE_BYTES,
        lines=_MARGIN * len(table) + _SPARE_LINES,
        columns=_MARGIN * len(table.columns) + _SPARE_COLUMNS,
    )


def _first_line(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as stream:
        return stream.readline(_HEADER_BYTES)


def _lines(*paths: Path) -> int:
    # Only an upper bound is wanted, and counting would read large answers twice: a line has at least two bytes.
    return max((path.stat().st_size // 2 for path in paths if path.is_file()), default=0)


@dataclass(frozen=True)
class SubmissionFile:
    """A submission on disk; every read checks it anew.

    Attributes:
        path: the file, or None when a run left none.
        limits: how large it may be.
        follow_links: whether a symbolic link is accepted.
    """

    path: Path | None
    limits: SizeLimits
    follow_links: bool = False

    def read(self, *, text: tuple[str, ...] | None = None) -> pd.DataFrame:
        """Read the table, the named columns as verbatim text (all columns with an empty tuple).

        Raises:
            NoSubmission: there is no file with a name in `.csv`.
            NotCsv: it is too large, no text, or no table; the message says what and where.
        """
        from competitions.kit import tables

        with self._open() as stream:
            self._scan(stream)
            stream.seek(0)
            try:
                return tables.read_csv(stream, text=text)
            except UnicodeDecodeError as error:
                raise NotCsv(
                    f"The file is not UTF-8 text (byte {error.object[error.start]:#04x}); write it as UTF-8."
                ) from error
            except (ValueError, OverflowError, csv.Error) as error:  # pandas' ParserError is a ValueError
                raise NotCsv(f"The file cannot be read as CSV: {_one_line(error)}") from error

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.path is None:
            raise NoSubmission("There is no submission.")
        if self.path.suffix.lower() != ".csv":
            raise NoSubmission(f"{self.path.name!r} is not named *.csv.")
        try:
            path = self.path.resolve() if self.follow_links else self.path
            if not stat.S_ISREG(path.lstat().st_mode):
                raise NoSubmission(f"{self.path.name!r} is not a regular file.")
            with reading_untrusted(path, max_bytes=self.limits.bytes) as stream:
                yield stream
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NoSubmission(f"There is no file {self.path.name!r}.") from error
        except (DataProblem, OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
            raise NotCsv(_one_line(error)) from error

    def _scan(self, stream: IO[bytes]) -> None:
        import numpy as np

        if stream.read(len(LFS_POINTER)) == LFS_POINTER:
            raise NotCsv("The file is a Git LFS pointer; the file itself has not been fetched.")
        stream.seek(0)
        lines = 0
        while chunk := stream.read(_CHUNK):
            if b"\0" in chunk:
                # pandas 2.2 cut a cell at a NUL and 3.1 keeps it: refusing is the same everywhere
                raise NotCsv("The file holds NUL bytes; it is not a text file, or not in UTF-8.")
            # numpy counts a frequent byte five times as fast as bytes.count, which is made for rare ones
            lines += int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n")))
            lines += chunk.count(b"\r") if b"\r" in chunk else 0
        if lines > self.limits.lines:
            raise NotCsv(f"The file has {lines:,} lines, at most {self.limits.lines:,} are taken.")
        stream.seek(0)
        head = io.TextIOWrapper(
            io.BytesIO(stream.read(_HEADER_BYTES)), encoding="utf-8", errors="replace", newline=""
        )
        try:
            widths = [len(row) for _, row in zip(range(2), csv.reader(head), strict=False)]
        except csv.Error:
            return  # a cell longer than csv's own cap: few columns can hide behind it, pandas decides
        if max(widths, default=0) > self.limits.columns:
            raise NotCsv(f"The file has {max(widths):,} columns, at most {self.limits.columns:,} are taken.")


def _one_line(error: BaseException) -> str:
    # what an agent wrote may be in it: no control character, no text beyond ASCII passes
    text = " ".join(str(error).split())
    return "".join(char if " " <= char <= "~" else "?" for char in text)[:300]
