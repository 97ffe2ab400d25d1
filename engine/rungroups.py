"""Read and write MLE-bench's files of runs: run groups, their mapping to experiments, and lists of submissions."""

from __future__ import annotations

import json
import os
import shutil
import stat
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from mlebench_console.environment.container.trees import open_file, walk
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.clock import run_group_stamp
from mlebench_console.foundation.files import csv_text, read_csv, reading_untrusted, write_json, write_text
from mlebench_console.foundation.problems import DataProblem, reading, refuse_pointer, writing

METADATA = "metadata.json"
MAPPING_NAME = "run_group_experiments.csv"
# The files of MLE-bench's agents, relative to the run's folder.
SUBMISSION = "submission/submission.csv"
LOG = "logs/agent.log"
CODE = "code/train.py"

_MAPPING_COLUMNS = ("experiment_id", "run_group")
_RUN_IDS = uuid.UUID("8f0e2a64-5f0b-4a55-9d5e-6f1f0f3b1c77")
# At most this much of an agent's logs, and of its code, is copied.
_FOLDER_LIMIT_BYTES = 256 << 20
_LONGEST_PATH = 1024
_PIECE_BYTES = 1 << 20


# Reading run groups


@dataclass(frozen=True)
class RunGroup:
    """A run group: its name, its folder and the ids of its runs in the order of its metadata."""

    name: str
    folder: Path
    run_ids: tuple[str, ...]


def competition_of(run_id: str) -> str:
    """Return the competition of a run: the part of its id before the first underscore."""
    return run_id.partition("_")[0]


def find_groups(runs_dir: Path) -> tuple[RunGroup, ...]:
    """Read every group in a runs folder, in the order of their names.

    Raises:
        DataProblem: there is none, or one can't be read.
    """
    found = sorted(runs_dir.glob(f"*/{METADATA}"))
    if not found:
        incomplete = folders_without_metadata(runs_dir)
        named = ", ".join(incomplete[:3]) + (" ..." if len(incomplete) > 3 else "")
        why = f"there is no {METADATA} in {named}" if incomplete else f"no folder in it has a {METADATA}"
        raise DataProblem(f"{runs_dir} has no run group", why, "Give MLE-bench's runs folder.")
    return tuple(read_group(path) for path in found)


def folders_without_metadata(runs_dir: Path) -> tuple[str, ...]:
    """Return the names of the folders in a runs folder that are not run groups, because they have no metadata.json."""
    return tuple(
        path.name
        for path in sorted(runs_dir.glob("*/"))
        if not path.name.startswith(".") and not (path / METADATA).is_file()
    )


def read_group(metadata: Path) -> RunGroup:
    """Read a group from its metadata.json, or from the folder with it.

    Raises:
        DataProblem: it can't be read or is not valid.
    """
    path = metadata / METADATA if metadata.is_dir() else metadata
    with reading(path):
        values = json.loads(path.read_text(encoding="utf-8"))
    runs = values.get("runs") if isinstance(values, dict) else None
    if not isinstance(runs, dict):
        raise DataProblem(f"{path} is not the metadata of a run group", 'it has no object "runs"')
    folder = path.absolute().parent
    for run_id in runs:
        if Path(run_id).name != run_id:
            raise DataProblem(f"{path} has a run id that is not a folder name", repr(run_id))
    return RunGroup(str(values.get("run_group") or folder.name), folder, tuple(runs))


# Writing run groups


@dataclass(frozen=True)
class ExportedRun:
    """One run of a group.

    Attributes:
        run_id: its folder's name: the competition, an underscore, a UUID that is the same in every export.
        attempt: the attempt's directory; None if its files are not exported.
        submission: the graded snapshot.
    """

    run_id: str
    success: bool
    attempt: Path | None = None
    submission: Path | None = None


def run_id_for(competition_id: str, *identity: object) -> str:
    """Make a run's id in MLE-bench's form from what identifies it."""
    return f"{competition_id}_{uuid.uuid5(_RUN_IDS, '/'.join(map(str, (competition_id, *identity))))}"


def group_name(agent: str, moment: float, seed: int) -> str:
    """Make a run group's name in MLE-bench's form; later seeds have later stamps, so that names sort by seed."""
    plain = "".join(char if char.isalnum() or char in "-." else "-" for char in agent) or "agent"
    return f"{run_group_stamp(moment + seed)}_run-group_{plain}"


def write_group(runs_dir: Path, name: str, exported: Sequence[ExportedRun]) -> Path:
    """Write one group and return its folder; metadata.json comes last, so that a half-written folder is not a group.

    Raises:
        DataProblem: it would have a run twice.
        OSError: the folder can't be written.
    """
    repeated = [run_id for run_id, count in Counter(run.run_id for run in exported).items() if count > 1]
    if repeated:
        raise DataProblem(f"{name} would have {repeated[0]} twice")
    folder = runs_dir / name
    folder.mkdir(parents=True)
    for run in exported:
        if run.attempt is not None:
            _write_run(folder / run.run_id, run.attempt, run.submission)
    stamp = name.partition("_")[0]
    runs = {run.run_id: {"success": run.success} for run in exported}
    write_json(folder / METADATA, {"run_group": name, "created_at": stamp, "runs": runs})
    return folder


