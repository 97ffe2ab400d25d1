"""MD5 sums: of Kaggle's zip and of prepared tables, compared with those that are known."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from competitions.kit.placing import checksummed
from competitions.model import Checksums, Competition
from engine.datasets.telling import Tell
from foundation.files import write_json
from foundation.problems import DataProblem

_TABLES = (".csv", ".json", ".jsonl", ".parquet", ".bson")
_BLOCK = 1 << 20


@dataclass(frozen=True)
class _Note:
    """What is known of a zip since its download, and by what to see that it is still the same file."""

    md5: str
    size: int
    changed: int
    inflated: int | None = None


def md5_of(path: Path, tell: Tell | None = None) -> str:
    """The MD5 of a file, which is what the known checksums are."""
    digest = hashlib.md5(usedforsecurity=False)
    total, done = path.stat().st_size, 0
    with path.open("rb", buffering=0) as stream:
        while chunk := stream.read(_BLOCK):
            digest.update(chunk)
            done += len(chunk)
            if tell is not None:
                tell(path.name, done, total)
    return digest.hexdigest()


def note_zip(path: Path, md5: str, inflated: int | None = None) -> None:
    """Keep the sum of a zip that was taken while it was downloaded, and what Kaggle says that it inflates to."""
    found = path.stat()
    note = _Note(md5, found.st_size, found.st_mtime_ns, inflated)
    write_json(_note_of(path), asdict(note), durable=False)


def zip_md5(path: Path, tell: Tell | None = None) -> str:
    """The MD5 of a zip, read only if it is not known since the download."""
    note = _noted(path)
    return md5_of(path, tell) if note is None else note.md5


def inflated_bytes(path: Path) -> int | None:
    """What Kaggle said at the download that a zip inflates to, if it was asked."""
    note = _noted(path)
    return None if note is None else note.inflated


def _noted(path: Path) -> _Note | None:
    found = path.stat()
    try:
        note = _Note(**json.loads(_note_of(path).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return note if (note.size, note.changed) == (found.st_size, found.st_mtime_ns) else None


def forget_zip(path: Path) -> None:
    """Remove the note of a zip that is gone."""
    _note_of(path).unlink(missing_ok=True)


def checksums_of(prepared: Path, tell: Tell | None = None) -> Checksums:
    """MD5 of the tables that lie directly in `public/` and `private/`, those for which sums are known."""
    sides = {side: _tables(prepared / side) for side in ("public", "private")}
    total = sum(path.stat().st_size for paths in sides.values() for path in paths)
    done = 0
    found: dict[str, dict[str, str]] = {}
    for side, paths in sides.items():
        found[side] = {}
        for path in paths:
            before = done

            def told(name: str, more: int, _of: int, before: int = before) -> None:
                if tell is not None:
                    tell(name, before + more, total)

            found[side][path.name] = checksummed.md5_of(path) or md5_of(path, told)
            done += path.stat().st_size
    return Checksums(None, found["public"], found["private"])


def expect_zip(competition: Competition, path: Path, tell: Tell) -> None:
    """Compare Kaggle's zip with the known checksum, if there is one.

    Raises:
        DataProblem: it differs.
    """
    if competition.checksums.zip is not None:
        _expect(competition, path.name, competition.checksums.zip, zip_md5(path, tell), path)


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
            _expect(competition, f"{side}/{name}", md5, actual.get(name, "no such file"))


def _expect(competition: Competition, name: str, expected: str, found: str, path: Path | None = None) -> None:
    if found != expected:
        again = f" or remove {path} to download it again" if path is not None else ""
        raise DataProblem(
            f"{competition.id}: {name} is not as known",
            f"expected MD5 {expected}, found {found}",
            "Kaggle's data may have changed or the copy is damaged: prepare without verification to use it all"
            f" the same{again}.",
        )


def _tables(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in _TABLES and path.is_file())


def _note_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.md5.json")
