"""Where a dataset's raw data come from: a given folder, what lies there extracted, a zip, or Kaggle."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from competitions.model import Competition
from engine.datasets import sums, unpacking
from engine.datasets.telling import TellStep, quiet
from engine.layout import DatasetFolder
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
    """Raw data, extracted.

    Attributes:
        ours: whether it is nobody else's, so that outputs may share its blocks and it is removed at the end.
    """

    folder: Path
    ours: bool


def given_folder(path: Path) -> Raw:
    """Raw data that somebody extracted.

    Raises:
        DataProblem: there is no such folder.
    """
    if not path.is_dir():
        raise DataProblem(f"Raw folder {path} was not found", next_step="Give an extracted Kaggle folder.")
    return Raw(path.absolute(), ours=False)


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
    sums.note_md5(target, found.md5)


def _telling_wait(tell: TellStep, place: Callable[[], tuple[str, int, int]]) -> Callable[[float, str], None]:
    def wait(seconds: float, why: str) -> None:
        step, done, total = place()
        tell(step, f"waiting {seconds:.0f} s: {why}", done, total)
        time.sleep(seconds)

    return wait


def extracted(
    competition: Competition,
    folder: DatasetFolder,
    work: Path,
    *,
    verify: bool,
    discard_zip: bool,
    keep_free: int,
    tell: TellStep,
) -> Raw:
    """Have the raw data extracted, from wherever they are.

    Raises:
        DataProblem: there are none or they are damaged.
        DiskFull: they don't fit.
    """
    if folder.whole_raw.is_dir():  # what an earlier, killed preparation extracted from a zip that is gone
        return Raw(folder.whole_raw, ours=True)
    found = folder.zips()
    if _holds_something(folder.raw) and (len(found) != 1 or _is_whole(folder.raw, found[0])):
        return Raw(folder.raw, ours=False)
    if len(found) != 1:
        raise DataProblem(
            f"{competition.id} has no raw data in {folder.root}",
            "it holds several zips" if found else "there is neither raw/ nor a zip",
            f"Accept the rules at {competition.rules_url}, then put {competition.id}.zip there.",
        )
    (path,) = found
    consuming = folder.consuming.exists()
    if verify and not consuming:
        sums.expect_zip(competition, path, _step(tell, VERIFY))
    tell(EXTRACT, "", 0, 0)
    if not (discard_zip or consuming):
        unpacking.unpack(path, work / "raw", keep_free=keep_free, tell=_step(tell, EXTRACT))
        return Raw(work / "raw", ours=True)
    write_json(folder.consuming, {"zip": path.name})
    partial = folder.partial_raw
    unpacking.unpack(path, partial, keep_free=keep_free, consume=True, tell=_step(tell, EXTRACT))
    partial.rename(folder.whole_raw)
    sync_directory(folder.root)
    path.unlink()
    sums.forget_md5(path)
    folder.consuming.unlink()
    return Raw(folder.whole_raw, ours=True)


def _is_whole(raw: Path, path: Path) -> bool:
    """Whether everything of a zip was extracted; MLE-bench may have been killed while it did so."""
    contents = unpacking.read_contents(path)
    return all(unpacking.is_there(raw, member) for member in contents.members)


def _step(tell: TellStep, step: str) -> Callable[[str, int, int], None]:
    return lambda what, done, total: tell(step, what, done, total)


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())
