"""What stands around a sweep's runs: its header, what the filter leaves, what the cursor stands on."""

from __future__ import annotations

from dataclasses import dataclass

from console import wording
from console.screens.run_cell import state_role
from console.tui.painting import (
    Piece,
    Pieces,
    cut,
    foreign,
    spread,
    spread_fitting,
)
from console.tui.theme import Signs
from console.views.filters import Filter
from console.views.ordering import BENCHMARK, Order, told
from console.views.sorting import Sorting
from console.views.sweep import BoardRow, SweepBoard, runs_in_matrix
from engine.scoreboard import Cell
from state.lifecycle import SweepState
from state.records import Run, SweepCounts


@dataclass(frozen=True)
class View:
    """How the board is looked at."""

    width: int
    now: float
    limit: float
    signs: Signs
    filter: Filter
    marked: frozenset[int]
    sorting: Sorting[Order] = BENCHMARK


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
    cell = cell_text(board.any_medal, signs)
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


def filter_line(board: SweepBoard, view: View) -> tuple[Pieces, ...]:
    """What the filter says and how much it leaves, the order, how many are marked; nothing if all are as ever."""
    if not view.filter.text and not view.marked and view.sorting == BENCHMARK:
        return ()
    total = len(board.runs)
    left = len(runs_in_matrix(board, view.filter))
    pieces: list[Piece] = [(" ", "text")]
    if view.filter.text:
        pieces += [("/ ", "accent"), (foreign(view.filter.text, 60).rstrip(), "text")]
        pieces += [(f"   {left:,} of {total:,}", "dim")]
    if view.filter.unknown:
        pieces.append((f"   unknown: {foreign(', '.join(view.filter.unknown), 30).rstrip()}", "warn"))
    if view.sorting != BENCHMARK:
        gap = "   " if view.filter.text else ""
        pieces.append((f"{gap}order: {told(view.sorting)}", "dim"))
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


def cell_text(cell: Cell | None, signs: Signs) -> str:
    """A mean with its error, or that it is unknown."""
    return wording.UNKNOWN if cell is None else f"{cell.mean:.1f} {signs.plus_minus}{cell.sem:.1f} %"
