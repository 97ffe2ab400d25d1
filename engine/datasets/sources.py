"""Where a dataset's raw data come from: a given folder, what lies there extracted, a zip, or Kaggle."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from competitions.model import Competition
from competitions.raw import RawPath
from engine.datasets import sums
from engine.datasets.telling import TellStep, quiet
from engine.layout import DatasetFolder
from engine.space import require_space
from foundation.files import sync_directory, write_json
from foundation.problems import DataProblem

CHECK, DOWNLOAD, VERIFY, EXTRACT, PREPARE, CHECKSUM = STEPS = (
    "check access",
    "download",
    "verify",
    "extract",
    "prepare",
    "checksum",
)


@dataclass(frozen=True)
class Raw:
    """Raw data, ready to be read.

    Attributes:
        files: the folder that Kaggle's files lie in, or the zip as if it were one.
        extracted: the folder if it is nobody else's, so that outputs may share its blocks and it is removed
            or kept at the end.
        spent: the zip if it is to go when the data have been read.
    """

    files: RawPath
    extracted: Path | None = None
    spent: Path | None = None


def given_folder(path: Path) -> Raw:
    """Raw data that somebody extracted.

    Raises:
        DataProblem: there is no such folder.
    """
    if not path.is_dir():
        raise DataProblem(f"Raw folder {path} was not found", next_step="Give an extracted Kaggle folder.")
    return Raw(path.absolute())


def needs_download(folder: DatasetFolder) -> bool:
    """Whether nothing of a competition's raw data lies in its folder."""
    return not (folder.zips() or folder.whole_raw.is_dir() or _holds_something(folder.raw))


def check(competition: Competition, tell: TellStep = quiet) -> int | None:
    """Find out whether Kaggle lets us download a competition's data, and how large they are.

    Raises:
        Problem: it does not, or it can't be reached.
    """
    # Kaggle's client is slow to import, and only needed for what it is asked.
    from engine.kaggle.client import Kaggle

    tell(CHECK, "", 0, 0)
    with Kaggle(wait=_telling_wait(tell, lambda: (CHECK, 0, 0))) as kaggle:
        return kaggle.data_size(competition.id)


def fetch(competition: Competition, folder: DatasetFolder, *, keep_free: int = 0, tell: TellStep) -> None:
    """Download a competition's zip, unless something of its raw data is there already.

    Raises:
        Problem: Kaggle refuses or can't be reached, or the disk is full.
    """
    if not needs_download(folder):
        return
    # Kaggle's client is slow to import, and only needed for what it is asked.
    from engine.kaggle.client import Kaggle
    from engine.kaggle.download import download

    place = (DOWNLOAD, 0, 0)

    def told(done: int, total: int) -> None:
        nonlocal place
        place = (DOWNLOAD, done, total)
        tell(DOWNLOAD, "", done, total)

    tell(DOWNLOAD, "", 0, 0)
    target = folder.zip(competition)
    with Kaggle(wait=_telling_wait(tell, lambda: place)) as kaggle:
        found = download(kaggle, competition.id, target, keep_free=keep_free, tell=told)
        sums.note_zip(target, found.md5)
        if (
            found.md5 != competition.checksums.zip
        ):  # what is not known may not inflate beyond what Kaggle lists
            listed = sum(file.bytes for file in kaggle.files(competition.id))
            sums.note_zip(target, found.md5, listed)


def _telling_wait(tell: TellStep, place: Callable[[], tuple[str, int, int]]) -> Callable[[float, str], None]:
    def wait(seconds: float, why: str) -> None:
        step, done, total = place()
        tell(step, f"waiting {seconds:.0f} s: {why}", done, total)
        time.sleep(seconds)

    return wait


def opened(
    competition: Competition,
    folder: DatasetFolder,
    work: Path,
    stack: ExitStack,
    *,
    verify: bool,
    keep_raw: bool,
    discard_zip: bool,
    keep_free: int,
    tell: TellStep,
) -> Raw:
    """Have the raw data ready to be read, wherever they are; a zip is read as it is unless it is to be discarded.

    Args:
        competition: whose.
        folder: where they lie.
        work: a folder for what is only needed for a while.
        stack: closes what stays open until the data have been read.
        verify: compare the zip with its known checksum.
        keep_raw: what is in the zip is to lie in a folder at the end.
        discard_zip: the zip is not needed any more, so that its space can be given back.
        keep_free: bytes that are to stay free on the disk.
        tell: told how far it is.

    Raises:
        DataProblem: there are none or they are damaged.
        DiskFull: they don't fit.
    """
    # They load numpy, which a console or an engine that only asks where data come from does not need.
    from competitions.kit.archives import zip_tree
    from competitions.kit.archives.zip_path import ZipPath
    from engine.datasets import unpacking

    if folder.whole_raw.is_dir():  # what an earlier, killed preparation extracted from a zip that is gone
        return Raw(folder.whole_raw, folder.whole_raw)
    found = folder.zips()
    if _holds_something(folder.raw) and (
        len(found) != 1 or unpacking.is_unpacked(unpacking.read_contents(found[0]), folder.raw)
    ):  # MLE-bench may have been killed while it extracted
        return Raw(folder.raw)
    if len(found) != 1:
        raise DataProblem(
            f"{competition.id} has no raw data in {folder.root}",
            "it holds several zips" if found else "there is neither raw/ nor a zip",
            f"Accept the rules at {competition.rules_url}, then put {competition.id}.zip there.",
        )
    (path,) = found
    consuming = folder.consuming.exists()
    if verify and not consuming:
        tell(VERIFY, "", 0, 0)  # a sum that is known since the download is not read again, and may yet differ
        sums.expect_zip(competition, path, _step(tell, VERIFY))
    tell(EXTRACT, "", 0, 0)
    known = sums.inflated_bytes(path)
    if known is None and competition.size_gb is not None:
        known = int(competition.size_gb * 1e9)
    consuming = consuming or (discard_zip and (keep_raw or unpacking.is_best_consumed(path)))
    if not (keep_raw or consuming):
        tree = stack.enter_context(zip_tree.opened(path, known_bytes=known))
        require_space(folder.root, tree.size, keep_free=keep_free)  # or hours pass until it is found out
        return Raw(ZipPath(tree), spent=path if discard_zip else None)
    if not consuming:
        unpacking.unpack(
            path, work / "raw", known_bytes=known, keep_free=keep_free, tell=_step(tell, EXTRACT)
        )
        return Raw(work / "raw", work / "raw")
    write_json(folder.consuming, {"zip": path.name})
    partial = folder.partial_raw
    unpacking.unpack(
        path, partial, known_bytes=known, keep_free=keep_free, consume=True, tell=_step(tell, EXTRACT)
    )
    partial.rename(folder.whole_raw)
    sync_directory(folder.root)
    path.unlink()
    sums.forget_zip(path)
    folder.consuming.unlink()
    return Raw(folder.whole_raw, folder.whole_raw)


def _step(tell: TellStep, step: str) -> Callable[[str, int, int], None]:
    return lambda what, done, total: tell(step, what, done, total)


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
