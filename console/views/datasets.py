"""The datasets: every competition, prepared or not, what is being done, what all of them take, and one in detail."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from competitions import registry
from competitions.model import Edition
from console import wording
from console.views.splits import ORDER, competition, split_of
from engine.control import EngineStatus
from engine.datasets.estimates import Throughput, measured, usual_peak
from engine.datasets.plans import is_ready
from engine.datasets.prepared.checksums import comparable
from engine.datasets.sources.access import AccessState, access_of
from engine.datasets.steps import CHECK, CHECKSUM, DOWNLOAD
from engine.layout import dataset_folder, prepared_with
from engine.places import Places
from engine.space import free_bytes
from foundation.problems import DataProblem
from state import datasets, events
from state.database import Database
from state.records import Dataset, DatasetState, DatasetStep, Event, KaggleState, StepState

_BUSY = (DatasetState.WAITING, DatasetState.WORKING)
_OPEN = (StepState.WAITING, StepState.WORKING)
_DONE = (StepState.DONE, StepState.SKIPPED)
_MOST_FILES = 200
_MOST_EVENTS = 100


@dataclass(frozen=True)
class DatasetRow:
    """One competition's data in one edition."""

    competition_id: str
    edition: str
    split: str
    dataset: Dataset | None
    steps: tuple[DatasetStep, ...]
    kaggle: KaggleState = field(default_factory=KaggleState)

    @property
    def key(self) -> tuple[str, str]:
        """What the row is about."""
        return self.competition_id, self.edition

    @property
    def state(self) -> DatasetState:
        """How far it is."""
        return self.dataset.state if self.dataset is not None else DatasetState.ABSENT

    @property
    def is_demo(self) -> bool:
        """Whether it is prepared of the demo's synthetic data."""
        return self.dataset is not None and self.dataset.demo and self.state is DatasetState.PREPARED

    @property
    def state_in_words(self) -> str:
        """How far it is, or that it is demo data, which counts for no result."""
        return "demo data" if self.is_demo else str(self.state)

    @property
    def is_busy(self) -> bool:
        """Whether it is being prepared, or waits for that."""
        return self.state in _BUSY

    @property
    def is_verifying(self) -> bool:
        """Whether it is prepared and being verified, or waits for that."""
        return self.state is DatasetState.PREPARED and any(
            step.name == CHECKSUM and step.state in _OPEN for step in self.steps
        )

    @property
    def access(self) -> AccessState:
        """What Kaggle said the last time it was asked."""
        return access_of(self.state, self.steps)

    @property
    def waits_for_kaggle(self) -> bool:
        """Whether it waits because Kaggle can't be reached."""
        asks = any(step.name in (CHECK, DOWNLOAD) and step.state in _OPEN for step in self.steps)
        return asks and self.state is DatasetState.WAITING and self.kaggle.unreachable_since is not None

    @property
    def problem(self) -> str:
        """What is wrong with it, or what it waits for."""
        if self.dataset is None:
            return ""
        if self.waits_for_kaggle:
            return wording.waiting_for_kaggle(self.kaggle)
        if self.dataset.retry_at is not None and self.state is DatasetState.WAITING:
            return f"{self.dataset.problem}; tried again at {wording.clock(self.dataset.retry_at)}"
        return self.dataset.problem

    @property
    def priority(self) -> int:
        """Of those that wait the higher ones come first."""
        return self.dataset.priority if self.dataset is not None else 0

    @property
    def step(self) -> DatasetStep | None:
        """What is being done, or what failed."""
        return next(
            (step for step in self.steps if step.state in (StepState.WORKING, StepState.FAILED)), None
        )

    @property
    def steps_done(self) -> int:
        """How many steps need nothing more."""
        return sum(step.state in _DONE for step in self.steps)

    @property
    def bytes_on_disk(self) -> int | None:
        """What the prepared data take, where that is known."""
        return self.dataset.bytes_on_disk if self.dataset and self.state is DatasetState.PREPARED else None

    @property
    def kaggle_bytes(self) -> int | None:
        """The size of Kaggle's zip as Kaggle states it."""
        return next(
            (step.total for step in self.steps if step.name == DOWNLOAD and step.unit == "bytes"), None
        )

    @cached_property
    def zip_bytes(self) -> int | None:
        """The size of Kaggle's zip: as Kaggle states it, or else as the benchmark's facts say."""
        found = competition(self.competition_id)
        return self.kaggle_bytes or (int(found.size_gb * 1e9) if found and found.size_gb else None)

    @property
    def downloaded_bytes(self) -> int:
        """How much of it has been downloaded."""
        return next((step.done for step in self.steps if step.name == DOWNLOAD and step.unit == "bytes"), 0)

    @property
    def bytes_to_download(self) -> int:
        """How much of a requested dataset is still to be downloaded, as far as it is known."""
        step = next((step for step in self.steps if step.name == DOWNLOAD), None)
        if not self.is_busy or step is None or step.state not in _OPEN:
            return 0
        return max(0, (self.zip_bytes or 0) - step.done)


@dataclass(frozen=True)
class DatasetBoard:
    """All datasets, how fast earlier ones were prepared, and how much disk is free."""

    rows: tuple[DatasetRow, ...] = ()
    throughput: Throughput = field(default_factory=Throughput)
    free: int | None = None
    kaggle: KaggleState = field(default_factory=KaggleState)


