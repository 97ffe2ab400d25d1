"""Estimate the bytes and the time that preparing datasets takes, from Kaggle's sizes and rates measured here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.engine.datasets.sources.access import AccessState, ask_access
from mlebench_console.engine.datasets.steps import CHECK, CHECKSUM, DOWNLOAD
from mlebench_console.engine.kaggle.credentials import find_credentials
from mlebench_console.engine.layout import dataset_folder, is_prepared
from mlebench_console.engine.space import growth
from mlebench_console.foundation.problems import Problem
from mlebench_console.state.records import DatasetStep, StepState

# The size of all 75 zips together, by MLE-bench's README, which lists single sizes for only 22 of them.
_BENCHMARK_BYTES = 3_300_000_000_000
# Rates of smaller datasets are ignored: most of their time is start-up.
_LEAST_BYTES = 50_000_000
_LEAST_SECONDS = 0.001
# Steps that don't count as preparation; the checksum step is repeated whenever a dataset is verified.
_NOT_PREPARING = (CHECK, DOWNLOAD, CHECKSUM)

_Interval = tuple[float, float]


class ToDo(StrEnum):
    """What there is to do for a dataset; `refused` means that Kaggle does not let us download it."""

    NOTHING = "nothing"
    PREPARE = "prepare"
    DOWNLOAD = "download"
    REFUSED = "refused"


@dataclass(frozen=True)
class Estimate:
    """The estimate for one dataset.

    Attributes:
        bytes: the size of Kaggle's zip; None: unknown.
        basis: the source of this size.
        peak: the disk space that it needs while it is prepared.
    """

    competition_id: str
    to_do: ToDo
    bytes: int | None
    basis: str
    peak: int | None
    problem: str = ""


def estimate(
    chosen: Sequence[str],
    data_dir: Path,
    edition: Edition,
    *,
    raw_given: bool,
    again: bool,
    keep_raw: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> list[Estimate]:
    """Estimate what preparing the chosen competitions takes.

    Kept raw data take the disk space of the extracted zip; `report` is called with the number of Kaggle's answers.
    """
    missing: list[Competition] = []
    found: dict[str, Estimate] = {}
    for competition in map(registry.get, chosen):
        folder = dataset_folder(competition, data_dir, edition)
        zips = folder.zips()
        if is_prepared(competition, folder) and not again:
            found[competition.id] = Estimate(competition.id, ToDo.NOTHING, None, "is prepared", 0)
        elif raw_given or (not zips and folder.has_raw_data):
            found[competition.id] = Estimate(competition.id, ToDo.PREPARE, _facts(competition), "facts", None)
        elif zips:
            found[competition.id] = _of_zip(competition, zips[0], keep_raw)
        else:
            missing.append(competition)
    found |= {one.competition_id: one for one in _to_download(missing, keep_raw, report)}
    return [found[competition_id] for competition_id in chosen]


def known_sizes(chosen: Sequence[Competition]) -> tuple[int, int]:
    """Add up the documented sizes of competitions' zips; return the bytes, and of how many zips they are unknown.

    For all of the benchmark, its documented total is used.
    """
    sizes = {competition.id: _facts(competition) for competition in chosen}
    total, unknown = (
        sum(size or 0 for size in sizes.values()),
        [name for name in sizes if sizes[name] is None],
    )
    documented = {name: _facts(registry.get(name)) for name in registry.splits()["split75"]}
    if unknown and {name for name, size in documented.items() if size is None} <= set(unknown):
        rest = _BENCHMARK_BYTES - sum(size or 0 for size in documented.values())
        return total + rest, sum(name not in documented for name in unknown)
    return total, len(unknown)


def peak_bytes(estimates: Sequence[Estimate]) -> int:
    """Return the disk space needed for all datasets, including temporary files."""
    return sum(one.peak or 0 for one in estimates)


def usual_peak(zip_bytes: int, *, keep_raw: bool = False) -> int:
    """Estimate the disk space that a dataset needs while it is prepared, from its zip's size alone.

    The zip stays until its dataset is in place, even if it is discarded then; kept raw data lie beside both.
    """
    return zip_bytes + growth(zip_bytes) * (1 + keep_raw)


def _of_zip(competition: Competition, path: Path, keep_raw: bool) -> Estimate:
    from mlebench_console.engine.datasets.sources import raw_data  # loads numpy

    size = path.stat().st_size
    try:
        inflated = sum(raw_data.sizes_in(path).values())
    except Problem as problem:  # one damaged zip is one competition's problem
        return Estimate(competition.id, ToDo.PREPARE, size, "its zip", None, problem.cause)
    return Estimate(competition.id, ToDo.PREPARE, size, "its zip", inflated * (1 + keep_raw))


def _to_download(
    missing: Sequence[Competition], keep_raw: bool, report: Callable[[int, int], None] | None
) -> list[Estimate]:
    def download(competition: Competition, size: int | None, basis: str, problem: str) -> Estimate:
        peak = None if size is None else usual_peak(size, keep_raw=keep_raw)
        return Estimate(competition.id, ToDo.DOWNLOAD, size, basis, peak, problem)

    if not find_credentials():
        return [
            download(competition, _facts(competition), "facts", "no Kaggle credentials")
            for competition in missing
        ]
    made = []
    for competition, access in zip(missing, ask_access(missing, report), strict=True):
        if access.state in (AccessState.RULES, AccessState.GONE):
            made.append(Estimate(competition.id, ToDo.REFUSED, None, "Kaggle", 0, access.problem))
        elif access.bytes is not None:
            made.append(download(competition, access.bytes, "Kaggle", ""))
        else:
            made.append(download(competition, _facts(competition), "facts", access.problem))
    return made


def _facts(competition: Competition) -> int | None:
    return None if competition.size_gb is None else int(competition.size_gb * 1e9)


@dataclass(frozen=True)
class Throughput:
    """Bytes of Kaggle's zips per second, over all parallel jobs together; None: not measured."""

    download: float | None = None
    prepare: float | None = None

    def seconds(self, to_download: int, to_prepare: int) -> float | None:
        """Estimate the seconds for some bytes, with downloads and preparations in parallel; None without rates."""
        needed = [(to_download, self.download), (to_prepare, self.prepare)]
        if any(count and not rate for count, rate in needed):
            return None
        return max((count / rate for count, rate in needed if count and rate), default=0.0)


