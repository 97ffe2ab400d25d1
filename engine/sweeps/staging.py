"""Copying MLE-bench's run groups to where the engine takes them from; what is in them is trusted in nothing."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from competitions import registry
from engine.places import Places
from engine.rungroups import METADATA, RunGroup, copy_file, copy_tree, find_groups, read_group
from environment.runner import protocol
from foundation import files
from foundation.locks import FileLock, is_held
from foundation.problems import DataProblem

ARRIVING = "arriving"
FILES = "runs"
SNAPSHOT = f"{protocol.SNAPSHOTS}/1.csv"
_LOCK = ".lock"
_LISTED = "runs.json"
_TOKEN_BYTES = 6


@dataclass(frozen=True)
class ImportedRun:
    """One run of a group, as it will be one of a sweep's.

    Attributes:
        sha256: of its submission; empty where it left none.
        taken_at: when the submission was last written.
    """

    competition_id: str
    seed: int
    sha256: str = ""
    bytes: int = 0
    taken_at: float = 0.0


@contextmanager
def staged(places: Places, folder: Path) -> Iterator[tuple[str, tuple[ImportedRun, ...]]]:
    """Copy a run group, or all groups of a runs folder, to where the engine takes them from.

    Gives the place's name for the request `sweep.import`, and what is there. What the engine has
    not taken by the end of the block is removed.

    Raises:
        Problem: there is no group, one can't be read, or it names an unknown competition.
    """
    groups = (read_group(folder),) if (folder / METADATA).is_file() else find_groups(folder)
    token = secrets.token_hex(_TOKEN_BYTES)
    place = places.state_dir / ARRIVING / token
    (place / FILES).mkdir(parents=True)
    lock = FileLock(place / _LOCK)
    lock.acquire()
    try:
        found = tuple(_copy_all(groups, place / FILES))
        files.write_json(place / _LISTED, [asdict(run) for run in found])
        files.sync_file_system(place)
        yield token, found
    finally:
        lock.release()
        shutil.rmtree(place, ignore_errors=True)


def agent_of_group(folder: Path) -> str:
    """The agent's name in a group's name; empty where that is not as MLE-bench makes it."""
    groups = (read_group(folder),) if (folder / METADATA).is_file() else find_groups(folder)
    return groups[0].name.partition("_run-group_")[2]


def _copy_all(groups: Sequence[RunGroup], target: Path) -> Iterator[ImportedRun]:
    """The k-th run of a competition, in the order of the groups, is seed k."""
    seeds: Counter[str] = Counter()
    for group in groups:
        for run in group.runs:
            competition = registry.get(run.competition_id)
            seeds[competition.id] += 1
            seed = seeds[competition.id]
            source = group.folder / run.run_id
            if source.is_symlink() or not source.is_dir():
                yield ImportedRun(competition.id, seed)
            else:
                yield _copy_run(source, target, ImportedRun(competition.id, seed))


def _copy_run(source: Path, target: Path, run: ImportedRun) -> ImportedRun:
    folder = target / below_sweep(run)
    protocol.make_folders(folder)
    for name in (protocol.LOGS, protocol.CODE):
        copy_tree(source / name, folder / name)
    log = source / "run.log"
    if log.is_file() and not log.is_symlink():
        copy_file(log, folder / protocol.LOG)
    handed_in = source / protocol.SUBMISSION / protocol.SUBMISSION_FILE
    if handed_in.parent.is_symlink() or not handed_in.is_file() or handed_in.is_symlink():
        return run
    snapshot = folder / SNAPSHOT
    copy_file(handed_in, snapshot)
    with snapshot.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = stream.tell()
    return ImportedRun(run.competition_id, run.seed, digest, size, handed_in.stat().st_mtime)


def below_sweep(run: ImportedRun) -> str:
    """Where a run's attempt lies below its sweep's folder."""
    return protocol.attempt_folder("", run.competition_id, run.seed, 1).partition("//")[2]


def is_abandoned(place: Path) -> bool:
    """Whether whoever copied to a place is dead."""
    return not is_held(place / _LOCK)


def read_staged(place: Path) -> list[ImportedRun]:
    """What was copied, in the order in which its runs are queued: one seed of every competition first."""
    try:
        found = [ImportedRun(**values) for values in json.loads((place / _LISTED).read_bytes())]
    except (OSError, ValueError, TypeError) as error:
        raise DataProblem("there is nothing to import", str(error)) from error
    if not found:
        raise DataProblem("there is nothing to import", "the run groups hold no runs")
    return sorted(found, key=lambda run: run.seed)
