"""The raw data of a dataset: an extracted folder, a zip, or a download from Kaggle.

A zip is read without extracting it, unless the operator wants to keep the extracted files.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.competitions.kit.archives.zip_tree import ZipPath
from mlebench_console.competitions.model import Competition
from mlebench_console.competitions.raw import RawPath
from mlebench_console.competitions.registry import rules_url
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.datasets.sources import published
from mlebench_console.engine.datasets.steps import (
    EXTRACT,
    VERIFY,
    ByteProgress,
    DownloadProgress,
    ReportStep,
    within,
)
from mlebench_console.engine.kaggle import USUAL_PATIENCE, KaggleFailure
from mlebench_console.engine.layout import DatasetFolder
from mlebench_console.engine.space import naming_full_disks, require_space
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.threads import in_threads
from mlebench_console.foundation.workers import ReportProgress

_WORKERS = 4
_SHOWN_BYTES = 40
_BATCH_FILES = 256


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
    published.fetch(competition, folder, keep_free=keep_free, patience=patience, report=report)
    if folder.has_raw_data:
        return
    from mlebench_console.engine.kaggle.client import Kaggle
    from mlebench_console.engine.kaggle.download import download

    progress = DownloadProgress(report, "")
    target = folder.zip(competition)
    with Kaggle(patience=patience, wait=progress.wait) as kaggle:
        md5 = download(kaggle, competition.id, target, keep_free=keep_free, report=progress.bytes)
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
            "the downloaded file is not a zip",
            f"it begins with {begins.decode(errors='replace')!a}",
            "Check whether a portal or proxy answers instead of Kaggle.",
            subject=competition.id,
        )


def open_raw_data(
    competition: Competition,
    folder: DatasetFolder,
    stack: ExitStack,
    *,
    verify: bool,
    extract_to: Path | None,
    keep_free: int,
    report: ReportProgress,
) -> RawPath:
    """Return readable raw data; a zip is extracted only if a new folder for its files is given.

    `stack` closes a zip that stays open until the data have been read, and `keep_free` bytes stay free on the disk.

    Raises:
        DataProblem: there are none or they are damaged.
        DiskFull: they don't fit.
    """
    found = folder.zips()
    # MLE-bench may have been killed while it extracted
    if folder.has_extracted_data and (len(found) != 1 or _holds_all(folder.raw, sizes_in(found[0]))):
        return folder.raw
    if len(found) != 1:
        raise DataProblem(
            f"there are no raw data in {folder.root}",
            "it has several zips" if found else "there is neither raw/ nor a zip",
            f"Accept the rules at {page}, then put {competition.id}.zip there."
            if (page := rules_url(competition))
            else f"Put its raw data into {folder.raw}, or give their folder with --raw.",
            subject=competition.id,
        )
    (path,) = found
    if verify:
        report(VERIFY, "", 0, 0)  # uses the MD5 recorded at the download, without reading the zip again
        checksums.expect_zip(competition, path, within(report, VERIFY))
    report(EXTRACT, "", 0, 0)
    known = checksums.inflated_bytes(path)
    if known is None and competition.size_gb is not None:
        known = int(competition.size_gb * 1e9)
    if extract_to is not None:
        unpack(path, extract_to, known_bytes=known, keep_free=keep_free, report=within(report, EXTRACT))
        return extract_to
    tree = stack.enter_context(zip_tree.opened(path, known_bytes=known))
    require_space(folder.root, tree.size, keep_free=keep_free)  # otherwise it would fail after hours
    return ZipPath(tree)


def unpack(
    path: Path, target: Path, *, known_bytes: int | None = None, keep_free: int = 0, report: ReportStep
) -> None:
    """Extract a zip into a folder, which must not exist.

    Raises:
        DataProblem: it is damaged or unsafe.
        DiskFull: it does not fit.
    """
    with zip_tree.opened(path, known_bytes=known_bytes) as tree:
        require_space(target.parent, tree.size, keep_free=keep_free)
        progress = ByteProgress(tree.size, report)
        progress.add("", 0)
        files = tree.files
        batches = [files[start : start + _BATCH_FILES] for start in range(0, len(files), _BATCH_FILES)]

        def extract(batch: Sequence[str]) -> None:
            for place in batch:
                with (target / place).open("xb") as given:
                    tree.copy(place, given, lambda count: progress.add("", count))

        with naming_full_disks(target.parent):
            for folder in tree.folders:
                (target / folder).mkdir(parents=True, exist_ok=True)
            list(in_threads(extract, batches, _WORKERS))


def sizes_in(path: Path) -> dict[str, int]:
    """Return the sizes of a zip's files, by path.

    Raises:
        DataProblem: it is not a zip, or would write outside its folder, over its own files, or far too much.
    """
    with zip_tree.opened(path) as tree:
        return {place: tree.member(place).file_size for place in tree.files}


def _holds_all(folder: Path, sizes: Mapping[str, int]) -> bool:
    """Return whether a folder has all files of a zip, in their sizes."""
    return all(_is_there(folder / place, size) for place, size in sizes.items())


def _is_there(path: Path, size: int) -> bool:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size
