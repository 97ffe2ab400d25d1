"""Several runs' logs merged by time into one log with the same interface, however large they are.

Twelve logs of a day contain a million seconds with output. They are merged only where they are read, one stretch of
time at once: the begin of each stretch follows from the logs' time indexes alone. Output that is printed after opening
is appended as it is found, so that positions never change.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from mlebench_console.console.logs.reader import Extent, Label, LogFile, TimeIndex
from mlebench_console.environment.runner import protocol
from mlebench_console.state import runs
from mlebench_console.state.database import Database
from mlebench_console.state.records import Run

# The chunks of a stretch if each log prints something each second; and how many stretches are kept in memory.
_CHUNKS = 2048
_MOST_STRETCHES = 8
# Larger stretches of a log are not read as a whole to find their lines.
_MOST_READ = 1 << 20


@dataclass(frozen=True)
class Source:
    """One run's log; `label` names the run, `grows` is whether its attempt is still running."""

    label: str
    log: Path
    grows: bool = field(default=True, compare=False)
    run_id: int = 0
    run: Run | None = field(default=None, compare=False)

    @property
    def has_times(self) -> bool:
        """Whether it is known when its lines were printed, so that it can be merged; waits for the disk."""
        try:
            return TimeIndex.path_of(self.log).stat().st_size > 0
        except OSError:
            return False


@dataclass(frozen=True)
class _Range:
    """The part of one log to merge: kept bytes `start` to `end`, and the index entries for them."""

    start: int
    end: int
    entries_from: int
    entries_to: int


@dataclass
class _Chunks:
    """Merged chunks in order, as columns; each chunk is the output of one log in one second.

    Attributes:
        starts: the positions where the chunks begin.
        owners: the number of each chunk's log.
        places: where each chunk begins in its log, in kept bytes.
        moments: when each was printed, non-decreasing; 0 if unknown.
        begin, end: the position of the first chunk, and that after the last one.
        text: their content, if it is small.
    """

    begin: int
    end: int
    text: bytes | None = None
    starts: array[int] = field(default_factory=lambda: array("q"))
    owners: array[int] = field(default_factory=lambda: array("H"))
    places: array[int] = field(default_factory=lambda: array("q"))
    moments: array[float] = field(default_factory=lambda: array("d"))

    def add(self, chunks: Sequence[tuple[float, int, int, int]]) -> None:
        """Append chunks of (moment, owner, start, end) in their order."""
        for moment, owner, start, end in chunks:
            self.starts.append(self.end)
            self.owners.append(owner)
            self.places.append(start)
            self.moments.append(max(moment, self.moments[-1] if self.moments else 0.0))
            self.end += end - start

    def place_at(self, position: int) -> int:
        """Return the index of the chunk that contains a position."""
        return bisect_right(self.starts, position) - 1


def sources(database: Database, run_ids: Sequence[int]) -> tuple[Source, ...]:
    """Return the logs of the runs' latest attempts; runs that never started have none."""
    found = []
    for run_id in run_ids:
        run, attempt = runs.get(database, run_id), runs.latest_attempt(database, run_id)
        if attempt is not None:
            log = database.path.parent / attempt.directory / protocol.LOG
            grows = attempt.ended_at is None
            found.append(Source(f"{run.competition_id} s{run.seed}", log, grows, run_id, run))
    return tuple(found)


