"""The raw data of a dataset: an extracted folder, a zip, or a download from Kaggle.

A zip is read without extracting it, or extracted in batches, so that a killed extraction can continue. With `consume`
the space of extracted members is freed immediately, so that zip and folder together never need much more space than
the larger of the two.
"""

from __future__ import annotations

import ctypes
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from zipfile import ZipInfo

from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.competitions.kit.archives.zip_tree import ZipPath, ZipTree
from mlebench_console.competitions.model import Competition
from mlebench_console.competitions.raw import RawPath
from mlebench_console.competitions.registry import rules_url
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.datasets.sources import discarding, published
from mlebench_console.engine.datasets.steps import (
    DOWNLOAD,
    EXTRACT,
    VERIFY,
    ReportStep,
    reporting_wait,
    within,
)
from mlebench_console.engine.kaggle import KaggleFailure
from mlebench_console.engine.kaggle.backoff import USUAL_PATIENCE
from mlebench_console.engine.layout import DatasetFolder
from mlebench_console.engine.space import naming_full_disks, require_space
from mlebench_console.foundation.files import sync_directory, sync_file_system
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.workers import ReportProgress

_WORKERS = 4
_SHOWN_BYTES = 40
_BATCH_FILES = 256
_BATCH_BYTES = 64 << 20
_LOCAL_HEADER_BYTES = 30
_TABLES = frozenset({".csv", ".tsv", ".json", ".jsonl", ".txt", ".bson"})
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h


@dataclass(frozen=True)
class Raw:
    """Raw data that can be read.

    Attributes:
        files: the folder with Kaggle's files, or the zip with the interface of a folder.
        extracted: the folder if it was extracted for this preparation: outputs may be links to its files, and it is
            removed or kept at the end.
        spent: the zip if it will be removed after reading.
    """

    files: RawPath
    extracted: Path | None = None
    spent: Path | None = None


def fetch(
    competition: Competition,
    folder: DatasetFolder,
    *,
    keep_free: int = 0,
    patience: float = USUAL_PATIENCE,
    report: ReportProgress,
) -> None:
    """Download files of other publishers and then Kaggle's zip, unless raw data exist already.

    Servers that can't be reached are retried for `patience` seconds.

    Raises:
        Problem: a server refuses or can't be reached, or the disk is full.
    """
    discarding.settle(folder)
    published.fetch(competition, folder, keep_free=keep_free, patience=patience, report=report)
    if folder.has_raw_data:
        return
    from mlebench_console.engine.kaggle.client import Kaggle
    from mlebench_console.engine.kaggle.download import download

    place = (DOWNLOAD, 0, 0)

    def report_bytes(done: int, total: int) -> None:
        nonlocal place
        place = (DOWNLOAD, done, total)
        report(DOWNLOAD, "", done, total)

    report(DOWNLOAD, "", 0, 0)
    target = folder.zip(competition)
    with Kaggle(patience=patience, wait=reporting_wait(report, lambda: place)) as kaggle:
        md5 = download(kaggle, competition.id, target, keep_free=keep_free, report=report_bytes)
        _refuse_page(competition, target)
        checksums.record_zip(target, md5)
        if md5 != competition.checksums.zip:
            # the extracted size of an unknown zip is limited to the size that Kaggle lists
            checksums.record_zip(target, md5, kaggle.listed_bytes(competition.id))


def _refuse_page(competition: Competition, path: Path) -> None:
    """Remove a downloaded file that is not a zip, such as the page of a portal or proxy.

    Raises:
        KaggleFailure: it is not a zip; a retry may succeed.
    """
    with path.open("rb") as stream:
        begins = stream.read(_SHOWN_BYTES)
    if not begins.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the start of a zip with and without members
        path.unlink()
        raise KaggleFailure(
            f"{competition.id}: the downloaded file is not a zip",
            f"it begins with {begins.decode(errors='replace')!a}",
            "Check whether a portal or proxy answers instead of Kaggle.",
        )


