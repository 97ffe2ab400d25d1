"""Copy raw files into the prepared folders under their new names, many at a time.

New files are written by `checksummed`; names that would identify test items are replaced by `pseudonyms`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Collection, Iterable
from io import FileIO
from pathlib import Path
from typing import cast

from mlebench_console.competitions.kit.archives import create_empty
from mlebench_console.competitions.kit.archives.zip_tree import ZipPath
from mlebench_console.competitions.raw import RawDataProblem, RawPath, is_regular, walk
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.threads import in_threads

_WORKERS = 8  # where small files wait for the disk or the network, not for the processor
_BATCH = 256
_TRIED = 16  # files placed first, to measure whether the disk or the processor is the bottleneck
_MOST_SENT = 1 << 30  # bytes per call of sendfile
_FICLONE = 0x40049409  # linux/fs.h: share the blocks of another file until one of the two is written to
_NO_CLONE = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}


def place(
    job: Preparation, pairs: Iterable[tuple[RawPath, Path]], what: str = "files", *, anew: bool = False
) -> None:
    """Place each source file at its target path, making folders as needed.

    The copies share blocks where the file system can.

    Args:
        job: the preparation.
        pairs: source and target of each file.
        what: the name of the files in progress reports.
        anew: create files in the order of their new names. A file's inode number lies among those of its
            neighbours in this order, and agents see it: in the order of folders it would reveal the class.

    Raises:
        DataProblem: a raw file is missing or is not a regular file.
    """
    ordered = sorted(pairs, key=lambda pair: str(pair[1])) if anew else list(pairs)
    for folder in {target.parent for _, target in ordered}:
        folder.mkdir(parents=True, exist_ok=True)
    if not ordered:
        return
    batches = [ordered[start : start + _BATCH] for start in range(_TRIED, len(ordered), _BATCH)]
    began, worked = time.perf_counter(), time.thread_time()
    done = _place_batch(job, ordered[:_TRIED])
    waited = time.perf_counter() - began > 2 * (time.thread_time() - worked)
    job.progress(what, done, len(ordered))
    workers = _workers(ordered[0][0], waited=waited)
    for count in in_threads(lambda batch: _place_batch(job, batch), batches, workers):
        done += count
        job.progress(what, done, len(ordered))


def move(job: Preparation, pairs: Iterable[tuple[Path, Path]], what: str = "files") -> None:
    """Move each source file from the scratch folder to its target path, as `place` does with `anew`.

    Files are copied and then removed, not renamed, because renaming keeps the inode number. All targets are
    created before any source is removed, so that none gets the freed number of another.
    """
    ordered = sorted(pairs, key=lambda pair: str(pair[1]))
    for folder in {target.parent for _, target in ordered}:
        folder.mkdir(parents=True, exist_ok=True)
    create_empty(target for _, target in ordered)
    for done, (source, target) in enumerate(ordered, start=1):
        with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
            _copy(reader, writer)
        source.unlink()
        job.progress(what, done, len(ordered))


def _workers(source: RawPath, *, waited: bool) -> int:
    if waited:
        return _WORKERS
    # inflating releases the interpreter lock; plain system calls are faster by half in a single thread
    return min(os.cpu_count() or 1, _WORKERS) if isinstance(source, ZipPath) else 1


def place_tree(job: Preparation, source: RawPath, target: Path, what: str = "files") -> None:
    """Place a whole folder at `target`, empty folders included."""
    place_trees(job, [(source, target)], what)


def place_trees(
    job: Preparation,
    folders: Iterable[tuple[RawPath, Path]],
    what: str = "files",
    *,
    left_out: Collection[str] = (),
) -> None:
    """Place each whole source folder at its target path, empty folders included, except files named in `left_out`.

    Raises:
        DataProblem: a raw folder is missing, or contains something that is neither file nor folder.
    """
    pairs: list[tuple[RawPath, Path]] = []
    for source, target in folders:
        if not source.is_dir():
            raise job.missing(source.name, source.parent)
        for here, names in walk(source):
            there = target / here.relative_to(source)
            there.mkdir(parents=True, exist_ok=True)
            pairs += [(here / name, there / name) for name in names if name not in left_out]
    place(job, pairs, what)


def place_named(job: Preparation, names: Iterable[str], source: RawPath, target: Path) -> None:
    """Place the named files of one folder in another folder under the same names; repeated names count once."""
    place(
        job,
        [(source / name, target / name) for name in dict.fromkeys(names)],
        f"{target.parent.name}/{target.name}",
    )


def copy_file(job: Preparation, source: RawPath, target: Path) -> None:
    """Place one file at `target`.

    Raises:
        DataProblem: it is missing, not a regular file, or empty, as incomplete copies often are.
    """
    if source.is_file() and not source.stat().st_size:
        raise RawDataProblem(f"{source} is empty", subject=job.competition.id)
    place(job, [(source, target)], target.name)


def _place_batch(job: Preparation, pairs: list[tuple[RawPath, Path]]) -> int:
    for source, target in pairs:
        try:
            _place_one(source, target)
        except FileNotFoundError as error:
            raise job.missing(source.name, source.parent) from error
        except FileExistsError as error:
            raise DataProblem(
                f"{source} cannot be placed",
                f"another raw file was placed at {target}",
                subject=job.competition.id,
            ) from error
    return len(pairs)


def expect(job: Preparation, paths: Iterable[RawPath]) -> None:
    """Check that raw files exist, since placing a whole folder does not notice missing ones.

    Raises:
        DataProblem: one is missing.
    """
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        raise job.missing(missing.name, missing.parent)


def _place_one(source: RawPath, target: Path) -> None:
    if not is_regular(source):
        if not source.exists():
            raise FileNotFoundError(source)
        raise DataProblem(f"{source} was refused", "it is not a regular file")
    if isinstance(source, ZipPath):
        with target.open("xb") as stream:
            source.copy_to(stream)
    else:
        path = cast(Path, source)
        with path.open("rb", buffering=0) as reader, target.open("xb", buffering=0) as writer:
            _copy(reader, writer)


def _copy(reader: FileIO, writer: FileIO) -> None:
    try:
        fcntl.ioctl(writer.fileno(), _FICLONE, reader.fileno())
    except OSError as error:
        if error.errno not in _NO_CLONE:
            raise
        while os.sendfile(writer.fileno(), reader.fileno(), None, _MOST_SENT):
            pass
