"""A sweep's board as lines: its header, the matrix of competitions and seeds, and the flat table."""

from __future__ import annotations

from dataclasses import dataclass

from console.model import wording
from console.model.filters import Filter
from console.model.sweep_board import BoardRow, Group, SweepBoard
from console.painting import Line, Piece, Pieces, cut, fit, foreign, spread, spread_fitting
from console.screens.run_cell import cell_pieces, draw_run, state_role
from console.signs import Signs
from engine.scoreboard import Cell
from state.lifecycle import SweepState
from state.records import Run, SweepCounts

_MARGIN = 2
# From this width on the flat table tells how long runs took and have been quiet.
_FLAT_TIMES = 140
_MORE_COLUMNS = 110
_MORE_WIDTH = 30
# Room for a sign, hours and minutes or five decimals, a standing in brackets, and a mark.
_CELL = 13


@dataclass(frozen=True)
class View:
    """How the board is looked at."""

    width: int
    now: float
    limit: float
    signs: Signs
    filter: Filter
    marked: frozenset[int]


@dataclass(frozen=True)
class _Layout:
    name: int
    seed: int
    seeds: int
    more: bool


def header(board: SweepBoard, view: View) -> tuple[Pieces, ...]:
    """Which sweep this is, how far it is, and what it has earned so far."""
    sweep, signs, dot = board.sweep, view.signs, f" {view.signs.dot} "
    spec = sweep.spec
    facts = [
        f"{len(spec.competitions)} {signs.times} {spec.seeds} seeds",
        f"limit {wording.limit(spec.time_limit_seconds)}",
        f"edition {spec.edition}",
        f"at most {sweep.concurrency} at once",
    ]
    name: list[Piece] = [(" ", "text"), (foreign(sweep.id, 40).rstrip(), "strong")]
    if sweep.state is not SweepState.ACTIVE:
        sign = signs.paused if sweep.state is SweepState.PAUSED else signs.stopped
        name.append((f"  {sign} {sweep.state}", "warn"))
    place = board.all_sweeps.index(sweep.id) + 1
    others: Pieces = (
        ((f"sweep {place} of {len(board.all_sweeps)} ", "dim"),) if len(board.all_sweeps) > 1 else ()
    )
    agent: Pieces = ((dot, "faint"), (foreign(spec.agent_id, 30).rstrip(), "text"), (dot, "faint"))
    lefts: list[Pieces] = [(*name, *agent, (dot.join(facts[:count]), "dim")) for count in (4, 3, 2, 1)]
    cell = _cell(board.any_medal, signs)
    earned: list[Pieces] = [
        (("any medal ", "dim"), (cell, "strong"), (" ", "text")),
        (("medal ", "dim"), (cell, "strong"), (" ", "text")),
    ]
    counts: list[Pieces] = [((" ", "text"), *counts_pieces(board.counts, signs, words)) for words in _COUNTS]
    return (
        spread_fitting([*lefts, tuple(name)], [others, ()], view.width),
        spread_fitting(counts, earned, view.width),
    )


@dataclass(frozen=True)
class _Words:
    """How counts are named where there is less and less room."""

    running: str
    queued: str
    finished: str
    failed: str
    infrastructure: str
    stopped: str


_COUNTS = (
    _Words(" running", " queued", " finished", " failed", " infrastructure", " stopped"),
    _Words(" running", " queued", " done", " failed", " infra", " stopped"),
    _Words("", "", "", "", " infra", ""),
)


def counts_pieces(counts: SweepCounts, signs: Signs, words: _Words = _COUNTS[0]) -> Pieces:
    """How many runs are where, each with its sign."""
    pieces: list[Piece] = [
        (f"{signs.running} {counts.live}{words.running}", "running" if counts.live else "dim"),
        (f"   {signs.queued} {counts.queued}{words.queued}", "dim"),
        (f"   {signs.done} {counts.finished}{words.finished}", "good" if counts.finished else "dim"),
        (f"   {signs.failed} {counts.failed}{words.failed}", "bad" if counts.failed else "dim"),
    ]
    if counts.infrastructure:
        pieces.append((f" ({counts.infrastructure}{words.infrastructure})", "dim"))
    if counts.stopped:
        pieces.append((f"   {signs.stopped} {counts.stopped}{words.stopped}", "dim"))
    return tuple(pieces)


def matrix(board: SweepBoard, view: View) -> list[Line]:
    """Competitions by split, seeds side by side; of a filtered row only the runs that match are drawn."""
    layout = _layout(board, view.width)
    lines: list[Line] = []
    for group in board.groups:
        rows = [row for row in group.rows if shown_runs(row, view.filter) or not view.filter]
        if not rows:
            continue
        if lines:
            lines.append(Line())
        lines.append(_group_heading(group, layout))
        lines += [_row(row, layout, view) for row in rows]
        lines.append(_group_total(group, layout, view.signs))
    return lines