def _write_run(folder: Path, attempt: Path, submission: Path | None) -> None:
    folder.mkdir()
    if submission is not None:
        target = folder / protocol.SUBMISSION / protocol.SUBMISSION_FILE
        target.parent.mkdir()
        copy_file(submission, target)
    for source, name in ((protocol.LOG, "run.log"), (protocol.RECORDED_CALLS, protocol.RECORDED_CALLS)):
        path = attempt / source
        if path.is_file() and not path.is_symlink():
            copy_file(path, folder / name)
    for name in (protocol.LOGS, protocol.CODE):
        copy_tree(attempt / name, folder / name)


def copy_tree(source: Path, target: Path) -> None:
    """Copy the regular files of a tree that an agent has made and may still be changing.

    Every file is opened relative to its open parent folder, so that folders replaced meanwhile are not followed. Links,
    pipes, and files that can't be read, are too large or too deep are left out.
    """
    left = _FOLDER_LIMIT_BYTES
    for entry in walk(source, _leave_out):
        path = entry.path(_LONGEST_PATH)
        if path is None or not stat.S_ISREG(entry.status.st_mode) or entry.status.st_size > left:
            continue
        try:
            descriptor = open_file(entry)
        except OSError as error:
            _leave_out(entry.place, error)
            continue
        with os.fdopen(descriptor, "rb") as stream:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                (target / path).parent.mkdir(parents=True, exist_ok=True)
                left -= _copy_at_most(left, stream, target / path)


def _leave_out(_place: str, _error: OSError) -> None:
    """Ignore an unreadable file: logs and code may be incomplete, and the submission is not copied this way."""


def _copy_at_most(limit: int, stream: IO[bytes], target: Path) -> int:
    """Copy at most `limit` bytes to a new file, and return how many."""
    copied = 0
    with target.open("xb") as written:
        while copied < limit and (piece := stream.read(min(_PIECE_BYTES, limit - copied))):
            copied += written.write(piece)
    return copied


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file that an agent may have written to a new file."""
    with reading_untrusted(source) as stream, target.open("xb") as written:
        shutil.copyfileobj(stream, written)


# The mapping of experiments (rows of the leaderboard) to run groups


def read_mapping(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the run groups of each experiment, in the order of the file.

    Raises:
        DataProblem: it can't be read, or lacks a column.
    """
    found: dict[str, list[str]] = {}
    for row in read_csv(path, _MAPPING_COLUMNS, "list of experiments"):
        if row["experiment_id"] and row["run_group"]:
            found.setdefault(row["experiment_id"].strip(), []).append(row["run_group"].strip())
    return {experiment: tuple(dict.fromkeys(groups)) for experiment, groups in found.items()}


def write_mapping(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write pairs of an experiment and one of its run groups."""
    write_text(path, csv_text([_MAPPING_COLUMNS, *pairs]))


# Lists of submissions, the input of `grade` and MLE-bench


@dataclass(frozen=True)
class SubmissionLine:
    """One line of a submission JSONL."""

    competition_id: str
    submission_path: str | None = None
    logs_path: str | None = None
    code_path: str | None = None


def read_submissions(path: Path) -> list[SubmissionLine]:
    """Read a submission JSONL; blank lines and comments (`#`, `//`) are skipped.

    Raises:
        DataProblem: the file can't be read, or a line is not valid, by its number.
    """
    import msgspec  # here, because most uses of this module don't read submissions

    with reading(path):
        lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith(("#", "//")):
            try:
                found.append(msgspec.json.decode(line, type=SubmissionLine))
            except msgspec.DecodeError as error:
                refuse_pointer(path)
                raise DataProblem(f"{path}, line {number} is not a submission", str(error)) from error
    return found


def write_submissions(path: Path, lines: Sequence[SubmissionLine]) -> None:
    """Write a submission JSONL.

    Raises:
        DataProblem: the file can't be written.
    """
    text = "".join(json.dumps(asdict(line)) + "\n" for line in lines)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)


def submissions_of(group: RunGroup, *, log: str = LOG, code: str = CODE) -> tuple[SubmissionLine, ...]:
    """List the submissions of a group's runs; the path of a missing file is None.

    `log` and `code` are paths relative to the run's folder.

    Raises:
        DataProblem: such a path is outside the run's folder.
    """
    for relative in (log, code):
        if Path(relative).is_absolute() or ".." in Path(relative).parts:
            raise DataProblem(f"{relative} is outside the run's folder")
    return tuple(
        SubmissionLine(
            competition_of(run_id),
            _regular_file(group.folder / run_id, SUBMISSION),
            _regular_file(group.folder / run_id, log),
            _regular_file(group.folder / run_id, code),
        )
        for run_id in group.run_ids
    )


def _regular_file(folder: Path, relative: str) -> str | None:
    """Return the path of an agent's file; None if it does not exist, or if it or a parent folder is a link."""
    here = folder
    for part in Path(relative).parts:
        here = here / part
        try:
            found = here.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(found.st_mode):
            return None
    return str(here) if stat.S_ISREG(here.lstat().st_mode) else None