def measured(datasets: Iterable[Sequence[DatasetStep]]) -> Throughput:
    """Compute rates from the finished steps of datasets, each dataset's in order."""
    downloads: list[tuple[int, _Interval]] = []
    preparations: list[tuple[int, _Interval]] = []
    for steps in datasets:
        download = next((step for step in steps if step.name == DOWNLOAD), None)
        if download is None or download.state is not StepState.DONE or download.unit != "bytes":
            continue
        size = download.total or 0
        downloads += [(size, between) for between in _interval([download])]
        rest = [step for step in steps if step.name not in _NOT_PREPARING]
        preparations += [(size, between) for between in _interval(rest)]
    return Throughput(_rate(downloads), _rate(preparations))


def _interval(steps: Sequence[DatasetStep]) -> list[_Interval]:
    """Return the time span of steps as a list of one; empty if some are unfinished."""
    if not all(step.state in (StepState.DONE, StepState.SKIPPED) for step in steps):
        return []
    starts = [step.started_at for step in steps if step.started_at is not None]
    ends = [step.ended_at for step in steps if step.ended_at is not None]
    return [(min(starts), max(ends))] if starts and ends else []


def _rate(found: Sequence[tuple[int, _Interval]]) -> float | None:
    seconds, size = _covered(between for _size, between in found), sum(size for size, _between in found)
    return size / seconds if seconds > _LEAST_SECONDS and size >= _LEAST_BYTES else None


def _covered(intervals: Iterable[_Interval]) -> float:
    """Return the total time that intervals cover; overlapping time counts once."""
    covered, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered
