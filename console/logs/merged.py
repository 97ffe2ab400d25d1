"""Several runs' logs merged by time into one that is read like any other, however large they are.

It is put together from their time indexes; no line is read before it is shown, and positions never change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from console.logs.reader import Extent, Label, LogFile
from environment.container.run_log import LogTimes
from environment.runner import protocol
from state import runs
from state.database import Database


@dataclass(frozen=True)
class Source:
    """One run's log; `label` names the run."""

    label: str
    log: Path


@dataclass(frozen=True, order=True)
class _Chunk:
    """What one log printed in a second: bytes `start` to `end` of it; the moment is 0 where it is not known."""

    moment: float
    source: int
    start: int
    end: int


def sources(database: Database, run_ids: Sequence[int]) -> tuple[Source, ...]:
    """Return the logs of the runs' latest attempts; runs that never started have none."""
    found = []
    for run_id in run_ids:
        run, attempt = runs.get(database, run_id), runs.latest_attempt(database, run_id)
        if attempt is not None:
            log = database.path.parent / attempt.directory / protocol.LOG
            found.append(Source(f"{run.competition_id} s{run.seed}", log))
    return tuple(found)


class MergedLog(LogFile):
    """Logs merged by time."""

    def __init__(self, logs: Sequence[Source]) -> None:
        self._logs = tuple(_Member(place, each) for place, each in enumerate(logs))
        self._owners: list[int] = []
        self._offsets: list[int] = []
        self._moments: list[float] = []
        super().__init__(Path("merged"))

    def refresh(self) -> bool:
        """Append what the logs have printed since, by time, and return whether that is anything."""
        lost = [log.refresh() for log in self._logs]
        if any(lost):
            self._clear()
        before, extents = self.end, list(self._extents)
        end = before
        for chunk in sorted(chunk for log in self._logs for chunk in log.take()):
            if chunk.moment:
                self._offsets.append(end)
                # Where one log was read a moment later than another, its second is already over.
                self._moments.append(max(chunk.moment, self._moments[-1] if self._moments else 0.0))
            for kept in self._logs[chunk.source].file.extents(chunk.start, chunk.end):
                extent = Extent(kept.descriptor, end, end + kept.end - kept.start, kept.at)
                if extents and extents[-1].is_continued_by(extent):
                    extents[-1] = replace(extents[-1], end=extent.end)
                else:
                    extents.append(extent)
                    self._owners.append(chunk.source)
                end = extent.end
        self._set(extents)
        return end != before

    def close(self) -> None:
        """Close the files."""
        for log in self._logs:
            log.file.close()
        self._clear()

    def label_of(self, position: int) -> Label | None:
        """Return the run that the line at a position is from."""
        place = self._place_at(position)
        if place == len(self._owners):
            return None
        return Label(self._owners[place], self._logs[self._owners[place]].label)

    def times(self) -> LogTimes:
        """Return when what was printed."""
        return LogTimes(tuple(self._offsets), tuple(self._moments))

    def _clear(self) -> None:
        self._set([])
        self._owners.clear()
        self._offsets.clear()
        self._moments.clear()
        for log in self._logs:
            log.rewind()


class _Member:
    """One of the merged logs, and how much of it is in the merged one already."""

    def __init__(self, place: int, source: Source) -> None:
        self.label = source.label
        self.file = LogFile(source.log)
        self._place = place
        self._pairs: deque[tuple[int, float]] = deque()
        self.rewind()

    def rewind(self) -> None:
        """Begin at the log's beginning again."""
        self._index, self._index_read, self._taken, self._moment = b"", 0, 0, 0.0
        self._pairs.clear()

    def refresh(self) -> bool:
        """Look how long the log is now, and return whether a part that was there is gone."""
        known = self.file.paths
        with suppress(OSError):  # it can't be read now; the others go on
            self.file.refresh()
        return not known <= self.file.paths

    def take(self) -> Iterator[_Chunk]:
        """Return what is new, in whole lines, by the second."""
        file = self.file
        if file.end <= self._taken:
            return
        with suppress(OSError):
            self._read_index()
        # A last line that is not whole yet would be joined with another log's next one.
        last = file.backward(file.end, 1)
        end = file.end if last and last[0].is_whole else last[0].start if last else 0
        while self._pairs and self._pairs[0][0] < end:
            offset, moment = self._pairs.popleft()
            # The index counts bytes; a line that was printed in two seconds belongs to the first.
            yield from self._up_to(file.line_after(offset))
            self._moment = moment
        yield from self._up_to(end)

    def _up_to(self, end: int) -> Iterator[_Chunk]:
        if end > self._taken:
            yield _Chunk(self._moment, self._place, self._taken, end)
            self._taken = end

    def _read_index(self) -> None:
        index = self.file.path.with_suffix(".times")
        if not index.exists():
            return
        with index.open("rb") as stream:
            stream.seek(self._index_read)
            new = stream.read()
        self._index_read += len(new)
        *lines, self._index = (self._index + new).split(b"\n")
        for line in lines:
            offset, moment = line.split()
            self._pairs.append((int(offset), float(moment)))
