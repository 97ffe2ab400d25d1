"""The input of detectors: a run with its code, log and submission, all read as hostile files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition, edition_named
from mlebench_console.engine.integrity.code import SourceFile
from mlebench_console.engine.integrity.tables import Predictions, read_predictions, sample_of
from mlebench_console.engine.layout import DatasetFolder, dataset_folder
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import jsonlines
from mlebench_console.foundation.files import file_hash, reading_untrusted
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state import runs, submissions, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import Attempt, Run, Submission, SweepSpec
from mlebench_console.state.submissions import HandedIn

# A larger script is data: of 598 public notebooks the largest had 909 kB, with its pictures.
MOST_CODE_BYTES = 2_000_000
_MOST_NOTEBOOK_BYTES = 8 << 20
_MOST_FILES = 2_000
_MOST_ENTRIES = 20_000
_MOST_TOTAL_BYTES = 32 << 20


@dataclass(frozen=True)
class Code:
    """The Python files that an agent wrote, and what was not read, with the reason."""

    files: tuple[SourceFile, ...]
    unread: tuple[str, ...]
    entries: int


@dataclass(frozen=True)
class ExaminedRun:
    """A run that detectors examine: its latest attempt.

    Attributes:
        folder: the attempt's directory.
        submissions: from first to latest.
        twins: other runs whose final submission has the same bytes.
    """

    run: Run
    attempt: Attempt
    spec: SweepSpec
    folder: Path
    state_dir: Path
    submissions: tuple[Submission, ...] = ()
    twins: tuple[HandedIn, ...] = ()

    @property
    def competition(self) -> Competition:
        """Its competition."""
        return registry.get(self.run.competition_id)

    @property
    def dataset(self) -> DatasetFolder:
        """The folder of its dataset, which may have been removed."""
        edition = edition_named(self.spec.conditions.edition)
        return dataset_folder(self.competition, self.spec.data_dir or None, edition)

    @property
    def final(self) -> Submission | None:
        """Its final submission."""
        return next((one for one in self.submissions if one.final), None)

    @property
    def log(self) -> Path:
        """The log of its agent's output."""
        return self.folder / protocol.LOG

    @cached_property
    def code(self) -> Code:
        """The Python code in `code/`."""
        return read_code(self.folder, protocol.CODE)

    @cached_property
    def predictions(self) -> Predictions | None:
        """The predictions of its final submission; None without one, or where it is not a table, as its grade says."""
        if self.final is None:
            return None
        with suppress(DataProblem):
            return read_predictions(self.state_dir / self.final.path)
        return None

    @property
    def sample(self) -> Predictions | None:
        """The predictions of the sample submission; None where it does not exist."""
        return sample_of(self.dataset.prepared / self.competition.sample_submission)

    @cached_property
    def content(self) -> str:
        """A hash of everything that detectors examine: code, log, calls and submissions."""
        total = hashlib.sha256()
        for one in self.code.files:
            total.update(f"{one.path}\0{one.text}\0".encode("utf-8", "replace"))
        for name in (protocol.LOG, protocol.VALIDATIONS, protocol.USAGE, protocol.TRAFFIC):
            total.update(file_hash(self.folder / name).encode() + b"\0")
        total.update(json.dumps([[one.sha256, one.final] for one in self.submissions]).encode())
        total.update(json.dumps([[one.run_id, one.sha256] for one in self.twins]).encode())
        return total.hexdigest()


def examined_runs(database: Database, run_ids: Collection[int]) -> list[ExaminedRun]:
    """Return the runs that can be examined: those that have ended and had an attempt."""
    state_dir = database.path.parent
    shared: dict[str, list[HandedIn]] = {}
    for one in submissions.handed_in_by_several(database):
        shared.setdefault(one.sha256, []).append(one)
    specs: dict[str, SweepSpec] = {}
    found = []
    for run_id in run_ids:
        run = runs.get(database, run_id)
        attempt = runs.latest_attempt(database, run_id)
        if attempt is None or not run.has_ended:
            continue
        if run.sweep_id not in specs:
            specs[run.sweep_id] = sweeps.get(database, run.sweep_id).spec
        own = tuple(submissions.of_attempt(database, attempt.id))
        final = next((one.sha256 for one in own if one.final), "")
        twins = tuple(one for one in shared.get(final, ()) if one.run_id != run_id)
        folder = state_dir / attempt.directory
        found.append(ExaminedRun(run, attempt, specs[run.sweep_id], folder, state_dir, own, twins))
    return found


