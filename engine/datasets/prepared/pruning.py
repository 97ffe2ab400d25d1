"""Free disk space: list the parts of a dataset with their sizes, and remove chosen ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.competitions.model import Competition
from mlebench_console.engine.claims import claimed
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.datasets.prepared.workspace import TRASH, discard
from mlebench_console.engine.layout import DatasetFolder, dataset_folder, squashfs_image
from mlebench_console.engine.space import size_on_disk
from mlebench_console.foundation.files import PARTIAL_SUFFIX
from mlebench_console.foundation.problems import UsageProblem

ZIP, RAW, PARTIAL, PREPARED, CORRECTED = PARTS = ("zip", "raw", "partial", "prepared", "prepared-corrected")


@dataclass(frozen=True)
class Part:
    """One part of a competition's files on the disk."""

    competition_id: str
    name: str
    paths: tuple[Path, ...]
    bytes: int
    changed: float


def parts_of(competition: Competition, data_dir: Path) -> tuple[Part, ...]:
    """List the existing parts of a competition's files."""
    folder = dataset_folder(competition, data_dir)
    if not folder.root.is_dir():
        return ()
    found = ((name, _paths(folder, name)) for name in PARTS)
    return tuple(_part(competition.id, name, paths) for name, paths in found if paths)


def prune(competition: Competition, data_dir: Path, names: Sequence[str]) -> int:
    """Remove parts of a competition's data, and return the freed bytes.

    Raises:
        UsageProblem: there is no such part.
        Claimed: another process works on the dataset.
    """
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise UsageProblem(f"a dataset has no part '{unknown[0]}'", "", f"Choose one of {', '.join(PARTS)}.")
    folder = dataset_folder(competition, data_dir)
    if not folder.root.is_dir():
        return 0
    with claimed(folder.claim, competition.id):
        parts = [part for part in parts_of(competition, data_dir) if part.name in names]
        for path in (*(path for part in parts for path in part.paths), *folder.root.glob(f"{TRASH}*")):
            discard(folder, path)
    return sum(part.bytes for part in parts)


def _paths(folder: DatasetFolder, name: str) -> tuple[Path, ...]:
    match name:
        case "zip":
            zips = folder.zips()
            wanted: Iterable[Path] = (*zips, *map(checksums.record_path, zips))
        case "raw":
            wanted = (folder.raw, folder.published)
        case "partial":
            wanted = [*folder.root.glob(f"*{PARTIAL_SUFFIX}"), *folder.root.glob(f"*{PARTIAL_SUFFIX}.json")]
            wanted += [*folder.root.glob(f"{TRASH}*"), *checksums.stale_records(folder.root)]
        case _:
            image = squashfs_image(folder.root / name)
            wanted = (folder.root / name, image, image.with_name(f"{image.name}.json"))
    return tuple(path for path in wanted if path.exists())


def _part(competition_id: str, name: str, paths: tuple[Path, ...]) -> Part:
    size = sum(size_on_disk(path) if path.is_dir() else path.lstat().st_size for path in paths)
    return Part(competition_id, name, paths, size, max(path.lstat().st_mtime for path in paths))
