"""A Gantt chart in cells: a time axis, a line of events that concern all runs, and a line for each lane of attempts.

Bars differ by colour and by their end: a letter or sign of the outcome, or `!` with the letter of a failure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from mlebench_console.console import wording
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import fit, heading
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.widgets.chart import Series, chart
from mlebench_console.console.views.timeline import TimeSpan, nearest
from mlebench_console.engine.scoreboard.timeline import (
    Bar,
    Lane,
    Mark,
    MarkKind,
    Timeline,
    counted_marks,
    time_ticks,
)
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import FailureClass, RunState

# As wide as the scale of `chart`; a wider gutter is put before it, so that charts below have the same axis.
_SCALE = 13
# The share of the width that names of competitions may take.
_NAMES_SHARE = 3
_MARKS: Mapping[MarkKind, tuple[str, Role]] = {
    MarkKind.GPU_LOST: ("g", "bad"),
    MarkKind.OUTAGE: ("o", "warn"),
    MarkKind.ENGINE: ("e", "accent"),
    MarkKind.KILLED: ("k", "text"),
    MarkKind.PAUSED: ("p", "warn"),
    MarkKind.RESUMED: ("r", "text"),
}
_BETWEEN_TICKS = 9
_SEEN = 2
_DAY = 86_400.0
_LEAST_CHART, _MOST_CHART = 3, 16
# With at least this many rows both charts are high enough to be readable.
_ROWS_FOR_BOTH = 16

_Cells = list[Piece]


def mark_sign(kind: MarkKind) -> Piece:
    """Return the letter of a mark, in its colour."""
    return _MARKS[kind]


def bar_end(bar: Bar, signs: Signs) -> Piece:
    """Return the signs at the end of a bar: the outcome, or for a live attempt what it would get now."""
    if bar.is_live or bar.state in (RunState.COLLECTING, RunState.GRADING):
        standing = "" if bar.standing is None else outcome_sign(bar.standing, signs)
        return standing + signs.running, "warn" if bar.is_live and bar.cause else "running"
    if bar.state is RunState.FAILED:
        letter = wording.FAILURE_LETTERS[bar.failure or FailureClass.UNKNOWN]
        return signs.failed + letter, "bad"
    if bar.outcome is not None:
        return outcome_sign(bar.outcome, signs), outcome_role(bar.outcome)
    return signs.stopped, "dim"


def _seen_lanes(found: Timeline, first: int, last: int) -> str:
    return f"slots {first}-{last} of {len(found.lanes)}"


def _is_shared(lane: Lane) -> bool:
    """Return whether a lane holds runs of several competitions or seeds."""
    return len({bar.run_id for bar in lane.bars}) > 1


def _name_role(bar: Bar) -> Role:
    """Return the role of the name of a lane's last attempt: it stands out where something can be done."""
    return "text" if bar.is_live or bar.state is RunState.FAILED else "dim"


@dataclass(frozen=True)
class Gantt:
    """A timeline drawn for an interval of time and a size.

    Attributes:
        top: the first lane that is shown.
        chosen: the attempt that is highlighted.
    """

    found: Timeline
    window: TimeSpan
    width: int
    height: int
    drawing: Drawing
    top: int = 0
    chosen: Bar | None = None

    @property
    def _rows(self) -> int:
        """The rows between the axis with its marks and the bottom."""
        return self.height - 1 - bool(self.found.marks)

    @cached_property
    def _lane_rows(self) -> int:
        """The rows of one lane; more than one have the names of bars below them."""
        # Only one name stands before a lane.
        several = any(len(lane.bars) > 1 for lane in self.found.lanes)
        needed = max(1, len(self.found.lanes))
        return next(
            (rows for rows in (3, 2) if several and self._rows >= rows * needed + 1 + 2 * _LEAST_CHART), 1
        )

    @cached_property
    def _chart_rows(self) -> tuple[int, int]:
        """The rows of the charts of medals and of concurrent attempts, without headings; 0 without room for one."""
        left = self._rows - self._lane_rows * max(1, len(self.found.lanes))
        if self.found.medals and self._rows >= 3 * _LEAST_CHART:
            if left >= _ROWS_FOR_BOTH:
                return (both := min(_MOST_CHART, left // 2 - 1)), both
            return min(_MOST_CHART, max(_LEAST_CHART, left - 1)), 0
        return 0, min(_MOST_CHART, left - 1) if left >= _ROWS_FOR_BOTH // 2 else 0

    @cached_property
    def lanes(self) -> int:
        """The number of lanes shown at once."""
        charts = sum(rows + 1 for rows in self._chart_rows if rows)
        return max(1, (self._rows - charts) // self._lane_rows)

    @cached_property
    def label(self) -> int:
        """The width of the names before the lanes: of the longest one, or a share of the width."""
        names = (_name(lane.bars[-1]) for lane in self.found.lanes if not _is_shared(lane))
        # Above the names is which of the lanes are shown.
        every = len(self.found.lanes)
        longest = max(map(len, (*names, _seen_lanes(self.found, every, every))))
        return max(_SCALE, min(longest + 2, self.width // _NAMES_SHARE))

    @property
    def room(self) -> int:
        """The width of the lanes."""
        return self.width - self.label

    def _column(self, at: float) -> int | None:
        """Return the cell of a time in the lanes; None if it is outside of the window."""
        place = math.floor(self.window.share(at) * self.room)
        return place if 0 <= place < self.room else None

    def lines(self) -> list[Pieces]:
        """Return the axis, the marks, the lanes from `top` on, and the charts of medals and of concurrent attempts."""
        found, top = self.found, self.top
        last = min(top + self.lanes, len(found.lanes))
        lanes = _seen_lanes(found, top + 1, last) if self.lanes < len(found.lanes) else ""
        lines = [self._axis(lanes=lanes)]
        if found.marks:
            lines.append(self._marks_line(found.marks))
        for lane in found.lanes[top:last]:
            lines += self._lane_lines(lane)
        before: Piece = (" " * (self.label - _SCALE), "text")
        of_medals, of_attempts = self._chart_rows
        for title, drawn in (
            ("medals over time", self._medals_chart(of_medals)),
            ("attempts at once", self._busy_chart(of_attempts)),
        ):
            if drawn:
                lines.append(heading(title, self.width, self.drawing.signs))
                lines += ((before, *line) for line in drawn)
        return lines

    def _axis(self, *, lanes: str) -> Pieces:
        """Return which lanes are shown, and the time axis: a sign at the time, at the edge a later expected end."""
        found, window, label, room = self.found, self.window, self.label, self.room
        now, signs = self.drawing.now, self.drawing.signs
        line = [" "] * room
        here = self._column(now)
        edge = ""
        if here is not None and found.ends is not None and found.ends.at > window.end:
            free = room - here - 2
            at_most = "by " if found.ends.at_most else "~"
            # A time of day is that of the next one.
            if found.ends.at - now <= _DAY:
                edge = f"{at_most}{wording.clock(found.ends.at)}{signs.right}"
            edge = edge if len(edge) <= free else ""
        last = room - len(edge)
        for at, text in time_ticks(window.begin, window.end, room / _BETWEEN_TICKS):
            place = int(window.share(at) * room)
            if place + len(text) < last and (here is None or not place - 1 <= here <= place + len(text)):
                line[place : place + len(text)] = text
        drawn = "".join(line)
        pieces: _Cells = [(fit(f" {lanes}", label), "dim"), (drawn[:last], "dim"), (edge, "accent")]
        if here is not None:
            pieces[1:2] = [(drawn[:here], "dim"), (signs.down, "accent"), (drawn[here + 1 : last], "dim")]
        return tuple(pieces)

    def _marks_line(self, marks: Sequence[Mark]) -> Pieces:
        """Return the line of marks, each a letter; of several in one cell the most important."""
        label, room = self.label, self.room
        cells: dict[int, MarkKind] = {}
        ranks = {kind: rank for rank, kind in enumerate(MarkKind)}
        for mark in marks:
            place = self._column(mark.at)
            if place is not None and ranks[mark.kind] < ranks.get(cells.get(place, mark.kind), 99) + 1:
                cells[place] = mark.kind
        drawn: _Cells = [_MARKS[cells[place]] if place in cells else (" ", "text") for place in range(room)]
        return ((fit("marks ", label, right=True), "dim"), *_pieces(drawn))

    def _lane_lines(self, lane: Lane) -> list[Pieces]:
        """Return one lane in its lines: a name and the bars, the names of all bars below them, then empty lines.

        The name is that of the lane's competition and seed; a lane of several has a number, and the name of the chosen
        attempt, else of its last one, where there is room.
        """
        found, window, label, room, chosen = self.found, self.window, self.label, self.room, self.chosen
        now, signs, rows = self.drawing.now, self.drawing.signs, self._lane_rows
        empty: _Cells = [(" ", "text")] * room
        if found.ends is not None and (place := self._column(found.ends.at)) is not None:
            empty[place] = (signs.expected, "faint")
        if (place := self._column(now)) is not None:
            empty[place] = (signs.now, "faint")
        cells, names = list(empty), list(empty)
        used = 0
        named, role = lane.bars[-1], _name_role(lane.bars[-1])
        for bar in lane.bars:
            first = math.floor(window.share(bar.begin) * room)
            last = math.ceil(window.share(bar.until(now)) * room)
            if last < 0 or first >= room:
                continue
            start = max(first, used, 0)
            is_chosen = bar == chosen
            if is_chosen:
                named, role = bar, "strong"
            if start >= room or (start > first and start >= last > 0 and used):
                # A bar shorter than a cell that is already used: the cell stands for several bars.
                roles = ("hit" if is_chosen else bar_end(bar, signs)[1], cells[used - 1][1])
                cells[used - 1] = ("+", next((role for role in ("hit", "bad") if role in roles), roles[1]))
                continue
            stop = min(room, max(start + 1, last))
            drawn = _bar(bar, stop - start, is_chosen, starts=first >= 0, ends=last <= room, signs=signs)
            cells[start:stop] = drawn
            name = _name(bar, stop - start - 1, signs.ellipsis)
            if rows > 1 and name:
                names[start : start + len(name)] = [(letter, "dim") for letter in name]
            used = stop
        slot = f"slot {lane.number}  " if _is_shared(lane) else ""
        name = slot + _name(named, label - 2 - len(slot), signs.ellipsis)
        cursor = signs.cursor if role == "strong" else " "
        labels: list[Pieces] = [((cursor, "accent"), (fit(name, label - 2), role))]
        labels += [((" " * (label - 1), "text"),)] * (rows - 1)
        return [
            (*before, (signs.axis, "faint"), *_pieces(each))
            for before, each in zip(labels, (cells, names, empty), strict=False)
        ]

    def _medals_chart(self, rows: int) -> list[Pieces]:
        """Return a chart of the number of medals over time, on the same axis; no lines without a medal."""
        found = self.found
        won = [(at, 1) for at, _medal in found.medals]
        return self._counts_chart(won, "medal", "text", rows) if won else []

    def _busy_chart(self, rows: int) -> list[Pieces]:
        """Return a chart of the number of concurrent attempts over time, on the same axis."""
        found, now = self.found, self.drawing.now
        changes = sorted(
            (at, step)
            for bar in found.bars
            for at, step in ((bar.begin, 1), (now if bar.end is None else bar.end, -1))
            if at < now
        )
        return self._counts_chart(changes, "attempt", "running", rows)

    def _counts_chart(
        self, changes: Sequence[tuple[float, int]], counted: str, role: Role, rows: int
    ) -> list[Pieces]:
        """Return a chart of a number that changes at some times; no lines where there is no room for it."""
        window = self.window
        if rows < _LEAST_CHART:
            return []
        count, points = 0, [(0.0, 0.0)]
        for at, step in changes:
            if at > window.end:
                break
            count += step
            if at <= window.begin:
                points.clear()
            points.append((max(0.0, at - window.begin), float(count)))
        points.append((max(min(self.drawing.now, window.end) - window.begin, points[-1][0]), points[-1][1]))
        series = Series(
            points=points,
            span=(0.0, window.seconds),
            role=role,
            number=lambda value: plural(round(value), counted),
            steps=True,
            floor=0.0,
        )
        # The chart's own time axis is left out: it shows only a duration, the axis above shows times.
        return chart(series, rows, self.drawing.within(self.width - self.label + _SCALE))[:-1]

    def pointed_at(self, place: tuple[int, int]) -> Bar | None:
        """Return the attempt at a column and row of `gantt`'s lines; None outside of the lanes."""
        found, window, top = self.found, self.window, self.top
        across, down = place
        lane = (down - 1 - bool(found.marks)) // self._lane_rows
        if not 0 <= lane < self.lanes or not 0 <= top + lane < len(found.lanes):
            return None
        at = window.begin + (across - self.label + 0.5) / (self.width - self.label) * window.seconds
        return nearest(found.lanes[top + lane], at, self.drawing.now)


def summary(found: Timeline, name: str, now: float, signs: Signs) -> list[Pieces]:
    """Return the line about the sweep in several forms, longest first: medals, lanes, and when it ends."""
    dot: Piece = (f" {signs.dot} ", "faint")
    medals: tuple[str, ...] = ()
    if found.interim is not None:
        # The bounds of one sweep's rate don't apply to several sweeps.
        forms = wording.medals(found.interim, None, signs.plus_minus)
        so_far = found.interim.so_far_in_words()
        if len(found.sweep_ids) > 1:
            medals = (so_far,)
        elif found.interim.is_final:
            medals = (f"{so_far}, {found.interim.low:.1f} %", so_far)
        else:
            medals = (*forms[2:4], so_far)
    runs = found.interim.runs if found.interim is not None else 0
    lanes = plural(len(found.lanes), "slot")
    attempts = f"{plural(len(found.bars), 'attempt')} of {plural(runs, 'run')}"
    others = (
        (f"{sum(bar.is_live for bar in found.bars)} running, {found.queued} queued",) if found.queued else ()
    )
    ends = "" if found.ends is None else f"ends {wording.expected(found.ends, now)}"
    tail: Pieces = (dot, (ends, "text")) if ends else ()
    return [
        (
            (name, "strong"),
            dot,
            (text, "text"),
            *(piece for part in facts for piece in (dot, (part, "dim"))),
            *tail,
        )
        for text in medals or ("no runs",)
        for facts in ((*others, lanes, attempts), (*others, lanes), others, ())
    ]


def legend(found: Timeline, signs: Signs) -> Pieces:
    """Return the meaning of each kind of mark that occurs and how many there are, and of the number in a bar."""
    pieces: _Cells = []
    for kind, count in counted_marks(found.marks).items():
        sign, role = mark_sign(kind)
        pieces += [(sign, role), (f" {kind} {signs.times}{count}   ", "dim")]
    if any(bar.attempt > 1 for bar in found.bars):
        pieces += [
            (f"{signs.bar_begin}2{signs.bar_segment}", "text"),
            (" the run's second attempt   ", "dim"),
        ]
    return tuple(pieces)


def bar_facts(bar: Bar, now: float, signs: Signs) -> tuple[Pieces, Pieces]:
    """Return two lines about an attempt: its run and outcome; its times, host and cause of failure."""
    dot: Piece = (f" {signs.dot} ", "faint")
    again = f", attempt {bar.attempt} of {bar.of}" if bar.of > 1 else ""
    end, role = bar_end(bar, signs)
    if bar.state is RunState.FAILED:
        became = wording.FAILURE_WORDS[bar.failure or FailureClass.UNKNOWN]
    elif bar.outcome is not None:
        became = wording.OUTCOME_WORDS[bar.outcome]
    elif bar.is_live:
        now_gets = wording.standing_so_far(bar.standing)
        # That no submission is valid, which is said below, includes it.
        became = bar.state.value if bar.cause and not bar.standing else f"{bar.state.value}, {now_gets}"
    else:
        became = bar.state.value
    first: list[Piece] = [
        (f" {bar.competition_id} seed {bar.seed}", "strong"),
        (again, "dim"),
        dot,
        (f"{end} {became}", role),
    ]
    if bar.score is not None:
        first += [dot, (f"score {wording.score(bar.score, 9)}", "text")]
    first += [dot, (f"run {bar.run_id} of {bar.sweep_id}", "dim")]
    took = wording.span(bar.until(now) - bar.begin)
    ended = "" if bar.end is None else f" to {wording.clock(bar.end)}"
    second: list[Piece] = [(f" {wording.date_and_time(bar.begin)}{ended}, {took}", "text")]
    if bar.node:
        second += [dot, (f"on {bar.node}", "dim")]
    if bar.reroll:
        second += [dot, ("re-rolled", "warn")]
    if bar.cause:
        second += [dot, (bar.cause, "warn" if bar.is_live else "bad")]
    return tuple(first), tuple(second)


def _bar(bar: Bar, width: int, is_chosen: bool, *, starts: bool, ends: bool, signs: Signs) -> _Cells:
    """Return a bar of exactly `width` cells; the chosen one is a double line in its own colour."""
    tail, role = bar_end(bar, signs)
    if not ends:
        tail = ""
    elif len(tail) > width:
        tail = tail[-1] if bar.is_live else tail[0]
    body = width - len(tail)
    head = signs.bar_begin if starts and body else ""
    again = f"{bar.attempt}{signs.reroll if bar.reroll else ''}" if bar.attempt > 1 else ""
    if len(head) + len(again) < body:
        head += again
    cells: _Cells = [(letter, role) for letter in head]
    filled = max(0, body - len(cells))
    # Of a bar of a few cells one would not see that it is double.
    is_double = is_chosen and filled >= _SEEN
    cells += [(signs.bar_chosen if is_double else signs.bar_segment, role)] * filled
    cells += [(letter, role) for letter in tail]
    return [(letter, "hit") for letter, _role in cells] if is_chosen and not is_double else cells


def _name(bar: Bar, width: int = 200, ellipsis: str = "") -> str:
    """Return the competition and seed in at most `width` cells; empty where too little of it would fit."""
    seed = f" s{bar.seed}"
    if width < len(seed) + 4:
        return ""
    # Only characters one cell wide: the code below counts characters as cells.
    name = "".join(
        letter if letter.isascii() and letter.isprintable() else "?" for letter in plain(bar.competition_id)
    )
    room = width - len(seed)
    return (name if len(name) <= room else name[: room - len(ellipsis)].rstrip("-") + ellipsis) + seed


def _pieces(cells: Sequence[Piece]) -> Pieces:
    """Join adjacent cells of the same role."""
    return tuple(
        ("".join(text for text, _role in group), role)
        for role, group in groupby(cells, key=lambda cell: cell[1])
    )
