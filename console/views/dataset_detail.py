"""What the datasets screen tells of one dataset beyond its row: where it lies, its files, its sums, its log."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from competitions import registry
from competitions.model import Edition
from engine.layout import dataset_folder, prepared_with
from state import events
from state.database import Database
from state.records import Event

_MOST_FILES = 200
_MOST_EVENTS = 100


@dataclass(frozen=True)
class KnownSum:
    """One table's MD5: the known one of the real data, and the one found when it was prepared."""

    name: str
    known: str | None
    found: str | None

    @property
    def differs(self) -> bool:
        """Whether both are known and not the same."""
        return self.known is not None and self.found is not None and self.known != self.found


@dataclass(frozen=True)
class File:
    """One entry of a prepared folder; a folder has no size, because that would mean to walk through it."""

    name: str
    bytes: int | None


@dataclass(frozen=True)
class DatasetDetail:
    """One dataset as it lies on the disk, and what has happened to it.

    Attributes:
        files: what lies directly in `public/` and `private/`, as far as that is not too much to show.
        log: the newest events, the newest first.
    """

    folder: Path
    rules_url: str
    files: tuple[File, ...]
    sums: tuple[KnownSum, ...]
    log: tuple[Event, ...]


def dataset_detail(
    data_dir: Path, competition_id: str, edition: Edition
) -> Callable[[Database], DatasetDetail | None]:
    """Make the question; looking costs two folder listings and one small file, never a whole tree."""

    def look(database: Database) -> DatasetDetail | None:
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
        happened = events.newest(database, limit=_MOST_EVENTS, competition_id=competition_id)
        return DatasetDetail(
            folder.root,
            competition.rules_url,
            _files(folder.prepared),
            tuple(sums),
            tuple(event for event in happened if event.kind.startswith("dataset.")),
        )

    return look


def _files(prepared: Path) -> tuple[File, ...]:
    found: list[File] = []
    for side in ("public", "private"):
        folder = prepared / side
        if folder.is_dir():
            with os.scandir(folder) as entries:
                found += [_file(side, entry) for entry in islice(entries, _MOST_FILES)]
    return tuple(sorted(found, key=lambda file: file.name))


def _file(side: str, entry: os.DirEntry[str]) -> File:
    if entry.is_dir(follow_symlinks=False):
        return File(f"{side}/{entry.name}/", None)
    return File(f"{side}/{entry.name}", entry.stat(follow_symlinks=False).st_size)
