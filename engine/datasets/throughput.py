"""How fast downloads and preparations have gone here, measured from the steps that are done; nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.datasets.sources import CHECK, CHECKSUM, DOWNLOAD
from state.records import DatasetStep, StepState

_LEAST_SECONDS = 0.001
# Sums are taken again whenever somebody wants a dataset verified.
_NOT_PREPARING = (CHECK, DOWNLOAD, CHECKSUM)

_Interval = tuple[float, float]


@dataclass(frozen=True)
class Throughput:
    """Bytes of Kaggle's zips a second, all that went on at once together; None: none has been measured."""

    download: float | None = None
    prepare: float | None = None

    def seconds(self, to_download: int, to_prepare: int) -> float | None:
        """How long it takes to get through so much; both go on side by side. None: that can't be told."""
        needed = [(to_download, self.download), (to_prepare, self.prepare)]
        if any(count and not rate for count, rate in needed):
            return None
        return max((count / rate for count, rate in needed if count and rate), default=0.0)


def measured(datasets: Iterable[Sequence[DatasetStep]]) -> Throughput:
    """Measure by what is done, each dataset's steps given in order."""
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
    """From when to when steps took, if all of them are done with."""
    if not all(step.state in (StepState.DONE, StepState.SKIPPED) for step in steps):
        return []
    starts = [step.started_at for step in steps if step.started_at is not None]
    ends = [step.ended_at for step in steps if step.ended_at is not None]
    return [(min(starts), max(ends))] if starts and ends else []


def _rate(found: Sequence[tuple[int, _Interval]]) -> float | None:
    seconds = _covered(between for _size, between in found)
    return sum(size for size, _between in found) / seconds if seconds > _LEAST_SECONDS else None


def _covered(intervals: Iterable[_Interval]) -> float:
    """How much time intervals cover; what went on side by side counts once."""
    covered, until = 0.0, float("-inf")
    for start, end in sorted(intervals):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered
