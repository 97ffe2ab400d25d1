"""Read a submission that an agent wrote, with caps on bytes, columns and rows before pandas reads it."""

from __future__ import annotations

import csv
import io
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mlebench_console.competitions.task import OTHER_SEPARATORS
from mlebench_console.foundation.files import TooLarge, reading_untrusted
from mlebench_console.foundation.problems import LFS_POINTER, DataProblem

if TYPE_CHECKING:
    import pandas as pd

_CHUNK = 1 << 20
_MARGIN = 10  # a submission may be this many times as large as the larger of answers and sample
_SPARE_BYTES = 64 << 20
_SPARE_LINES = 1_000_000
_SPARE_COLUMNS = 10_000
_HEADER_BYTES = 1 << 20
_HEAD = 8
_FORMATS = {
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b": "a gzip file",
    b"PK\x03\x04": "a zip file or a spreadsheet",
    b"PAR1": "a parquet file",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a numpy file",
}
_CELLS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
_OPEN_QUOTE = re.compile("EOF inside string")


class NoSubmission(Exception):
    """There is no file to grade."""


class NotCsv(Exception):
    """The file is there but cannot be read as a table."""


class TooLargeToRead(NotCsv):
    """The file has more bytes, lines or columns than any valid submission."""


@dataclass(frozen=True)
class SizeLimits:
    """How large a submission may be."""

    bytes: int
    lines: int
    columns: int


def limits_for(answers: Path, sample: Path) -> SizeLimits:
    """Return limits far above what a valid submission needs, from the files that it must resemble."""
    size = max((path.stat().st_size for path in (answers, sample) if path.is_file()), default=0)
    header = _first_line(sample).count(b",") + 1
    return SizeLimits(
        bytes=_MARGIN * size + _SPARE_BYTES,
        lines=_MARGIN * _lines(sample, answers) + _SPARE_LINES,
        columns=_MARGIN * header + _SPARE_COLUMNS,
    )


def limits_like(table: pd.DataFrame) -> SizeLimits:
    """Return limits for submissions that are about as large as this table."""
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
    # An upper bound is enough, and counting would read large answers twice: a line has at least two bytes.
    return max((path.stat().st_size // 2 for path in paths if path.is_file()), default=0)


@dataclass(frozen=True)
class SubmissionFile:
    """A submission on disk; every read checks it again.

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
            NoSubmission: there is no file, or its name does not end in `.csv`.
            TooLargeToRead: it has more bytes, lines or columns than allowed.
            NotCsv: it is not text, or not a table; the message says what and where.
        """
        from mlebench_console.competitions.kit import tables

        with self._open() as stream:
            self._scan(stream)
            stream.seek(0)
            try:
                return tables.read_csv(stream, text=text)
            except UnicodeDecodeError as error:
                stream.seek(0)
                found = error.object[error.start]
                raise _not_text(stream.read(_HEAD), f"is not UTF-8 text (byte {found:#04x})") from error
            except (ValueError, OverflowError, csv.Error) as error:  # pandas' ParserError is a ValueError
                stream.seek(0)
                header = stream.readline(_HEADER_BYTES)
                raise NotCsv(f"The file cannot be read as CSV: {_why(error, header)}") from error

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
        except TooLarge as error:
            raise TooLargeToRead(f"The file is too large: {error.why}.") from error
        except (DataProblem, OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
            raise NotCsv(_one_line(error)) from error

    def _scan(self, stream: IO[bytes]) -> None:
        import numpy as np

        if stream.read(len(LFS_POINTER)) == LFS_POINTER:
            raise NotCsv("The file is a Git LFS pointer; the file itself has not been fetched.")
        stream.seek(0)
        lines, head = 0, b""
        while chunk := stream.read(_CHUNK):
            head = head or chunk[:_HEAD]
            if b"\0" in chunk:
                # pandas 2.2 cut a cell at a NUL and 3.1 keeps it: refusing is the same everywhere
                raise _not_text(head, "holds NUL bytes and is no text")
            # numpy counts a frequent byte five times as fast as bytes.count, which is made for rare ones
            lines += int(np.count_nonzero(np.frombuffer(chunk, dtype=np.uint8) == ord("\n")))
            lines += chunk.count(b"\r") if b"\r" in chunk else 0
        if lines > self.limits.lines:
            raise TooLargeToRead(
                f"The file is too large: it has {lines:,} lines, at most {self.limits.lines:,} are taken."
            )
        stream.seek(0)
        text = io.TextIOWrapper(
            io.BytesIO(stream.read(_HEADER_BYTES)), encoding="utf-8", errors="replace", newline=""
        )
        try:
            widths = [len(row) for _, row in zip(range(2), csv.reader(text), strict=False)]
        except csv.Error:
            return  # a cell longer than csv's own cap: few columns can follow it, so pandas decides
        if max(widths, default=0) > self.limits.columns:
            why = f"it has {max(widths):,} columns, at most {self.limits.columns:,} are taken."
            raise TooLargeToRead(f"The file is too large: {why}")


def _not_text(head: bytes, why: str) -> NotCsv:
    """Return the refusal of a file that is not UTF-8 text, naming the format that its first bytes show."""
    known = next((name for sign, name in _FORMATS.items() if head.startswith(sign)), None)
    if known:
        return NotCsv(f"The file {why}: it begins like {known}; write a CSV as plain text in UTF-8.")
    return NotCsv(f"The file {why}; write it as UTF-8.")


def _why(error: BaseException, header: bytes) -> str:
    """Explain pandas' error in terms that the file's author understands."""
    text = _one_line(error)
    separator = next((name for sign, name in OTHER_SEPARATORS.items() if sign.encode() in header), None)
    if separator and b"," not in header:
        return f"its first line has {separator} and no commas; columns are separated by commas."
    if found := _CELLS.search(text):
        expected, line, cells = found.groups()
        return (
            f"line {line} of the file has {cells} cells, the lines above it {expected}; cells are separated by "
            "commas, and one that holds a comma is put in quotation marks."
        )
    if _OPEN_QUOTE.search(text):
        return "a quotation mark is opened and never closed."
    return text


def _one_line(error: BaseException) -> str:
    # it may quote what an agent wrote: control characters and anything beyond ASCII are replaced
    text = " ".join(str(error).split())
    return "".join(char if " " <= char <= "~" else "?" for char in text)[:300]
