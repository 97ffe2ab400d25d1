"""A Gantt chart in cells: a time axis, a line of events that concern all runs, and a line for each lane of attempts.

Bars differ by colour and by their end: a letter or sign of the outcome, or `!` with the letter of a failure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from console import wording
from console.sanitize import plain
from console.tui.painting import Piece, Pieces, fit, foreign, heading
from console.tui.theme import Role, Signs
from console.tui.widgets.chart import Series, chart
from console.tui.widgets.run_cell import outcome_role, outcome_sign
from console.views.timeline import Window, nearest
from engine.scoreboard.timeline import Bar, Lane, Mark, MarkKind, Timeline, counted_marks, time_ticks
from state.lifecycle import FailureClass, RunState

# As wide as the scale of `chart`, so that charts below have the same axis.
LABEL = 13
_MARKS: Mapping[MarkKind, tuple[str, Role]] = {
    MarkKind.GPU_LOST: ("g", "bad"),
    MarkKind.OUTAGE: ("o", "warn"),
    MarkKind.ENGINE: ("e", "accent"),
    MarkKind.KILLED: ("k", "text"),
    MarkKind.PAUSED: ("p", "warn"),
    MarkKind.RESUMED: ("r", "text"),
}
_BETWEEN_TICKS = 9
# Bars with fewer cells have no name in them.
_NAMED = 14
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
        standing = signs.dot if bar.standing is None else outcome_sign(bar.standing, signs)
        return standing + signs.running, "running"
    if bar.state is RunState.FAILED:
        letter = wording.FAILURE_LETTERS[bar.failure or FailureClass.UNKNOWN]
        return signs.failed + (_MARKS[MarkKind.GPU_LOST][0] if bar.lost_gpu else letter), "bad"
    if bar.outcome is not None:
        return outcome_sign(bar.outcome, signs), outcome_role(bar.outcome)
    return signs.stopped, "dim"


def axis(window: Window, width: int, now: float, signs: Signs) -> Pieces:
    """Return the time axis, with a sign at the current time."""
    room = width - LABEL
    line = [" "] * room
    here = _column(window, now, room)
    for at, text in time_ticks(window.begin, window.end, room / _BETWEEN_TICKS):
        place = int(window.share(at) * room)
        if place + len(text) <= room and (here is None or not place - 1 <= here <= place + len(text)):
            line[place : place + len(text)] = text
    drawn = "".join(line)
    label: Piece = (" " * LABEL, "text")
    if here is None:
        return (label, (drawn, "dim"))
    return (label, (drawn[:here], "dim"), (signs.down, "accent"), (drawn[here + 1 :], "dim"))


def marks_line(marks: Sequence[Mark], window: Window, width: int) -> Pieces:
    """Return the line of marks, each a letter; of several in one cell the most important."""
    room = width - LABEL
    cells: dict[int, MarkKind] = {}
    ranks = {kind: rank for rank, kind in enumerate(MarkKind)}
    for mark in marks:
        place = _column(window, mark.at, room)
        if place is not None and ranks[mark.kind] < ranks.get(cells.get(place, mark.kind), 99) + 1:
            cells[place] = mark.kind
    drawn: _Cells = [_MARKS[cells[place]] if place in cells else (" ", "text") for place in range(room)]
    return (("      marks  ", "dim"), *_pieces(drawn))


def lane_lines(
    lane: Lane,
    found: Timeline,
    window: Window,
    width: int,
    *,
    rows: int,
    chosen: Bar | None,
    now: float,
    signs: Signs,
) -> list[Pieces]:
    """Return one lane in `rows` lines: its bars, the names below them, then empty lines."""
    room = width - LABEL
    empty: _Cells = [(" ", "text")] * room
    if found.ends is not None and (place := _column(window, found.ends.at, room)) is not None:
        empty[place] = (signs.expected, "faint")
    if (place := _column(window, now, room)) is not None:
        empty[place] = (signs.now, "faint")
    cells, names = list(empty), list(empty)
    used = 0
    for bar in lane.bars:
        first = math.floor(window.share(bar.begin) * room)
        last = math.ceil(window.share(bar.until(now)) * room)
        if last < 0 or first >= room:
            continue
        start = max(first, used, 0)
        is_chosen = chosen is not None and (bar.run_id, bar.attempt) == (chosen.run_id, chosen.attempt)
        if start >= room or (start > first and start >= last > 0 and used):
            # A bar shorter than a cell that is already used: the cell stands for several bars.
            roles = ("hit" if is_chosen else bar_end(bar, signs)[1], cells[used - 1][1])
            cells[used - 1] = ("+", next((role for role in ("hit", "bad") if role in roles), roles[1]))
            continue
        stop = min(room, max(start + 1, last))
        drawn = _bar(bar, stop - start, starts=first >= 0, ends=last <= room, signs=signs, named=rows == 1)
        cells[start:stop] = [(text, "hit" if is_chosen else role) for text, role in drawn]
        name = _name(bar, stop - start - 1)
        if rows > 1 and name:
            names[start : start + len(name)] = [(letter, "dim") for letter in name]
        used = stop
    title = lane.node or "slot"
    label = f"{fit(title, 8, right=True)} {lane.number:>2} "
    labels = [label, *[" " * len(label)] * (rows - 1)]
    return [
        ((text, "dim"), (signs.axis, "faint"), *_pieces(each))
        for text, each in zip(labels, (cells, names, empty), strict=False)
    ]


def medals_chart(
    found: Timeline, window: Window, width: int, rows: int, now: float, signs: Signs
) -> list[Pieces]:
    """Return a chart of the number of medals over time, on the same axis; no lines without a medal."""
    if not found.medals or rows < _LEAST_CHART:
        return []
    before = sum(at < window.begin for at, _medal in found.medals)
    seen = [at for at, _medal in found.medals if window.begin <= at <= window.end]
    points = [(0.0, float(before))]
    points += [(at - window.begin, float(before + count)) for count, at in enumerate(seen, start=1)]
    until = min(now, window.end) - window.begin
    if until > points[-1][0]:
        points.append((until, points[-1][1]))
    series = Series(
        points=points,
        span=(0.0, window.seconds),
        role="gold",
        number=lambda value: wording.plural(round(value), "medal"),
        steps=True,
        floor=0.0,
    )
    # The chart's own time axis is left out: it shows only a duration, the axis above shows times.
    return chart(series, width, rows, signs, ascii_only=signs.bar_parts == " ")[:-1]


def busy_chart(
    found: Timeline, window: Window, width: int, rows: int, now: float, signs: Signs
) -> list[Pieces]:
    """Return a chart of the number of concurrent attempts over time, on the same axis."""
    if rows < _LEAST_CHART:
        return []
    changes = sorted(
        (at, step)
        for bar in found.bars
        for at, step in ((bar.begin, 1), (now if bar.end is None else bar.end, -1))
        if at < now
    )
    count, points = 0, [(0.0, 0.0)]
    for at, step in changes:
        count += step
        if at > window.end:
            break
        points.append((max(0.0, at - window.begin), float(count)))
    until = min(now, window.end) - window.begin
    points.append((max(until, points[-1][0]), points[-1][1]))
    series = Series(
        points=points,
        span=(0.0, window.seconds),
        role="running",
        number=lambda value: wording.plural(round(value), "attempt"),
        steps=True,
        floor=0.0,
    )
    return chart(series, width, rows, signs, ascii_only=signs.bar_parts == " ")[:-1]


@dataclass(frozen=True)
class Layout:
    """How the rows of the screen are divided.

    Attributes:
        lane: rows of one lane.
        lanes: the number of lanes shown at once.
        chart: rows of the chart of medals, without its heading; 0 if there is no room for it.
        busy: rows of the chart of concurrent attempts, likewise.
    """

    lane: int
    lanes: int
    chart: int
    busy: int


def laid_out(found: Timeline, height: int) -> Layout:
    """Divide rows by priority: one for each lane, the chart of medals, names below bars, concurrent attempts."""
    lanes, room = max(1, len(found.lanes)), height - 1 - bool(found.marks)
    rows = next((rows for rows in (3, 2) if room >= rows * lanes + 1 + 2 * _LEAST_CHART), 1)
    drawn = busy = 0
    left = room - rows * lanes
    if found.medals and room >= 3 * _LEAST_CHART:
        drawn = min(_MOST_CHART, max(_LEAST_CHART, left - 1))
    if drawn and left >= _ROWS_FOR_BOTH:
        drawn = busy = min(_MOST_CHART, left // 2 - 1)
    elif not drawn and left >= _ROWS_FOR_BOTH // 2:
        busy = min(_MOST_CHART, left - 1)
    charts = sum(each + 1 for each in (drawn, busy) if each)
    return Layout(rows, max(1, (room - charts) // rows), drawn, busy)


def pointed_at(
    found: Timeline, window: Window, layout: Layout, place: tuple[int, int], width: int, top: int, now: float
) -> Bar | None:
    """Return the attempt at a column and row of `gantt`'s lines; None outside of the lanes."""
    across, down = place
    lane = (down - 1 - bool(found.marks)) // layout.lane
    if not 0 <= lane < layout.lanes or not 0 <= top + lane < len(found.lanes):
        return None
    at = window.begin + (across - LABEL + 0.5) / (width - LABEL) * window.seconds
    return nearest(found.lanes[top + lane], at, now)


