"""Compute checksums of Kaggle's zip and of prepared tables, and compare them with the known ones.

They are MD5 sums of bytes, except for parquet files, whose bytes depend on the writer: these have content sums.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mlebench_console.competitions.kit.placing import checksummed
from mlebench_console.competitions.model import CONTENT, Checksums, Competition
from mlebench_console.engine.datasets.steps import ReportStep
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem

_TABLES = (".csv", ".json", ".jsonl", ".parquet", ".bson")
_PARQUET = ".parquet"
_BLOCK = 1 << 20
_RECORD_SUFFIX = ".md5.json"


@dataclass(frozen=True)
class _ZipRecord:
    """What was recorded of a zip at its download, with size and time to see if it is still the same file."""

    md5: str
    size: int
    changed: int
    inflated: int | None = None


def md5_of(path: Path, report: ReportStep | None = None) -> str:
    """Return the MD5 of a file, as the known checksums are."""
    digest = hashlib.md5(usedforsecurity=False)
    total, done = path.stat().st_size, 0
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(_BLOCK):
            digest.update(chunk)
            done += len(chunk)
            if report is not None:
                report(path.name, done, total)
    return digest.hexdigest()


def record_zip(path: Path, md5: str, inflated: int | None = None) -> None:
    """Record the MD5 of a zip, computed while it was downloaded, and its extracted size according to Kaggle."""
    found = path.stat()
    record = _ZipRecord(md5, found.st_size, found.st_mtime_ns, inflated)
    write_json(record_path(path), asdict(record), durable=False)


def zip_md5(path: Path, report: ReportStep | None = None) -> str:
    """Return the MD5 of a zip, from its record, or else by reading it."""
    return known_md5(path) or md5_of(path, report)


def known_md5(path: Path) -> str | None:
    """Return the recorded MD5 of a zip; None without a record."""
    record = _recorded(path)
    return None if record is None else record.md5


def inflated_bytes(path: Path) -> int | None:
    """Return the recorded extracted size of a zip, according to Kaggle; None if it was not requested."""
    record = _recorded(path)
    return None if record is None else record.inflated


def _recorded(path: Path) -> _ZipRecord | None:
    found = path.stat()
    try:
        record = _ZipRecord(**json.loads(record_path(path).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return record if (record.size, record.changed) == (found.st_size, found.st_mtime_ns) else None


def forget_zip(path: Path) -> None:
    """Remove the record of a zip that is gone."""
    record_path(path).unlink(missing_ok=True)


def checksums_of(prepared: Path, report: ReportStep | None = None) -> Checksums:
    """Compute the sums of the tables directly in `public/` and `private/`, for which checksums may be known."""
    sides = {side: _tables(prepared / side) for side in ("public", "private")}
    total = sum(path.stat().st_size for paths in sides.values() for path in paths)
    done = 0
    found: dict[str, dict[str, str]] = {}
    for side, paths in sides.items():
        found[side] = {}
        for path in paths:
            before = done

            def report_total(name: str, more: int, _of: int, before: int = before) -> None:
                if report is not None:
                    report(name, before + more, total)

            found[side][path.name] = (
                _content_sum(path) or checksummed.md5_of(path) or md5_of(path, report_total)
            )
            done += path.stat().st_size
    return Checksums(None, found["public"], found["private"])


def _content_sum(path: Path) -> str | None:
    """Return the content sum of a parquet file; None for other or damaged files."""
    if path.suffix != _PARQUET:
        return None
    from mlebench_console.competitions.kit.tables import parquet

    try:
        return CONTENT + parquet.content_sum(path)
    except DataProblem:
        return None


def comparable(sums: Mapping[str, str]) -> dict[str, str]:
    """Select the sums, by file name, that can be compared with those of our files.

    The published sum of a parquet file is an MD5 of another writer's bytes, and can't be compared; the content of ours
    follows from the zip, whose sum is known.
    """
    return {
        name: value
        for name, value in sums.items()
        if value.startswith(CONTENT) or not name.endswith(_PARQUET)
    }


def expect_zip(competition: Competition, path: Path, report: ReportStep) -> None:
    """Compare Kaggle's zip with the known checksum, if any.

    Raises:
        DataProblem: it differs.
    """
    if competition.checksums.zip is not None:
        _expect(competition, path.name, competition.checksums.zip, zip_md5(path, report), path)


def check_known(competition: Competition, found: Checksums) -> None:
    """Compare prepared tables with the known checksums.

    Raises:
        DataProblem: one is missing or differs, by name, with both sums.
    """
    sides = (
        ("public", competition.checksums.public, found.public),
        ("private", competition.checksums.private, found.private),
    )
    for side, expected, actual in sides:
        for name, known in comparable(expected).items():
            _expect(competition, f"{side}/{name}", known, actual.get(name, "no such file"))


def _expect(competition: Competition, name: str, expected: str, found: str, path: Path | None = None) -> None:
    if found != expected:
        again = f" or remove {path} to download it again" if path is not None else ""
        kind = "" if expected.startswith(CONTENT) else "MD5 "
        raise DataProblem(
            f"{name} does not match the known checksum",
            f"expected {kind}{expected}, found {found}",
            "Kaggle's data may have changed, or the copy is damaged: prepare without verification to use it anyway"
            f"{again}.",
            subject=competition.id,
        )


def _tables(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _TABLES and path.is_file())


def record_path(path: Path) -> Path:
    """Return the path of a zip's record."""
    return path.with_name(f".{path.name}{_RECORD_SUFFIX}")


def stale_records(folder: Path) -> list[Path]:
    """List the records of zips that no longer exist."""
    return [
        path
        for path in folder.glob(f".*.zip{_RECORD_SUFFIX}")
        if not path.with_name(path.name[1:].removesuffix(_RECORD_SUFFIX)).exists()
    ]
