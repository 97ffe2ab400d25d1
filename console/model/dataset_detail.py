"""What the datasets screen tells of one dataset beyond its row: where it lies, its files, its sums."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from competitions import registry
from competitions.model import Edition
from engine.layout import dataset_folder, prepared_with
from state.database import Database

_MOST_FILES = 200


@dataclass(frozen=True)
class KnownSum:
    """One table's MD5: the known one of the real data, and the one found when it was prepared."""

    name: str
    known: str | None
    found: str | None


@dataclass(frozen=True)
class DatasetDetail:
    """One dataset as it lies on the disk."""

    folder: Path
    rules_url: str
    files: tuple[str, ...]
    sums: tuple[KnownSum, ...]


def dataset_detail(
    data_dir: Path, competition_id: str, edition: Edition
) -> Callable[[Database], DatasetDetail | None]:
    """Make the question; looking costs two folder listings and one small file, never a whole tree."""

    def look(_database: Database) -> DatasetDetail | None:
        if competition_id not in registry.all_ids():
            return None
        competition = registry.get(competition_id)
        folder = dataset_folder(competition, data_dir, edition)
        marker = prepared_with(folder) or {}
        sums = []
        for side, known in (
            ("public", competition.checksums.public),
            ("private", competition.checksums.private),
        ):
            noted = marker.get(side)
            found = noted if isinstance(noted, dict) else {}
            real = known if edition == "v1" else {}
            sums += [
                KnownSum(f"{side}/{name}", real.get(name), found.get(name))
                for name in sorted({*real, *found})
            ]
        return DatasetDetail(folder.root, competition.rules_url, _names(folder.prepared), tuple(sums))

    return look


def _names(prepared: Path) -> tuple[str, ...]:
    found: list[str] = []
    for side in ("public", "private"):
        folder = prepared / side
        if folder.is_dir():
            with os.scandir(folder) as entries:
                found += [f"{side}/{entry.name}{'/' if entry.is_dir() else ''}" for entry in entries]
    return tuple(sorted(found)[:_MOST_FILES])