def open_raw_data(
    competition: Competition,
    folder: DatasetFolder,
    work: Path,
    stack: ExitStack,
    *,
    verify: bool,
    keep_raw: bool,
    discard_zip: bool,
    keep_free: int,
    report: ReportProgress,
) -> Raw:
    """Return readable raw data; a zip is read without extracting it, unless options require that.

    `work` is a folder for temporary files, `stack` closes files that stay open until the data have been read, and
    `keep_free` bytes stay free on the disk.

    Raises:
        DataProblem: there are none or they are damaged.
        DiskFull: they don't fit.
    """
    if folder.whole_raw.is_dir():  # extracted by a killed preparation from a zip that is gone
        return Raw(folder.whole_raw, folder.whole_raw)
    found = folder.zips()
    # MLE-bench may have been killed while it extracted
    if folder.has_extracted_data and (len(found) != 1 or not _missing(sizes_in(found[0]), folder.raw)):
        return Raw(folder.raw)
    if len(found) != 1:
        raise DataProblem(
            f"{competition.id} has no raw data in {folder.root}",
            "it has several zips" if found else "there is neither raw/ nor a zip",
            f"Accept the rules at {page}, then put {competition.id}.zip there."
            if (page := rules_url(competition))
            else f"Put its raw data into {folder.raw}, or give their folder with --raw.",
        )
    (path,) = found
    marker = discarding.marked(folder)
    md5 = checksums.known_md5(path) if marker is None else marker.md5
    if verify and (marker is None or md5 is not None):
        report(VERIFY, "", 0, 0)  # uses the MD5 recorded at the download, without reading the zip again
        checksums.expect_zip(competition, path, within(report, VERIFY), md5)
        md5 = competition.checksums.zip or md5
    report(EXTRACT, "", 0, 0)
    known = checksums.inflated_bytes(path)
    if known is None and competition.size_gb is not None:
        known = int(competition.size_gb * 1e9)
    consuming = marker is not None or (discard_zip and (keep_raw or is_best_consumed(path)))
    if not (keep_raw or consuming):
        tree = stack.enter_context(zip_tree.opened(path, known_bytes=known))
        require_space(folder.root, tree.size, keep_free=keep_free)  # otherwise it would fail after hours
        return Raw(ZipPath(tree), spent=path if discard_zip else None)
    if not consuming:
        unpack(path, work / "raw", known_bytes=known, keep_free=keep_free, report=within(report, EXTRACT))
        return Raw(work / "raw", work / "raw")
    if marker is None:
        discarding.mark(folder, path, md5)
    partial = folder.partial_raw
    unpack(
        path, partial, known_bytes=known, keep_free=keep_free, consume=True, report=within(report, EXTRACT)
    )
    partial.rename(folder.whole_raw)
    sync_directory(folder.root)
    path.unlink()
    checksums.forget_zip(path)
    return Raw(folder.whole_raw, folder.whole_raw)


def unpack(
    path: Path,
    target: Path,
    *,
    known_bytes: int | None = None,
    keep_free: int = 0,
    consume: bool = False,
    report: ReportStep,
) -> None:
    """Extract a zip into a folder, continuing an earlier, killed extraction.

    Raises:
        DataProblem: it is damaged or unsafe.
        DiskFull: it does not fit.
    """
    with zip_tree.opened(path, known_bytes=known_bytes) as tree:
        sizes = _sizes(tree)
        missing = _missing(sizes, target)
        needed, total = sum(missing.values()), sum(sizes.values())
        done = total - needed
        if not consume:  # consuming frees space on the way, so the need can't be checked beforehand
            require_space(target.parent, needed, keep_free=keep_free)
        report("", done, total)
        lock = threading.Lock()

        def add(count: int) -> None:
            nonlocal done
            with lock:
                done += count
                report("", done, total)

        def extract(batch: Sequence[str]) -> None:
            for place in batch:
                final = target / place
                partial = final.with_name(f".{final.name[:200]}.partial~")
                with partial.open("wb") as given:
                    tree.copy(place, given, add)
                partial.rename(final)

        with naming_full_disks(target.parent):
            for folder in tree.folders:
                (target / folder).mkdir(parents=True, exist_ok=True)
            batches = list(_batches(missing))
            at_once = _WORKERS if consume else max(len(batches), 1)
            for start in range(0, len(batches), at_once):
                some = batches[start : start + at_once]
                with ThreadPoolExecutor(_WORKERS) as pool:
                    try:
                        list(pool.map(extract, some))
                    except BaseException:
                        pool.shutdown(cancel_futures=True)
                        raise
                if consume:
                    sync_file_system(target)  # extracted files must reach the disk before the zip loses them
                    _punch(path, [tree.member(place) for batch in some for place in batch])


def sizes_in(path: Path) -> dict[str, int]:
    """Return the sizes of a zip's files, by path.

    Raises:
        DataProblem: it is not a zip, or would write outside its folder, over its own files, or far too much.
    """
    with zip_tree.opened(path) as tree:
        return _sizes(tree)


def _sizes(tree: ZipTree) -> dict[str, int]:
    return {place: tree.member(place).file_size for place in tree.files}


def is_best_consumed(path: Path) -> bool:
    """Return whether consuming a zip that may be removed needs less space than reading it in place.

    That is so if most files are only linked afterwards, and not if tables would stay beside those made from them.
    """
    tables = sum(
        size for place, size in sizes_in(path).items() if PurePosixPath(place).suffix.lower() in _TABLES
    )
    return tables <= path.stat().st_size


def _missing(sizes: Mapping[str, int], folder: Path) -> dict[str, int]:
    """Return the files of a zip that are missing in a folder."""
    return {place: size for place, size in sizes.items() if not _is_there(folder / place, size)}


def _is_there(path: Path, size: int) -> bool:
    """Return whether a member has been extracted: files get their name only when they are complete."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    total = 0
    for place, size in sizes.items():
        batch.append(place)
        total += size
        if len(batch) == _BATCH_FILES or total >= _BATCH_BYTES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _punch(path: Path, members: Sequence[ZipInfo]) -> None:
    """Free the space of extracted members; the zip keeps its directory and length."""
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("r+b") as stream:
        for member in members:
            libc.fallocate(
                stream.fileno(),
                _KEEP_SIZE | _PUNCH_HOLE,
                ctypes.c_int64(member.header_offset),
                ctypes.c_int64(_LOCAL_HEADER_BYTES + member.compress_size),
            )