def flat(board: SweepBoard, view: View) -> list[Line]:
    """Every run a line."""
    rows = {row.competition_id: row for group in board.groups for row in group.rows}
    found = [run for run in board.runs if view.filter.accepts(run, rows[run.competition_id].split)]
    return [_flat_heading(view.width), *(_flat_row(run, rows[run.competition_id], view) for run in found)]


def shown_runs(row: BoardRow, chosen: Filter) -> list[Run]:
    """The runs of a row that a filter lets through."""
    return [run for run in row.runs if run is not None and chosen.accepts(run, row.split)]


def filter_line(board: SweepBoard, view: View) -> tuple[Pieces, ...]:
    """What the filter says and how much it leaves, how many are marked; nothing if neither."""
    if not view.filter.text and not view.marked:
        return ()
    total = len(board.runs)
    left = sum(len(shown_runs(row, view.filter)) for group in board.groups for row in group.rows)
    pieces: list[Piece] = [(" ", "text")]
    if view.filter.text:
        pieces += [("/ ", "accent"), (foreign(view.filter.text, 60).rstrip(), "text")]
        pieces += [(f"   {left:,} of {total:,}", "dim")]
    if view.filter.unknown:
        pieces.append((f"   unknown: {foreign(', '.join(view.filter.unknown), 30).rstrip()}", "warn"))
    marks: Pieces = ((f"{view.signs.marked} {len(view.marked)} marked ", "accent"),) if view.marked else ()
    return (spread(tuple(pieces), marks, view.width),)


def cursor_line(run: Run | None, row: BoardRow | None, view: View) -> Pieces:
    """One line on what the cursor stands on, so that a cell need not say everything."""
    if run is None or row is None:
        return ()
    dot = f" {view.signs.dot} "
    name = foreign(row.competition_id, 60).rstrip()
    head: list[Piece] = [(" ", "text"), (f"{name} seed {run.seed}", "text"), (dot, "faint")]
    return cut((*head, *_about(run, row, view)), view.width)


def _about(run: Run, row: BoardRow, view: View) -> list[Piece]:
    dot = f" {view.signs.dot} "
    if run.failure_class is not None:
        words = wording.FAILURE_WORDS[run.failure_class]
        text = foreign(run.failure_text, view.width).rstrip()
        return [(words, "bad"), (dot, "faint"), (text, "text")]
    pieces: list[Piece] = [
        ((run.outcome and wording.OUTCOME_WORDS[run.outcome]) or run.state.value, state_role(run))
    ]
    if run.state == "queued" and row.waits_for:
        return [*pieces, (f"  waits: {foreign(row.waits_for, 80).rstrip()}", "warn")]
    if run.is_live and run.started_at is not None:
        pieces.append((f" {wording.of_limit(view.now - run.started_at, view.limit)}", "dim"))
    if run.is_live:
        standing = f"now {wording.OUTCOME_WORDS[run.standing]}" if run.standing else "nothing graded yet"
        pieces += [(dot, "faint"), (standing, "dim")]
    if run.score is not None:
        pieces += [(dot, "faint"), (f"score {wording.score(run.score, 9)}", "text")]
    if run.submissions:
        pieces += [(dot, "faint"), (wording.plural(run.submissions, "submission"), "dim")]
    if run.is_live and run.last_activity_at is not None:
        quiet = wording.age(view.now - run.last_activity_at)
        pieces += [(dot, "faint"), (f"last change {quiet}" + ("" if quiet == "now" else " ago"), "dim")]
    return pieces


def _layout(board: SweepBoard, width: int) -> _Layout:
    """Names give way before cells do: a cell that is cut says nothing, a name that is cut still does."""
    seeds = max(1, board.sweep.spec.seeds)
    longest = max((len(competition) for competition in board.sweep.spec.competitions), default=20) + 2
    more = width >= _MORE_COLUMNS and width - _MARGIN - seeds * _CELL - _MORE_WIDTH >= 30
    room = width - _MARGIN - 1 - (_MORE_WIDTH if more else 0)
    whole = (cell for cell in (17, 15, _CELL) if room - seeds * cell >= longest)
    cut_names = (cell for cell in (_CELL, 11, 9) if room - seeds * cell >= min(longest, 32))
    seed = next(whole, 0) or next(cut_names, 7)
    return _Layout(max(12, min(longest, room - seeds * seed)), seed, seeds, more)


def _cells(layout: _Layout) -> tuple[tuple[int, int], ...]:
    start = _MARGIN + layout.name
    return tuple(
        (start + seed * layout.seed, start + (seed + 1) * layout.seed - 1) for seed in range(layout.seeds)
    )


def _group_heading(group: Group, layout: _Layout) -> Line:
    title = f"{group.split.upper()}"
    pieces: list[Piece] = [(" ", "text"), (fit(title, layout.name + 1), "strong")]
    for seed in range(1, layout.seeds + 1):
        label = f"seed {seed}" if layout.seed >= 8 else f"s{seed}"
        pieces.append((fit(label, layout.seed), "dim"))
    if layout.more:
        pieces.append((f"{'medal':>6}{'best':>11}{'bronze':>11}", "dim"))
    return Line(tuple(pieces))


