"""Writing our own runs as run groups of MLE-bench: one group a seed, with what the agents left."""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.rungroups.groups import METADATA
from environment.runner import protocol
from foundation.clock import run_group_stamp
from foundation.files import reading_untrusted, write_json
from foundation.problems import DataProblem

_NAMESPACE = uuid.UUID("8f0e2a64-5f0b-4a55-9d5e-6f1f0f3b1c77")
# What one agent may have left in its logs or its code; more is not carried along.
_FOLDER_LIMIT_BYTES = 256 << 20


@dataclass(frozen=True)
class ExportedRun:
    """One run of a group.

    Attributes:
        run_id: its folder's name: the competition, an underscore, a UUID that is the same in every export.
        attempt: the attempt's directory; None where nothing of it is at hand.
        submission: the snapshot that was graded.
    """

    run_id: str
    success: bool
    attempt: Path | None = None
    submission: Path | None = None


def run_id_for(competition_id: str, *identity: object) -> str:
    """A run's id in MLE-bench's form, made of what tells it apart from all others."""
    return f"{competition_id}_{uuid.uuid5(_NAMESPACE, '/'.join(map(str, (competition_id, *identity))))}"


def group_name(agent: str, moment: float, seed: int) -> str:
    """A run group's name in MLE-bench's form; later seeds have later stamps, so that names sort by seed."""
    plain = "".join(char if char.isalnum() or char in "-." else "-" for char in agent) or "agent"
    return f"{run_group_stamp(moment + seed)}_run-group_{plain}"


def write_group(runs_dir: Path, name: str, exported: Sequence[ExportedRun]) -> Path:
    """Write one group: metadata.json last, so that a half-written one is none.

    Raises:
        DataProblem: a run stands in it twice.
        OSError: the folder can't be written.
    """
    twice = [run_id for run_id, count in Counter(run.run_id for run in exported).items() if count > 1]
    if twice:
        raise DataProblem(f"{name} would hold {twice[0]} twice")
    folder = runs_dir / name
    folder.mkdir(parents=True)
    for run in exported:
        if run.attempt is not None:
            _write_run(folder / run.run_id, run.attempt, run.submission)
    stamp = name.partition("_")[0]
    told = {run.run_id: {"success": run.success} for run in exported}
    write_json(folder / METADATA, {"run_group": name, "created_at": stamp, "runs": told})
    return folder


def _write_run(folder: Path, attempt: Path, submission: Path | None) -> None:
    folder.mkdir()
    if submission is not None:
        target = folder / protocol.SUBMISSION / protocol.SUBMISSION_FILE
        target.parent.mkdir()
        copy_file(submission, target)
    log = attempt / protocol.LOG
    if log.is_file() and not log.is_symlink():
        copy_file(log, folder / "run.log")
    for name in (protocol.LOGS, protocol.CODE):
        copy_tree(attempt / name, folder / name)


def copy_tree(source: Path, target: Path) -> None:
    """Copy what is a regular file in real folders; an agent may have left links, pipes and devices."""
    left = _FOLDER_LIMIT_BYTES
    for here, folders, names in os.walk(source, followlinks=False):
        folders[:] = sorted(name for name in folders if not (Path(here) / name).is_symlink())
        inside = target / Path(here).relative_to(source)
        for name in sorted(names):
            path = Path(here) / name
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > left:
                continue
            left -= found.st_size
            inside.mkdir(parents=True, exist_ok=True)
            copy_file(path, inside / name)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file that an agent may have left to where there is none yet."""
    with reading_untrusted(source) as stream, target.open("xb") as written:
        shutil.copyfileobj(stream, written)
