"""What datasets take together: to download, on the disk, in time, and how many of them would fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from console.views.dataset_board import DatasetBoard, DatasetRow
from engine.datasets.estimates import usual_peak
from engine.datasets.steps import DOWNLOAD
from state.records import DatasetState, StepState

_DOWNLOADED = (StepState.DONE, StepState.SKIPPED)


@dataclass(frozen=True)
class Totals:
    """What all datasets take together; None is unknown.

    Attributes:
        missing: how many are not prepared and in nobody's hands.
        fitting: how many of those would fit on the disk, the small ones first.
        eta: seconds until all that was asked for is there.
        of_unknown_size: of how many of those nobody knows the size, so that it will take longer.
    """

    to_download: int
    on_disk: int
    free: int | None
    missing: int
    fitting: int | None
    eta: float | None
    of_unknown_size: int


@dataclass(frozen=True)
class Needs:
    """What preparing some datasets would take.

    Attributes:
        unknown: how many there are whose size nobody knows; they are left out of the rest.
        fits: whether the disk has room for it; None: its room is not known.
    """

    count: int
    to_download: int
    peak: int
    unknown: int
    fits: bool | None


def totals(board: DatasetBoard, *, free: int | None, download_rate: float | None) -> Totals:
    """Sum up; a download that is going on tells its rate better than those that are done."""
    busy = [row for row in board.rows if row.is_busy]
    throughput = replace(board.throughput, download=download_rate) if download_rate else board.throughput
    missing = [row for row in board.rows if row.state is not DatasetState.PREPARED and not row.is_busy]
    to_download = sum(row.bytes_to_download for row in busy)
    return Totals(
        to_download,
        sum(row.bytes_on_disk or 0 for row in board.rows),
        free,
        len(missing),
        None if free is None else _fitting(missing, free - sum(_peak(row) for row in busy)),
        throughput.seconds(to_download, sum(row.zip_bytes or 0 for row in busy)) if busy else None,
        sum(row.zip_bytes is None for row in busy),
    )


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


def _fitting(missing: Sequence[DatasetRow], free: int) -> int:
    count = 0
    for peak in sorted(_peak(row) for row in missing if row.zip_bytes is not None):
        free -= peak
        if free < 0:
            break
        count += 1
    return count


def _peak(row: DatasetRow) -> int:
    """What a dataset will still take on the disk; what is downloaded takes its place already."""
    if row.zip_bytes is None:
        return 0
    there = any(step.name == DOWNLOAD and step.state in _DOWNLOADED for step in row.steps) and row.is_busy
    return usual_peak(row.zip_bytes) - (row.zip_bytes if there else 0)