def _row(row: BoardRow, layout: _Layout, view: View) -> Line:
    name = foreign(row.competition_id, layout.name - 1, ellipsis=view.signs.ellipsis)
    waits = bool(row.waits_for)
    pieces: list[Piece] = [("  ", "text"), (name + " ", "dim" if waits else "text")]
    for run in row.runs:
        pieces += _cell_of(run, row, layout, view)
    if layout.more:
        medals, finished = row.medals
        bronze = row.thresholds.bronze if row.thresholds else None
        earned = f"{medals}/{finished}" if finished else ""
        pieces += [
            (f"{earned:>6}", "text" if medals else "dim"),
            (f"{wording.score(row.best, 9) if row.best is not None else '':>11}", "text"),
            (f"{wording.score(bronze, 9):>11}", "dim"),
        ]
    return Line(tuple(pieces), key=row.competition_id, cells=_cells(layout), selectable=True)


def _cell_of(run: Run | None, row: BoardRow, layout: _Layout, view: View) -> list[Piece]:
    if run is None or (view.filter and not view.filter.accepts(run, row.split)):
        return [(" " * layout.seed, "faint")]
    drawn = list(cell_pieces(draw_run(run, view.signs, view.now, view.limit), layout.seed - 2))
    marked = view.signs.marked if run.id in view.marked else " "
    return [*drawn, (marked, "accent"), (" ", "text")]


def _group_total(group: Group, layout: _Layout, signs: Signs) -> Line:
    pieces: list[Piece] = [("  ", "text"), (fit(_total_label(group, layout.seeds), layout.name), "dim")]
    pieces += [(fit(wording.percent(share), layout.seed), "dim") for share in group.per_seed]
    if layout.more:
        pieces.append(
            (fit(_cell(group.any_medal, signs), 28, right=True), "text" if group.any_medal else "dim")
        )
    return Line(tuple(pieces))


def _total_label(group: Group, seeds: int) -> str:
    whole = group.any_medal.n if group.any_medal is not None and group.any_medal.n else 0
    return f"any medal, {whole} of {seeds} seeds whole"


def _cell(cell: Cell | None, signs: Signs) -> str:
    return wording.UNKNOWN if cell is None else f"{cell.mean:.1f} {signs.plus_minus}{cell.sem:.1f} %"


def _flat_heading(width: int) -> Line:
    name = f"{'competition':<{_flat_name(width)}}"
    text = (
        f"  {'run':>6}  {name} {'seed':>4}  {'state':<16} {'score':>10} {'standing':<13}{'attempt':>7}"
        f"{_flat_times('took', 'quiet', width)}  what"
    )
    return Line(((fit(text, width), "dim"),))


def _flat_name(width: int) -> int:
    return min(48, max(16, width - (89 if width >= _FLAT_TIMES else 76)))


def _flat_times(took: str, quiet: str, width: int) -> str:
    return f"{took:>7}{quiet:>6}" if width >= _FLAT_TIMES else ""


def _took(run: Run, view: View) -> str:
    if run.started_at is None:
        return ""
    return wording.elapsed_within((run.ended_at or view.now) - run.started_at, view.limit)


def _quiet(run: Run, view: View) -> str:
    if not run.is_live or run.last_activity_at is None:
        return ""
    return wording.age(view.now - run.last_activity_at)


def _flat_row(run: Run, row: BoardRow, view: View) -> Line:
    drawn = draw_run(run, view.signs, view.now, view.limit)
    standing = wording.OUTCOME_SHORT[run.standing] if run.standing else ""
    marked = view.signs.marked if run.id in view.marked else " "
    times = 13 if view.width >= _FLAT_TIMES else 0
    what = run.failure_text or (row.waits_for if run.state == "queued" else "")
    pieces: Pieces = (
        (f" {marked}", "accent"),
        (f"{run.id:>6}  ", "dim"),
        (foreign(run.competition_id, _flat_name(view.width), ellipsis=view.signs.ellipsis) + " ", "text"),
        (f"{run.seed:>4}  ", "text"),
        (fit(f"{drawn.sign} {run.state.value}", 16) + " ", drawn.role),
        (f"{wording.score(run.score, 10) if run.score is not None else '':>10} ", "text"),
        (fit(standing, 13), drawn.standing_role if run.is_live else drawn.role),
        (f"{run.attempts:>7}", "dim"),
        (_flat_times(_took(run, view), _quiet(run, view), view.width) + "  ", "dim"),
        (foreign(what, max(0, view.width - _flat_name(view.width) - 72 - times)), "dim"),
    )
    return Line(cut(pieces, view.width), key=run.id, selectable=True)