class MergedLog(LogFile):
    """Logs merged by time."""

    def __init__(self, logs: Sequence[Source]) -> None:
        super().__init__(Path("merged"))
        self._logs = tuple(_Member(place, each) for place, each in enumerate(logs))
        self._clear()

    @property
    def begin(self) -> int:
        """The first position."""
        return 0

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self._later.end

    @property
    def restarted_at(self) -> int:
        """The position after all content from before a log was restarted: the other logs go on."""
        return self._later.begin

    def refresh(self) -> bool:
        """Append the logs' new output by time, and return whether there was any."""
        before, restarts = self.end, self.restarts
        lost = [log.refresh() for log in self._logs]
        if any(lost):
            self._clear()
            self.restarts += 1
        ranges = [log.take() for log in self._logs]
        if not self.end and any(each.end for each in ranges):
            self._begin(ranges)
        else:
            self._later.add(self._merged(ranges))
        return self.end != before or self.restarts != restarts

    def close(self) -> None:
        """Close the files."""
        for log in self._logs:
            log.file.close()
        self._clear()

    def label_of(self, position: int) -> Label | None:
        """Return the run that the line at a position is from."""
        if not 0 <= position < self.end:
            return None
        chunks = self._chunks_at(position)
        owner = chunks.owners[chunks.place_at(position)]
        return Label(owner, self._logs[owner].label)

    def moments_of(self, positions: Sequence[int]) -> list[float | None]:
        """Return when the bytes at some positions were printed; None if unknown."""
        found: list[float | None] = []
        for position in positions:
            chunks = self._chunks_at(position)
            found.append(chunks.moments[chunks.place_at(position)] or None)
        return found

    def position_at(self, moment: float) -> int:
        """Return where the output of a time begins, to the second."""
        later = self._later
        if later.moments and later.moments[0] <= moment:
            return later.starts[bisect_right(later.moments, moment) - 1]
        if not self._stretches:
            return 0
        number = min(max(0, int((moment - self._since) // self._seconds)), self._stretches - 1)
        chunks = self._chunks(number)
        place = bisect_right(chunks.moments, moment) - 1
        return chunks.starts[place] if place >= 0 else self._start(number)

    def time_span(self) -> tuple[float, float] | None:
        """Return when the first and the last byte was printed; None if unknown."""
        spans = [span for log in self._logs if (span := log.file.time_span()) is not None]
        return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None

    def _clear(self) -> None:
        self._spans: tuple[_Range, ...] = ()
        self._since, self._seconds, self._stretches = 0.0, 1.0, 0
        self._bounds: dict[int, tuple[tuple[int, int], ...]] = {}
        self._read: dict[int, _Chunks] = {}
        self._later = self._nearest = _Chunks(0, 0)
        for log in self._logs:
            log.rewind()

    def _begin(self, ranges: Sequence[_Range]) -> None:
        """Divide the existing content into stretches of time, without reading it."""
        span = self.time_span() or (0.0, 0.0)
        self._spans = tuple(ranges)
        self._since, self._seconds = span[0], max(1.0, _CHUNKS / len(self._logs))
        self._stretches = 1 + int(max(0.0, span[1] - span[0]) // self._seconds)
        length = sum(each.end for each in ranges)
        self._later = _Chunks(length, length)

    def _bounds_of(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return where a stretch begins in each log, in kept bytes and in the log's index."""
        if number <= 0:
            return tuple((0, 0) for _ in self._spans)
        if number >= self._stretches:
            return tuple((each.end, each.entries_to) for each in self._spans)
        if number not in self._bounds:
            moment = self._since + number * self._seconds
            self._bounds[number] = tuple(
                log.bound(moment, whole) for log, whole in zip(self._logs, self._spans, strict=True)
            )
        return self._bounds[number]

    def _start(self, number: int) -> int:
        return sum(bound[0] for bound in self._bounds_of(number))

    def _chunks_at(self, position: int) -> _Chunks:
        """Return the chunks of the stretch that contains a position."""
        if position >= self._later.begin:
            return self._later
        if self._nearest.begin <= position < self._nearest.end:
            return self._nearest
        # A bisection, which computes the begins of only a few stretches.
        number = bisect_right(range(self._stretches), position, key=self._start) - 1
        return self._chunks(number)

    def _chunks(self, number: int) -> _Chunks:
        found = self._read.pop(number, None)
        if found is None:
            begin, end = self._bounds_of(number), self._bounds_of(number + 1)
            ranges = [
                _Range(start[0], stop[0], start[1], stop[1]) for start, stop in zip(begin, end, strict=True)
            ]
            found = _Chunks(self._start(number), self._start(number))
            found.add(self._merged(ranges))
            if found.end - found.begin <= _MOST_READ:
                found.text = self._text(found, ranges)
        self._read[number] = self._nearest = found  # the most recently used one is last
        while len(self._read) > _MOST_STRETCHES:
            del self._read[next(iter(self._read))]
        return found

    def _merged(self, ranges: Sequence[_Range]) -> list[tuple[float, int, int, int]]:
        return sorted(
            chunk for log, each in zip(self._logs, ranges, strict=True) for chunk in log.chunks(each)
        )

    def _text(self, chunks: _Chunks, ranges: Sequence[_Range]) -> bytes:
        """Return the content of chunks, reading each log once."""
        texts = [log.read(each.start, each.end) for log, each in zip(self._logs, ranges, strict=True)]
        ends = [*chunks.starts[1:], chunks.end]
        parts = []
        for start, end, owner, place in zip(chunks.starts, ends, chunks.owners, chunks.places, strict=True):
            at = place - ranges[owner].start
            parts.append(texts[owner][at : at + end - start])
        return b"".join(parts)

    def _run(self, position: int, end: int) -> bytes:
        blocks: list[bytes] = []
        while 0 <= position < min(end, self.end):
            chunks = self._chunks_at(position)
            if chunks.text is None:
                blocks.append(super()._run(position, min(end, chunks.end)))
            else:
                blocks.append(chunks.text[position - chunks.begin : end - chunks.begin])
            if not blocks[-1]:
                break
            position += len(blocks[-1])
        return b"".join(blocks)

    def _unbroken_from(self, extent: Extent, floor: int) -> int:  # noqa: ARG002 - there are no gaps
        return 0

    def _extent_at(self, position: int) -> Extent | None:
        if not 0 <= position < self.end:
            return None
        chunks = self._chunks_at(position)
        place = chunks.place_at(position)
        start = chunks.starts[place]
        end = chunks.starts[place + 1] if place + 1 < len(chunks.starts) else chunks.end
        log = self._logs[chunks.owners[place]]
        kept = log.extent_at(chunks.places[place] + position - start)
        # The extent is shifted to merged positions; only its part in this chunk is valid.
        shift = start - chunks.places[place]
        low, high = max(start, kept.start + shift), min(end, kept.end + shift)
        return Extent(kept.descriptor, low, high, kept.at + low - shift - kept.start)

    def _extent_before(self, position: int) -> Extent | None:
        return self._extent_at(position - 1) if position > 0 else None


class _Member:
    """One of the merged logs, and how much of it is merged already; kept bytes are counted without gaps."""

    def __init__(self, place: int, source: Source) -> None:
        self.label = source.label
        self.file = LogFile(source.log)
        self._place = place
        self._kept: list[Extent] = []
        self._sizes: list[int] = [0]
        self.rewind()

    def rewind(self) -> None:
        """Start again at the log's beginning."""
        self._taken, self._entries, self._looked_to = 0, 0, -1

    def refresh(self) -> bool:
        """Update the length of the log, and return whether an earlier part of it is gone."""
        known, restarts = self.file.paths, self.file.restarts
        with suppress(OSError):  # it is unreadable now; the other logs go on
            self.file.refresh()
            self.file.index.refresh()
        self._kept = list(self.file.extents)
        self._sizes = [0, *accumulate(each.end - each.start for each in self._kept)]
        return not known <= self.file.paths or self.file.restarts > restarts

    def take(self) -> _Range:
        """Return the range of new whole lines, and count it as merged."""
        file, taken, entries = self.file, self._taken, self._entries
        if file.end == self._looked_to:
            return _Range(taken, taken, entries, entries)
        self._looked_to = file.end
        last = file.backward(file.end, 1)
        # An incomplete last line would be joined with the next line of another log.
        end = file.end if last and last[0].is_whole else last[0].start if last else 0
        self._taken = max(taken, self._before(end))
        if self._taken > taken:
            self._entries = file.index.place_of_offset(end)
        return _Range(taken, self._taken, entries, self._entries)

    def bound(self, moment: float, whole: _Range) -> tuple[int, int]:
        """Return where the output of a time begins within a range, in kept bytes and in the index."""
        index = self.file.index
        place = min(index.place_of_moment(moment), whole.entries_to)
        found = index.entries(place, min(index.place_after(place), whole.entries_to))
        if not found:
            return whole.end, whole.entries_to
        return min(self._before(self.file.line_after(found[0][1])), whole.end), place

    def chunks(self, wanted: _Range) -> Iterator[tuple[float, int, int, int]]:
        """Yield a range by the second, as time, this log's number, start and end in kept bytes."""
        start = wanted.start
        if start >= wanted.end:
            return
        line_after = self._line_finder(wanted)
        before = self.file.index.entry_before(wanted.entries_from)
        moment = before[2] if before is not None else 0.0
        for _place, offset, at in self.file.index.entries(wanted.entries_from, wanted.entries_to):
            # The index counts bytes; a line printed over two seconds belongs to the first.
            end = min(line_after(offset), wanted.end)
            if end > start:
                yield moment, self._place, start, end
                start = end
            moment = max(moment, at)
        if wanted.end > start:
            yield moment, self._place, start, wanted.end

    def read(self, start: int, end: int) -> bytes:
        """Read a range of kept bytes."""
        blocks = []
        while start < end:
            extent = self.extent_at(start)
            blocks.append(
                os.pread(extent.descriptor, min(end, extent.end) - start, extent.at + start - extent.start)
            )
            if not blocks[-1]:
                break
            start += len(blocks[-1])
        return b"".join(blocks)

    def extent_at(self, kept: int) -> Extent:
        """Return the extent that contains a kept byte, its start and end in kept bytes."""
        place = bisect_right(self._sizes, kept) - 1
        found = self._kept[place]
        return Extent(found.descriptor, self._sizes[place], self._sizes[place + 1], found.at)

    def _before(self, offset: int) -> int:
        """Return the number of kept bytes before a position of the log."""
        place = bisect_left(self._kept, offset, key=lambda extent: extent.end)
        if place == len(self._kept):
            return self._sizes[-1]
        return self._sizes[place] + max(0, offset - self._kept[place].start)

    def _line_finder(self, wanted: _Range) -> Callable[[int], int]:
        """Return a function that finds the first line that begins at or after a log position, in kept bytes."""
        if wanted.end > self.extent_at(wanted.start).end or wanted.end - wanted.start > _MOST_READ:
            return lambda offset: self._before(self.file.line_after(offset))
        # Most seconds have a line or two: reading all at once is cheaper than searching for the end of each.
        content = self.read(wanted.start, wanted.end)

        def line_after(offset: int) -> int:
            place = self._before(offset) - wanted.start
            if place <= 0:
                return wanted.start
            newline = content.find(b"\n", place - 1)
            return wanted.end if newline < 0 else wanted.start + newline + 1

        return line_after