@dataclass(frozen=True)
class KnownSum:
    """One table's sum: the known one of the real data, and the one found when it was prepared."""

    name: str
    known: str | None
    found: str | None

    @property
    def differs(self) -> bool:
        """Whether both are known and not the same."""
        return self.known is not None and self.found is not None and self.known != self.found


@dataclass(frozen=True)
class PreparedFile:
    """One entry of a prepared folder; of a folder the size is not known, since nobody walks through it."""

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
    rules_url: str | None
    files: tuple[PreparedFile, ...]
    sums: tuple[KnownSum, ...]
    log: tuple[Event, ...]


@dataclass(frozen=True)
class Totals:
    """What all datasets take together; None is unknown.

    Attributes:
        busy: how many are being prepared or wait for that.
        downloaded: bytes of those that have been downloaded.
        download_rate: bytes a second, as measured last.
        missing: how many are neither prepared nor being prepared.
        missing_of_unknown_size: how many of those are of unknown size.
        fitting: how many of the others would fit on the disk, the small ones first.
        eta: seconds until all requested datasets are prepared.
        of_unknown_size: how many of those are of unknown size, so that it will take longer.
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
class Needs:
    """What preparing some datasets would take.

    Attributes:
        unknown: how many are of unknown size; they are left out of the rest.
        fits: whether the disk has room; None if that is not known.
    """

    count: int
    to_download: int
    peak: int
    unknown: int
    fits: bool | None


def dataset_board(database: Database, data_dir: Path) -> DatasetBoard:
    """Read all datasets: those that the state knows and the rest of the benchmark, by split."""
    steps: defaultdict[tuple[str, str], list[DatasetStep]] = defaultdict(list)
    for step in datasets.all_steps(database):
        steps[step.competition_id, step.edition].append(step)
    known = {(found.competition_id, found.edition): found for found in datasets.all_datasets(database)}
    kaggle = datasets.kaggle(database)
    wanted = [*known, *((name, "v1") for name in registry.all_ids() if (name, "v1") not in known)]
    rows = [
        DatasetRow(
            name, edition, split_of(name), known.get((name, edition)), tuple(steps[name, edition]), kaggle
        )
        for name, edition in wanted
    ]
    return DatasetBoard(
        tuple(sorted(rows, key=_place)), measured(steps.values()), free_bytes(data_dir), kaggle
    )


def board_of_disk(data_dir: Path) -> DatasetBoard:
    """Tell of all competitions what the disk shows, where there is no state yet."""
    rows = []
    for name in registry.all_ids():
        found = None
        try:
            if is_ready(name, "v1", data_dir):
                found = Dataset(name, "v1", DatasetState.PREPARED, "", "", None, None, None, 0.0)
        except DataProblem as problem:  # of this one alone
            text = problem.in_one_line()
            found = Dataset(name, "v1", DatasetState.FAILED, text, "", None, None, None, 0.0)
        rows.append(DatasetRow(name, "v1", split_of(name), found, (), KaggleState()))
    return DatasetBoard(tuple(sorted(rows, key=_place)), free=free_bytes(data_dir))


def dataset_detail(
    database: Database, data_dir: Path, competition_id: str, edition: Edition
) -> DatasetDetail | None:
    """Read one dataset; it costs two folder listings and one small file, never a whole tree."""
    found = competition(competition_id)
    if found is None:
        return None
    folder = dataset_folder(found, data_dir, edition)
    marker = prepared_with(folder) or {}
    sums: list[KnownSum] = []
    for side, known in (("public", found.checksums.public), ("private", found.checksums.private)):
        of_side = marker.get(side)
        prepared = of_side if isinstance(of_side, dict) else {}
        real = comparable(known) if edition == "v1" else {}
        names = sorted({*real, *prepared})
        sums += [KnownSum(f"{side}/{name}", real.get(name), prepared.get(name)) for name in names]
    happened = events.newest(database, limit=_MOST_EVENTS, competition_id=competition_id)
    return DatasetDetail(
        folder.root,
        registry.rules_url(found),
        _files(folder.prepared),
        tuple(sums),
        tuple(event for event in happened if event.kind.startswith("dataset.")),
    )


def totals(board: DatasetBoard, *, free: int | None, download_rate: float | None) -> Totals:
    """Sum up; the rate of a running download is a better estimate than that of earlier ones."""
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
    """Read and sum up all datasets, with the rate that a running engine measures."""
    rate = engine.download_rate if engine is not None and engine.running else None
    board = dataset_board(database, places.data_dir)
    return totals(board, free=board.free, download_rate=rate)


def needs(chosen: Sequence[DatasetRow], free: int | None) -> Needs:
    """What preparing those of the chosen that are not prepared would take."""
    missing = [row for row in chosen if row.state is not DatasetState.PREPARED]
    peak = sum(_peak(row) for row in missing)
    return Needs(
        len(missing),
        sum(row.zip_bytes or 0 for row in missing),
        peak,
        sum(row.zip_bytes is None for row in missing),
        None if free is None else peak <= free,
    )


def _place(row: DatasetRow) -> tuple[int, str, bool]:
    return ORDER.index(row.split), row.competition_id.lower(), row.edition != "v1"


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
    """What a dataset will still take on the disk; a downloaded zip is there already."""
    if row.zip_bytes is None:
        return 0
    there = any(step.name == DOWNLOAD and step.state in _DONE for step in row.steps) and row.is_busy
    return usual_peak(row.zip_bytes) - (row.zip_bytes if there else 0)