def gantt(
    found: Timeline,
    window: Window,
    width: int,
    layout: Layout,
    *,
    top: int = 0,
    chosen: Bar | None = None,
    now: float,
    signs: Signs,
) -> list[Pieces]:
    """Return the axis, the marks, the lanes from `top` on, and the charts of medals and of concurrent attempts."""
    lines = [axis(window, width, now, signs)]
    if found.marks:
        lines.append(marks_line(found.marks, window, width))
    for lane in found.lanes[top : top + layout.lanes]:
        lines += lane_lines(lane, found, window, width, rows=layout.lane, chosen=chosen, now=now, signs=signs)
    for title, drawn in (
        ("medals over time", medals_chart(found, window, width, layout.chart, now, signs)),
        ("attempts at once", busy_chart(found, window, width, layout.busy, now, signs)),
    ):
        lines += [heading(title, width, signs), *drawn] if drawn else []
    return lines


def summary(found: Timeline, name: str, lanes: str, now: float, signs: Signs) -> list[Pieces]:
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
    attempts = f"{wording.plural(len(found.bars), 'attempt')} of {wording.plural(runs, 'run')}"
    title: Piece = (foreign(name, 40).rstrip(), "strong")
    ends = wording.expected_end(found.ends, now)
    tail: Pieces = (dot, (ends, "text")) if ends else ()
    return [
        (title, dot, (text, "text"), *(piece for part in facts for piece in (dot, (part, "dim"))), *tail)
        for text in medals or ("no runs",)
        for facts in ((lanes, attempts), (lanes,), ())
    ]


