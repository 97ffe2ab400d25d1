"""Read an agent's output, logs and code line by line, as hostile files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mlebench_console.engine.integrity.code import SourceFile
from mlebench_console.engine.integrity.material import ExaminedRun, read_source, walk_files
from mlebench_console.environment.container.run_log import log_parts
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.files import reading_untrusted
from mlebench_console.foundation.problems import DataProblem

Kind = Literal["log", "code"]

_LONGEST_LINE = 1 << 20
_MOST_FILE_BYTES = 256 << 20
_LOG_SUFFIXES = frozenset({"", ".log", ".txt", ".md", ".out", ".err", ".json", ".jsonl", ".csv", ".yaml"})
_CODE_SUFFIXES = frozenset({".sh", ".bash", ".r", ".jl", ".cpp", ".js", ".toml", ".cfg"})


@dataclass(frozen=True)
class TextFile:
    """A file that an agent wrote.

    Attributes:
        path: below the attempt's directory.
        lines: without line ends; can be iterated once.
    """

    path: str
    kind: Kind
    lines: Iterable[bytes]


def texts_of(examined: ExaminedRun) -> Iterator[TextFile]:
    """Yield the texts of a run: its output, the files in `logs/`, and its code."""
    for part in log_parts(examined.log):
        yield TextFile(part.path.relative_to(examined.folder).as_posix(), "log", _lines_in(part.path))
    unread: list[str] = []
    for path in walk_files(examined.folder / protocol.LOGS, unread):
        suffix = path.suffix.lower()
        if suffix in _LOG_SUFFIXES or suffix == ".py":
            kind: Kind = "code" if suffix == ".py" else "log"
            yield TextFile(path.relative_to(examined.folder).as_posix(), kind, _lines_in(path))
    for source in examined.code.files:
        yield TextFile(source.path, "code", _lines_of_code(examined, source))
    for path in walk_files(examined.folder / protocol.CODE, unread):
        if path.suffix.lower() in _CODE_SUFFIXES:
            yield TextFile(path.relative_to(examined.folder).as_posix(), "code", _lines_in(path))


def _lines_of_code(examined: ExaminedRun, source: SourceFile) -> Iterator[bytes]:
    """Yield the lines of a source file; for a notebook including IPython commands, with the same line numbers."""
    lines = source.lines
    if source.path.endswith(".ipynb"):
        with suppress(DataProblem):  # it has changed since it was read
            lines = read_source(examined.folder / source.path, with_commands=True).split("\n")
    for line in lines:
        yield line.encode("utf-8", "replace")


def _lines_in(path: Path) -> Iterator[bytes]:
    """Yield a file's lines, up to limits for the file and each line; nothing where it can't be read."""
    try:
        with reading_untrusted(path) as stream:
            is_inside = False
            while stream.tell() < _MOST_FILE_BYTES and (piece := stream.readline(_LONGEST_LINE)):
                if not is_inside:
                    yield piece.rstrip(b"\n")
                is_inside = not piece.endswith(b"\n")
    except DataProblem:
        return  # a link, a pipe, or a file that no longer exists