def read_code(folder: Path, below: str) -> Code:
    """Read the Python files and notebooks in a folder tree; links are not followed, and all work is bounded."""
    files: list[SourceFile] = []
    unread: list[str] = []
    total = entries = 0
    for path in walk_files(folder / below, unread):
        entries += 1
        if path.suffix not in (".py", ".ipynb"):
            continue
        name = _printable(path.relative_to(folder))
        if len(files) >= _MOST_FILES or total >= _MOST_TOTAL_BYTES:
            unread.append(f"{name}: there is more code than the limit")
            break
        try:
            text = read_source(path)
        except DataProblem as problem:
            unread.append(problem.cause)
            continue
        total += len(text)
        files.append(SourceFile(name, text))
    return Code(tuple(files), tuple(unread), entries)


def read_source(path: Path, *, with_commands: bool = False) -> str:
    """Read the code of a script, or of a notebook's code cells; IPython commands become empty lines, or are kept.

    Raises:
        DataProblem: it can't be read, is too large, or is not a notebook.
    """
    is_notebook = path.suffix == ".ipynb"
    limit = _MOST_NOTEBOOK_BYTES if is_notebook else MOST_CODE_BYTES
    with reading_untrusted(path, max_bytes=limit) as stream:
        content = stream.read(limit)
    if is_notebook:
        return code_of_notebook(content, path.name, with_commands=with_commands)
    return decoded(content)


def decoded(content: bytes) -> str:
    """Decode the text of a file, whatever its encoding, with line feeds as line ends."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", "replace")
    else:
        text = content.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def code_of_notebook(content: bytes, name: str = "the notebook", *, with_commands: bool = False) -> str:
    """Return a notebook's code cells with an empty line between them; IPython commands become empty lines, or are kept.

    Raises:
        DataProblem: it is not a notebook.
    """
    try:
        notebook = json.loads(content)
        # Format 3 has worksheets around its cells.
        cells = notebook.get("cells") or notebook["worksheets"][0]["cells"]
        code = [
            _source_of(cell, with_commands=with_commands) for cell in cells if cell.get("cell_type") == "code"
        ]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise DataProblem(f"{name} is not a notebook", type(error).__name__) from error
    return "\n\n".join(code)[:MOST_CODE_BYTES]


def _source_of(cell: dict[str, Any], *, with_commands: bool) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = source if isinstance(source, str) else "".join(part for part in source if isinstance(part, str))
    lines = decoded(text.encode("utf-8", "replace")).split("\n")
    if with_commands:
        return "\n".join(lines)
    if lines and lines[0].startswith("%%") and not lines[0].startswith(("%%time", "%%capture")):
        return "\n".join([""] * len(lines))  # a cell in another language
    return "\n".join("" if _is_command(line) else line for line in lines)


def _is_command(line: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith(("%", "!", "?")) or stripped.endswith("?") or "get_ipython()" in stripped


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the values of a file of JSON lines that the runner or a server has written, read in pieces."""
    offset = 0
    while True:
        piece = jsonlines.read(path, offset)
        yield from piece.values
        if piece.offset == offset:
            return
        offset = piece.offset


def _printable(path: Path) -> str:
    """Return a path as text, even if it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "replace")


def walk_files(folder: Path, unread: list[str]) -> Iterator[Path]:
    """Yield the regular files in a folder tree, sorted; links are added to `unread`."""
    seen = 0
    if folder.is_symlink():
        unread.append(f"{folder.name}: it is a link")
        return
    for parent, folders, names in os.walk(folder, onerror=lambda error: unread.append(str(error.strerror))):
        folders.sort()
        for name in sorted(names):
            seen += 1
            if seen > _MOST_ENTRIES:
                unread.append(f"{folder.name}: there are more files than are looked at")
                return
            path = Path(parent) / name
            if path.is_symlink():
                unread.append(f"{_printable(Path(name))}: it is a link")
            elif path.is_file():
                yield path
