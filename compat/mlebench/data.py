"""MLE-bench's functions for datasets: check and prepare them, and get leaderboards."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlebench.registry import NO_LEADERBOARD, Competition
from mlebench.utils import authenticate_kaggle_api, get_logger
from mlebench_console.competitions import registry as known
from mlebench_console.engine import layout

if TYPE_CHECKING:
    import pandas as pd

logger = get_logger(__name__)


def create_prepared_dir(competition: Competition) -> None:
    """Create the folders of a prepared dataset."""
    competition.public_dir.mkdir(exist_ok=True, parents=True)
    competition.private_dir.mkdir(exist_ok=True, parents=True)


def is_dataset_prepared(competition: Competition, grading_only: bool = False) -> bool:
    """Return whether agents can run on a dataset and their submissions be graded, or the latter alone."""
    facts = known.get(competition.id)
    folder = layout.dataset_folder(facts, competition.raw_dir.parent.parent)
    return layout.can_grade(facts, folder) if grading_only else layout.is_prepared(facts, folder)


def download_and_prepare_dataset(
    competition: Competition,
    keep_raw: bool = True,
    overwrite_checksums: bool = False,
    overwrite_leaderboard: bool = False,
    skip_verification: bool = False,
) -> None:
    """Prepare a dataset, downloading it if necessary; a prepared dataset is kept.

    Raises:
        RuntimeError: it can't be prepared; the reason was written to standard error.
    """
    from mlebench_console.console.cli.program import run

    flags = {
        "--keep-raw": keep_raw,
        "--overwrite-checksums": overwrite_checksums,
        "--overwrite-leaderboard": overwrite_leaderboard,
        "--skip-verification": skip_verification,
    }
    given = [flag for flag, wanted in flags.items() if wanted]
    data_dir = competition.raw_dir.parent.parent
    code = run(["prepare", "-c", competition.id, "--data-dir", str(data_dir), *given])
    if code:
        raise RuntimeError(f"{competition.id} was not prepared (exit code {code})")


def is_api_exception(exception: Exception) -> bool:
    """Return whether Kaggle has answered with an error."""
    import requests

    return isinstance(exception, requests.HTTPError)


def download_dataset(
    competition_id: str, download_dir: Path, quiet: bool = False, force: bool = False
) -> Path:
    """Download a competition's data as one zip file, and return its path.

    Raises:
        PermissionError: Kaggle does not accept the credentials.
        RuntimeError: it is not one zip file.
    """
    download_dir.mkdir(parents=True, exist_ok=True)
    client = authenticate_kaggle_api()
    client.competition_download_files(competition_id, path=str(download_dir), quiet=quiet, force=force)
    zips = list(download_dir.glob("*.zip"))
    if len(zips) != 1:
        raise RuntimeError(f"Expected to download a single zip file, but found {len(zips)} zip files.")
    return zips[0]


def is_valid_prepare_fn(preparer_fn: Any) -> bool:
    """Return whether a function has the parameters `raw`, `public` and `private`, in that order."""
    try:
        return list(inspect.signature(preparer_fn).parameters) == ["raw", "public", "private"]
    except (TypeError, ValueError):
        return False


def get_last_modified(fpath: Path) -> datetime:
    """Return when a file was last changed."""
    return datetime.fromtimestamp(fpath.stat().st_mtime)


def file_cache(fn: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """Keep, for this process, what a function of one path returns until the file changes.

    Raises:
        NotImplementedError: the function has other parameters.
    """
    kinds = [each.annotation for each in inspect.signature(fn).parameters.values()]
    if kinds not in ([Path], ["Path"]):
        raise NotImplementedError("Only functions with a single `Path` argument are supported.")
    kept: dict[tuple[Path, datetime], Any] = {}

    @functools.wraps(fn)
    def wrapper(fpath: Path) -> Any:
        key = (fpath, get_last_modified(fpath))
        if key not in kept:
            kept[key] = fn(fpath)
        return kept[key]

    return wrapper


@file_cache
def get_checksum(fpath: Path) -> str:
    """Return the MD5 of a file."""
    with fpath.open("rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()


def generate_checksums(
    target_dir: Path, exts: Sequence[str] | None = None, exclude: Collection[Path] | None = None
) -> dict[str, str]:
    """Return the MD5 of the tables directly in a folder, or of the files with some endings, by name."""
    endings = ("csv", "json", "jsonl", "parquet", "bson") if exts is None else exts
    files = [path for ending in endings for path in target_dir.glob(f"*.{ending}") if path.is_file()]
    return {path.name: get_checksum(path) for path in files if path not in (exclude or ())}


def ensure_leaderboard_exists(competition: Competition, force: bool = False) -> Path:
    """Return the path of a competition's leaderboard, downloading it if `force` is set.

    Raises:
        Problem: it can't be downloaded, or only a part of it.
    """
    from mlebench_console.competitions.leaderboards import path_of
    from mlebench_console.engine.datasets.facts import refresh_leaderboard

    if not force:
        return competition.leaderboard
    refresh_leaderboard(competition.id, force=True)
    return path_of(known.get(competition.id))


def get_leaderboard(competition: Competition) -> pd.DataFrame:
    """Read a competition's leaderboard, best score first; empty where only its cut-offs are known."""
    import pandas as pd

    if competition.leaderboard == NO_LEADERBOARD:
        logger.warning(
            f"Only the cut-offs of {competition.id} are known, so its leaderboard is empty; "
            "to have all of it: mlebench-console dev import-leaderboards"
        )
    return pd.read_csv(competition.leaderboard, dtype={"score": float})
