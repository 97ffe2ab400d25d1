"""All datasets with their totals and what preparing them needs, and one dataset in detail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Edition
from mlebench_console.console.nouns.competition import competition
from mlebench_console.console.nouns.dataset import STEPS_DONE, DatasetRow, dataset_rows, on_disk, place
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.datasets.estimates import Throughput, measured, usual_peak
from mlebench_console.engine.datasets.prepared.verification import TableSum, table_sums
from mlebench_console.engine.datasets.steps import DOWNLOAD
from mlebench_console.engine.layout import dataset_folder
from mlebench_console.engine.places import Places
from mlebench_console.engine.space import free_bytes
from mlebench_console.state import datasets, events
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import Event
from mlebench_console.state.records import DatasetState, KaggleState

_MOST_FILES = 200
_MOST_EVENTS = 100


@dataclass(frozen=True)
class DatasetBoard:
    """All datasets, the throughput of earlier preparations, and the free disk space."""

    rows: tuple[DatasetRow, ...] = ()
    throughput: Throughput = field(default_factory=Throughput)
    free: int | None = None
    kaggle: KaggleState = field(default_factory=KaggleState)


@dataclass(frozen=True)
class PreparedFile:
    """One entry of a prepared folder; the size of a sub-folder is None, since adding it up would take too long."""

    name: str
    bytes: int | None


@dataclass(frozen=True)
class DatasetDetail:
    """One dataset on the disk, and its events.

    Attributes:
        files: the first entries directly in `public/` and `private/`.
        log: its last events, newest first.
    """

    folder: Path
    rules_url: str | None
    files: tuple[PreparedFile, ...]
    sums: tuple[TableSum, ...]
    log: tuple[Event, ...]


@dataclass(frozen=True)
class Totals:
    """Totals of all datasets; None is unknown.

    Attributes:
        busy: the number that are being prepared or wait to be.
        downloaded: bytes of those already downloaded.
        download_rate: bytes per second, as measured last.
        missing: the number that are neither prepared nor being prepared.
        missing_of_unknown_size: the number of those whose size is unknown.
        fitting: how many of the missing ones of known size would fit on the disk, smallest first.
        eta: seconds until all requested datasets are prepared.
        of_unknown_size: the number of requested ones whose size is unknown, so that the eta is too low.
    """

    to_download: int
    on_disk: int
    free: int | None
    missing: int
    missing_of_unknown_size: int
    fitting: int | None
    eta: float | None
    of_unknown_size: int
    busy: int
    downloaded: int
    download_rate: float | None


@dataclass(frozen=True)
class PreparationNeeds:
    """The download and disk space needed to prepare some datasets.

    Attributes:
        unknown: the number of unknown size; they are not included in the other figures.
        fits: whether there is enough disk space; None if unknown.
    """

    count: int
    to_download: int
    peak: int
    unknown: int
    fits: bool | None


def dataset_board(database: Database, data_dir: Path) -> DatasetBoard:
    """Read all datasets, how fast earlier ones were prepared, and the free space."""
    rows = dataset_rows(database)
    rates = measured(row.steps for row in rows)
    return DatasetBoard(tuple(rows), rates, free_bytes(data_dir), datasets.kaggle(database))


def board_of_disk(data_dir: Path) -> DatasetBoard:
    """Return all datasets as found on the disk, for use without a state."""
    rows = [on_disk(DatasetRow(name, "v1"), data_dir) for name in registry.all_ids()]
    return DatasetBoard(tuple(sorted(rows, key=place)), free=free_bytes(data_dir))


def dataset_detail(
    database: Database, data_dir: Path, competition_id: str, edition: Edition
) -> DatasetDetail | None:
    """Read one dataset; reads two folder listings and one small file, never a whole tree."""
    found = competition(competition_id)
    if found is None:
        return None
    folder = dataset_folder(found, data_dir, edition)
    happened = events.newest(database, limit=_MOST_EVENTS, competition_id=competition_id)
    return DatasetDetail(
        folder.root,
        registry.rules_url(found),
        _files(folder.prepared),
        table_sums(found, folder),
        tuple(event for event in happened if event.subject == "dataset"),
    )


def totals(board: DatasetBoard, *, free: int | None, download_rate: float | None) -> Totals:
    """Compute totals; the rate of a running download is preferred to that of earlier ones."""
    busy = [row for row in board.rows if row.is_busy]
    throughput = replace(board.throughput, download=download_rate) if download_rate else board.throughput
    missing = [row for row in board.rows if row.state is not DatasetState.PREPARED and not row.is_busy]
    to_download = sum(row.bytes_to_download for row in busy)
    return Totals(
        to_download,
        sum(row.bytes_on_disk or 0 for row in board.rows),
        free,
        len(missing),
        sum(row.zip_bytes is None for row in missing),
        None if free is None else _fitting(missing, free - sum(_peak(row) for row in busy)),
        throughput.seconds(to_download, sum(row.zip_bytes or 0 for row in busy)) if busy else None,
        sum(row.zip_bytes is None for row in busy),
        len(busy),
        sum(row.downloaded_bytes for row in busy),
        download_rate,
    )


def totals_of(database: Database, places: Places, engine: EngineStatus | None) -> Totals:
    """Read all datasets and compute their totals, with the download rate measured by a running engine."""
    rate = engine.download_rate if engine is not None and engine.running else None
    board = dataset_board(database, places.data_dir)
    return totals(board, free=board.free, download_rate=rate)


def needs(chosen: Sequence[DatasetRow], free: int | None) -> PreparationNeeds:
    """Return what is needed to prepare those of the chosen that are not prepared."""
    missing = [row for row in chosen if row.state is not DatasetState.PREPARED]
    peak = sum(_peak(row) for row in missing)
    return PreparationNeeds(
        len(missing),
        sum(row.zip_bytes or 0 for row in missing),
        peak,
        sum(row.zip_bytes is None for row in missing),
        None if free is None else peak <= free,
    )


def _files(prepared: Path) -> tuple[PreparedFile, ...]:
    found: list[PreparedFile] = []
    for side in ("public", "private"):
        folder = prepared / side
        if folder.is_dir():
            with os.scandir(folder) as entries:
                found += [_file(side, entry) for entry in islice(entries, _MOST_FILES)]
    return tuple(sorted(found, key=lambda file: file.name))


def _file(side: str, entry: os.DirEntry[str]) -> PreparedFile:
    if entry.is_dir(follow_symlinks=False):
        return PreparedFile(f"{side}/{entry.name}/", None)
    return PreparedFile(f"{side}/{entry.name}", entry.stat(follow_symlinks=False).st_size)


def _fitting(missing: Sequence[DatasetRow], free: int) -> int:
    count = 0
    for peak in sorted(_peak(row) for row in missing if row.zip_bytes is not None):
        free -= peak
        if free < 0:
            break
        count += 1
    return count


def _peak(row: DatasetRow) -> int:
    """Return the peak disk space that a dataset still needs; a downloaded zip is already on the disk."""
    if row.zip_bytes is None:
        return 0
    there = any(step.name == DOWNLOAD and step.state in STEPS_DONE for step in row.steps) and row.is_busy
    return usual_peak(row.zip_bytes) - (row.zip_bytes if there else 0)
