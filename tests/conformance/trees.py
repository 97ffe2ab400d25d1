"""Reading vectors and prepared folders into one comparable form."""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Case:
    """One submission and what must come of it."""

    submission: Path
    expect: str
    score: float | None
    rounded: float | None
    answers: Path | None
    unstable: bool


@dataclass(frozen=True)
class Vector:
    """The synthetic raw data of one competition and what edition v1 makes of them."""

    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name

    @property
    def parameters(self) -> dict[str, Any]:
        path = self.folder / "parameters.json"
        values: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return values

    @property
    def expected(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads((self.folder / "prepared.json").read_text())
        return values

    def unpack_raw(self, target: Path) -> Path:
        target.mkdir(parents=True)
        unpack_tar(self.folder / "raw.tar.gz", target)
        return target

    def cases(self) -> list[Case]:
        return [
            Case(
                submission=self.folder / "submissions" / values["submission"],
                expect=values["expect"],
                score=values.get("score"),
                rounded=values.get("rounded"),
                answers=self.folder / values["answers"] if "answers" in values else None,
                unstable=values.get("unstable", False),
            )
            for values in json.loads((self.folder / "cases.json").read_text())
        ]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def describe(prepared: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """Describe a prepared folder as the vectors do: files by hash, archives by member."""
    return {side: _describe_side(prepared / side, expected[side]) for side in ("public", "private")}


def _describe_side(folder: Path, expected: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            if not any(path.iterdir()):
                found[f"{name}/"] = {"dir": True}
        elif name != "description.md":
            found[name] = _describe_file(path, expected.get(name, {}))
    return found


def unpack_tar(path: Path, target: Path) -> None:
    """Unpack an archive of the tests' own; Python below 3.11.4 has no filters, later ones want one."""
    with tarfile.open(path) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
        archive.extractall(target)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = archive.extractfile(member)
    assert stream is not None, f"{member.name} is no file"
    return stream.read()


def _describe_file(path: Path, expected: dict[str, Any]) -> dict[str, Any]:
    if "zip" in expected:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            return {"zip": {name: digest(archive.read(name)) for name in names}}
    if "tar" in expected:
        with tarfile.open(path) as archive:
            members = [member for member in archive.getmembers() if member.isfile()]
            return {
                "tar": {
                    member.name.removeprefix("./"): digest(_content(archive, member)) for member in members
                }
            }
    if "7z" in expected:
        import py7zr

        with tempfile.TemporaryDirectory() as scratch:
            with py7zr.SevenZipFile(path) as archive:
                archive.extractall(scratch)
            base = Path(scratch)
            files = sorted(found for found in base.rglob("*") if found.is_file())
            return {"7z": {found.relative_to(base).as_posix(): digest(found.read_bytes()) for found in files}}
    return {"sha256": digest(path.read_bytes()), "bytes": path.stat().st_size}


def parquet_facts(path: Path) -> dict[str, Any]:
    """What a parquet file holds, for those whose bytes depend on the writer."""
    import pandas as pd

    table = pd.read_parquet(path)
    return {
        "columns": {name: str(kind) for name, kind in table.dtypes.items()},
        "csv_sha256": digest(table.to_csv(index=False).encode()),
        "rows": len(table),
    }