def legend(found: Timeline, signs: Signs) -> Pieces:
    """Return the meaning of each kind of mark that occurs, and how many there are."""
    pieces: _Cells = []
    for kind, count in counted_marks(found.marks).items():
        sign, role = mark_sign(kind)
        pieces += [(sign, role), (f" {kind} {signs.times}{count}   ", "dim")]
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
        became = f"live, now {wording.OUTCOME_WORDS[bar.standing] if bar.standing else 'nothing graded yet'}"
    else:
        became = bar.state.value
    first: list[Piece] = [
        (f" {foreign(bar.competition_id, 60).rstrip()} seed {bar.seed}", "strong"),
        (again, "dim"),
        dot,
        (f"{end} {became}", role),
    ]
    if bar.score is not None:
        first += [dot, (f"score {wording.score(bar.score, 9)}", "text")]
    first += [dot, (f"run {bar.run_id} of {foreign(bar.sweep_id, 40).rstrip()}", "dim")]
    took = wording.span(bar.until(now) - bar.begin)
    ended = "" if bar.end is None else f" to {wording.clock(bar.end)}"
    second: list[Piece] = [(f" {wording.date_and_time(bar.begin)}{ended}, {took}", "text")]
    if bar.node:
        second += [dot, (f"on {foreign(bar.node, 30).rstrip()}", "dim")]
    if bar.reroll:
        second += [dot, ("re-rolled", "warn")]
    if bar.cause:
        second += [dot, (foreign(bar.cause, 400).rstrip(), "bad")]
    return tuple(first), tuple(second)


def _bar(bar: Bar, width: int, *, starts: bool, ends: bool, signs: Signs, named: bool) -> _Cells:
    """Return a bar of exactly `width` cells."""
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
    name = f" {_name(bar, body - len(head) - 3)} " if named and body >= _NAMED else ""
    cells: _Cells = [(letter, role) for letter in head]
    cells += [(letter, "text") for letter in name]
    cells += [(signs.bar_segment, role)] * (body - len(cells))
    return [*cells, *((letter, role) for letter in tail)]


def _name(bar: Bar, width: int) -> str:
    """Return the competition and seed in at most `width` cells; empty where too little of it would fit."""
    seed = f" s{bar.seed}"
    if width < len(seed) + 4:
        return ""
    # Only characters one cell wide: the code below counts characters as cells.
    name = "".join(
        letter if letter.isascii() and letter.isprintable() else "?" for letter in plain(bar.competition_id)
    )
    return name[: width - len(seed)].rstrip("-") + seed


def _column(window: Window, at: float, room: int) -> int | None:
    """Return the cell of a time; None if it is outside of the window."""
    place = math.floor(window.share(at) * room)
    return place if 0 <= place < room else None


def _pieces(cells: Sequence[Piece]) -> Pieces:
    """Join adjacent cells of the same role."""
    return tuple(
        ("".join(text for text, _role in group), role)
        for role, group in groupby(cells, key=lambda cell: cell[1])
    )
