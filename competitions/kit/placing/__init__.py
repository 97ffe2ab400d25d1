"""Putting raw files into the prepared folders under their new names, linked or copied, many at a time.

Files that are written anew are made by `checksummed`, and names that tell too much are replaced by `pseudonyms`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from typing import cast

from competitions.kit.archives import create_empty
from competitions.kit.archives.zip_tree import ZipPath
from competitions.raw import RawDataProblem, RawPath, is_regular, walk
from competitions.task import Preparation
from foundation.problems import DataProblem

_WORKERS = 8  # where small files wait for the disk or the network, not for the processor
_BATCH = 256
_TRIED = 16  # files by which to see whether the disk is waited for
_MOST_SENT = 1 << 30  # bytes that the system copies by itself
_FICLONE = 0x40049409  # linux/fs.h: share the blocks of another file until one of the two is written to
_NO_CLONE = {errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}


def place(
    job: Preparation, pairs: Iterable[tuple[RawPath, Path]], what: str = "files", *, anew: bool = False
) -> None:
    """Bring each first file to each second path, making folders as needed.

    Hard links where the job allows them, otherwise copies that share blocks where the file system can.

    Args:
        job: which says whether links are allowed.
        pairs: where each file is and where it goes.
        what: what to call them when telling the progress.
        anew: no links even so, and files are made in the order of their new names. The number by which the
            file system knows a file lies among those of its old neighbours, which agents may see, too: a
            photo out of a folder of its class shows the class.

    Raises:
        DataProblem: a raw file is missing or is not a regular file.
    """
    wanted = sorted(pairs, key=lambda pair: str(pair[1])) if anew else list(pairs)
    for folder in {target.parent for _, target in wanted}:
        folder.mkdir(parents=True, exist_ok=True)
    if not wanted:
        return
    batches = [wanted[start : start + _BATCH] for start in range(_TRIED, len(wanted), _BATCH)]
    may_link = job.may_link and not anew
    began, worked = time.perf_counter(), time.thread_time()
    done = _place_batch(job, wanted[:_TRIED], may_link)
    waited = time.perf_counter() - began > 2 * (time.thread_time() - worked)
    job.progress(what, done, len(wanted))
    with ThreadPoolExecutor(_workers(wanted[0][0], waited=waited)) as pool:
        try:
            for count in pool.map(lambda batch: _place_batch(job, batch, may_link), batches):
                done += count
                job.progress(what, done, len(wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def move(job: Preparation, pairs: Iterable[tuple[Path, Path]], what: str = "files") -> None:
    """Bring each first file, which lies in the scratch folder, to each second path, as `place` does anew.

    Each goes as soon as it is where it belongs. It is not just renamed: the file system would know it still
    by the number that it got among its old neighbours. Nor may another one get that number.
    """
    wanted = sorted(pairs, key=lambda pair: str(pair[1]))
    for folder in {target.parent for _, target in wanted}:
        folder.mkdir(parents=True, exist_ok=True)
    create_empty(target for _, target in wanted)
    for done, (source, target) in enumerate(wanted, start=1):
        with source.open("rb", buffering=0) as taken, target.open("wb", buffering=0) as given:
            _copy(taken, given)
        source.unlink()
        if done % _BATCH == 0 or done == len(wanted):
            job.progress(what, done, len(wanted))


def _workers(source: RawPath, *, waited: bool) -> int:
    if waited:
        return _WORKERS
    # inflating leaves other threads alone; mere system calls are faster without any, by half
    return min(os.cpu_count() or 1, _WORKERS) if isinstance(source, ZipPath) else 1


def place_tree(job: Preparation, source: RawPath, target: Path, what: str = "files") -> None:
    """Bring a whole folder to `target`, empty folders included."""
    place_trees(job, [(source, target)], what)


def place_trees(
    job: Preparation,
    folders: Iterable[tuple[RawPath, Path]],
    what: str = "files",
    *,
    left_out: Collection[str] = (),
) -> None:
    """Bring each first folder to each second path as a whole, empty folders included, some file names left out.

    Raises:
        DataProblem: a raw folder is missing, or holds something that is neither file nor folder.
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
    """Bring the named files of one folder to another folder, names kept, each once however often it is named."""
    place(
        job,
        [(source / name, target / name) for name in dict.fromkeys(names)],
        f"{target.parent.name}/{target.name}",
    )


def copy_file(job: Preparation, source: RawPath, target: Path) -> None:
    """Bring one file to `target`.

    Raises:
        DataProblem: it is missing, no regular file, or empty, as what was not copied to its end often is.
    """
    if source.is_file() and not source.stat().st_size:
        raise RawDataProblem(f"{job.competition.id}: {source} is empty")
    place(job, [(source, target)], target.name)


def _place_batch(job: Preparation, pairs: list[tuple[RawPath, Path]], may_link: bool) -> int:
    for source, target in pairs:
        try:
            _place_one(source, target, may_link)
        except FileNotFoundError as error:
            raise job.missing(source.name, source.parent) from error
        except FileExistsError as error:
            raise DataProblem(
                f"{job.competition.id}: {source} was not taken", f"another raw file lies at {target} already"
            ) from error
    return len(pairs)


def expect(job: Preparation, paths: Iterable[RawPath]) -> None:
    """These raw files are there, which a folder that is brought as a whole does not show.

    Raises:
        DataProblem: one is not.
    """
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        raise job.missing(missing.name, missing.parent)


def _place_one(source: RawPath, target: Path, may_link: bool) -> None:
    if not is_regular(source):
        if not source.exists():
            raise FileNotFoundError(source)
        raise DataProblem(f"{source} was not taken", "it is not a regular file")
    if isinstance(source, ZipPath):
        with target.open("xb") as given:
            source.copy_to(given)
        return
    _place_file(cast(Path, source), target, may_link)


def _place_file(source: Path, target: Path, may_link: bool) -> None:
    if may_link:
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}:
                raise
        else:
            return
    with source.open("rb", buffering=0) as taken, target.open("xb", buffering=0) as given:
        _copy(taken, given)


def _copy(taken: FileIO, given: FileIO) -> None:
    try:
        fcntl.ioctl(given.fileno(), _FICLONE, taken.fileno())
    except OSError as error:
        if error.errno not in _NO_CLONE:
            raise
        while os.sendfile(given.fileno(), taken.fileno(), None, _MOST_SENT):
            pass
