"""Preparing one dataset from its raw data, so that a kill at any moment leaves the old state or the new one."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from competitions.kit import archives
from competitions.model import Checksums, Competition, Edition, Parameter
from competitions.registry import get, load_task
from competitions.task import Preparation, Progress, merge_parameters, refuse_excluded, silent
from engine.layout import DatasetFolder, dataset_folder
from foundation.files import PARTIAL_SUFFIX, sync_directory, sync_file_system, write_json
from foundation.locks import FileLock
from foundation.problems import DataProblem, StateProblem

_TABLES = (".csv", ".json", ".jsonl", ".parquet", ".bson")
_BLOCK = 1 << 20


def prepare(
    competition_id: str,
    *,
    data_dir: Path | str | None = None,
    raw: Path | str | None = None,
    edition: Edition = "v1",
    parameters: Mapping[str, Parameter] | None = None,
    verify: bool | None = None,
    may_link: bool = False,
    progress: Progress = silent,
) -> Path:
    """Prepare a dataset and return its `prepared` folder; see `engine.prepare_competition`.

    Args:
        competition_id: which competition.
        data_dir: where datasets lie.
        raw: an already extracted Kaggle folder.
        edition: which edition's task.
        parameters: replaces numbers that the competition fixes.
        verify: compare with the known checksums.
        may_link: let outputs share their bytes with raw by hard links, for a raw that nobody keeps.
        progress: told how far we are; what it raises cancels the preparation.
    """
    competition = get(competition_id)
    refuse_excluded(competition, edition)
    task = load_task(competition)
    folder = dataset_folder(competition, data_dir, edition)
    merged = merge_parameters(competition, parameters)
    if verify is None:
        verify = raw is None and not parameters
    folder.root.mkdir(parents=True, exist_ok=True)
    with _locked(folder), _workspace(folder) as work:
        source = _raw_source(competition, folder, None if raw is None else Path(raw))
        if source.is_file():
            if verify and competition.checksums.zip is not None:
                _expect_md5(competition, source.name, competition.checksums.zip, md5_of(source))
            source = _extract_zip(source, work / "raw", progress)
        job = Preparation(
            competition=competition,
            edition=edition,
            parameters=merged,
            raw=source,
            public=work / "prepared" / "public",
            private=work / "prepared" / "private",
            scratch=work / "scratch",
            may_link=may_link or source.is_relative_to(work),
            progress=progress,
        )
        for path in (job.public, job.private, job.scratch):
            path.mkdir(parents=True)
        task.prepare(job)
        found = checksums_of(work / "prepared")
        if verify and edition == "v1":  # the known sums are those of what MLE-bench makes
            compare_checksums(competition, found)
        if competition.description_path.is_file():
            shutil.copyfile(competition.description_path, job.public / "description.md")
        write_json(
            work / "prepared" / folder.marker.name,
            {
                "competition_id": competition.id,
                "edition": edition,
                "parameters": dict(merged),
                "verified": verify,
                "prepared_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "public": dict(found.public),
                "private": dict(found.private),
            },
        )
        _put_in_place(work, folder)
    return folder.prepared


@contextmanager
def _locked(folder: DatasetFolder) -> Iterator[None]:
    lock = FileLock(folder.lock)
    if not lock.acquire(note="preparing"):
        raise StateProblem(
            f"{folder.root.name} is being prepared by another process",
            f"{folder.lock} is held",
            "Wait for it to end.",
        )
    with lock:
        yield


@contextmanager
def _workspace(folder: DatasetFolder) -> Iterator[Path]:
    prefix = f".{folder.prepared.name}."
    for left in folder.root.glob(f"{prefix}*{PARTIAL_SUFFIX}"):
        _resolve(left, folder)
    work = Path(tempfile.mkdtemp(prefix=prefix, suffix=PARTIAL_SUFFIX, dir=folder.root))
    work.chmod(0o755)
    try:
        yield work
    finally:
        shutil.rmtree(work)


def _resolve(left: Path, folder: DatasetFolder) -> None:
    # we hold the lock, so a killed preparation left this; was it killed between the two renames at the end?
    if (left / "replaced").exists() and not folder.prepared.exists():
        (left / "prepared").rename(folder.prepared)
    shutil.rmtree(left)


def _raw_source(competition: Competition, folder: DatasetFolder, given: Path | None) -> Path:
    if given is not None:
        if not given.is_dir():
            raise DataProblem(
                f"Raw folder {given} was not found", next_step="Give an extracted Kaggle folder."
            )
        return given.absolute()
    if folder.raw.is_dir() and any(folder.raw.iterdir()):
        return folder.raw
    zips = folder.zips()
    if len(zips) != 1:
        raise DataProblem(
            f"{competition.id} has no raw data in {folder.root}",
            "it holds several zips" if zips else "there is neither raw/ nor a zip",
            f"Accept the rules at {competition.rules_url}, then put {competition.id}.zip there.",
        )
    return zips[0]


def _extract_zip(path: Path, target: Path, progress: Progress) -> Path:
    names = archives.files_in(path)
    archives.extract_members(path, {name: target / archives.safe_path(name) for name in names}, progress)
    return target


def _put_in_place(work: Path, folder: DatasetFolder) -> None:
    sync_file_system(work)  # the files' contents must reach the disk before the name that vouches for them
    if folder.prepared.exists():
        folder.prepared.rename(work / "replaced")
    (work / "prepared").rename(folder.prepared)
    sync_directory(folder.root)


def checksums_of(prepared: Path) -> Checksums:
    """MD5 of the tables that lie directly in `public/` and `private/`, those for which sums are known."""
    return Checksums(None, _sums(prepared / "public"), _sums(prepared / "private"))


def _sums(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.iterdir() if path.suffix in _TABLES and path.is_file())
    return {path.name: md5_of(path) for path in paths}


def md5_of(path: Path) -> str:
    """The MD5 of a file, which is what the known checksums are."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False))
    return digest.hexdigest()


def compare_checksums(competition: Competition, found: Checksums) -> None:
    """Compare prepared tables with the known checksums.

    Raises:
        DataProblem: one is missing or differs, by name, with both sums.
    """
    sides = (
        ("public", competition.checksums.public, found.public),
        ("private", competition.checksums.private, found.private),
    )
    for side, expected, actual in sides:
        for name, md5 in expected.items():
            _expect_md5(competition, f"{side}/{name}", md5, actual.get(name, "no such file"))


def _expect_md5(competition: Competition, name: str, expected: str, found: str) -> None:
    if found != expected:
        raise DataProblem(
            f"{competition.id}: {name} is not as known",
            f"expected MD5 {expected}, found {found}",
            "Kaggle's data may have changed or the download is damaged; prepare without verification to use it "
            "all the same.",
        )
