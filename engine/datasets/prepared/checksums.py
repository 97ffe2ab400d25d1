"""Checksums of Kaggle's zip and of prepared tables, compared with the known ones.

They are MD5 sums of bytes, but for parquet files, whose bytes depend on the writer: those have sums of what they hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from competitions.kit.placing import checksummed
from competitions.model import CONTENT, Checksums, Competition
from engine.datasets.steps import ReportStep
from foundation.files import write_json
from foundation.problems import DataProblem

_TABLES = (".csv", ".json", ".jsonl", ".parquet", ".bson")
_PARQUET = ".parquet"
_BLOCK = 1 << 20
_RECORD_SUFFIX = ".md5.json"


@dataclass(frozen=True)
class _ZipRecord:
    """What is known of a zip since its download, and by what to see that it is still the same file."""

    md5: str
    size: int
    changed: int
    inflated: int | None = None


def md5_of(path: Path, report: ReportStep | None = None) -> str:
    """The MD5 of a file, which is what the known checksums are."""
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
    """Record the sum of a zip that was taken while it was downloaded, and what Kaggle says that it inflates to."""
    found = path.stat()
    record = _ZipRecord(md5, found.st_size, found.st_mtime_ns, inflated)
    write_json(record_path(path), asdict(record), durable=False)


def zip_md5(path: Path, report: ReportStep | None = None) -> str:
    """The MD5 of a zip, read only if it is not known since the download."""
    return known_md5(path) or md5_of(path, report)


def known_md5(path: Path) -> str | None:
    """The MD5 of a zip if it is recorded."""
    record = _recorded(path)
    return None if record is None else record.md5


def inflated_bytes(path: Path) -> int | None:
    """What Kaggle said at the download that a zip inflates to, if it was asked."""
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
    """Sums of the tables that lie directly in `public/` and `private/`, the files for which checksums are known."""
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
    """The sum of what a parquet file holds; None for what is none, by its name or because it is damaged."""
    if path.suffix != _PARQUET:
        return None
    from competitions.kit.tables import parquet

    try:
        return CONTENT + parquet.content_sum(path)
    except DataProblem:
        return None


def comparable(sums: Mapping[str, str]) -> dict[str, str]:
    """Those of some sums, by the file's name, with which what is found can be compared.

    An MD5 of a parquet file, as the published ones are, is that of one writer's bytes. What our own hold follows from
    the zip, whose sum is known.
    """
    return {
        name: value
        for name, value in sums.items()
        if value.startswith(CONTENT) or not name.endswith(_PARQUET)
    }


def expect_zip(competition: Competition, path: Path, report: ReportStep, md5: str | None = None) -> None:
    """Compare Kaggle's zip with the known checksum, if there is one; `md5` is its own, where it can't be read any more.

    Raises:
        DataProblem: it differs.
    """
    if competition.checksums.zip is not None:
        _expect(competition, path.name, competition.checksums.zip, md5 or zip_md5(path, report), path)


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
            f"{competition.id}: {name} does not match the known checksum",
            f"expected {kind}{expected}, found {found}",
            "Kaggle's data may have changed or the copy is damaged: prepare without verification to use it all"
            f" the same{again}.",
        )


def _tables(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _TABLES and path.is_file())


def record_path(path: Path) -> Path:
    """Where it is recorded what is known of a zip."""
    return path.with_name(f".{path.name}{_RECORD_SUFFIX}")


def stale_records(folder: Path) -> list[Path]:
    """What is recorded of zips that are gone."""
    return [
        path
        for path in folder.glob(f".*.zip{_RECORD_SUFFIX}")
        if not path.with_name(path.name[1:].removesuffix(_RECORD_SUFFIX)).exists()
    ]
