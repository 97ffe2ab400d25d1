"""The scoreboard as lines: own rows among the published ones, sorted by a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.model import wording
from console.painting import Line, Piece, Pieces, cut, fit, fitting, foreign, width_of
from console.signs import Signs
from console.theme import Role
from engine.scoreboard import COLUMNS, Row, Standing

SORTS = (*COLUMNS, "name", "date")


@dataclass(frozen=True)
class Order:
    """By which column, and whether the other way round."""

    column: str = "all"
    turned: bool = False


def heading(order: Order, width: int, signs: Signs) -> Pieces:
    """The names of the columns, an arrow at the one that sorts."""
    name, models, cell, date = _widths(width)

    def title(text: str, column: str, size: int, *, right: bool = True) -> tuple[str, Role]:
        arrow = f" {signs.up if order.turned else signs.down}" if order.column == column else ""
        return fit(text + arrow, size, right=right), "accent" if arrow else "dim"

    pieces: list[tuple[str, Role]] = [("   ", "text"), title("agent", "name", name, right=False)]
    if models:
        pieces.append((fit("models", models), "dim"))
    for column in COLUMNS:
        pieces.append(title(column.capitalize(), column, cell))
    pieces.append((fit("h", 5, right=True), "dim"))
    pieces.append(title("date" if date else "", "date", date))
    return cut((*pieces, ("  seeds", "dim")), width)


def lines(rows: Sequence[Row], order: Order, width: int, signs: Signs) -> list[Line]:
    """Every row in its order."""
    return [_line(row, width, signs) for row in sorted_rows(rows, order)]


def sorted_rows(rows: Sequence[Row], order: Order) -> list[Row]:
    """Rows in an order; own rows without a value stand on top, published ones at the end."""
    if order.column in ("name", "date"):
        ordered = sorted(rows, key=lambda row: str(getattr(row, order.column)).lower())
        return ordered[::-1] if order.turned is (order.column == "name") else ordered
    valued = [(row.columns[order.column].cell, row) for row in rows]
    having = sorted(
        ((cell.mean, row) for cell, row in valued if cell is not None),
        key=lambda pair: pair[0],
        reverse=not order.turned,
    )
    without = [row for cell, row in valued if cell is None]
    return (
        [row for row in without if row.table == "own"]
        + [row for _mean, row in having]
        + [row for row in without if row.table != "own"]
    )


def _widths(width: int) -> tuple[int, int, int, int]:
    """How wide names, models, percentages and dates are; 0 leaves a column out."""
    cell = 13 if width >= 100 else 8
    date = 12 if width >= 140 else 0
    room = width - 3 - 4 * cell - 5 - date - (25 if width >= 100 else 16)
    models = min(44, room * 2 // 5) if room >= 36 else 0
    return max(14, min(44, room - models)), models, cell, date


def _line(row: Row, width: int, signs: Signs) -> Line:
    name, models, cell, date = _widths(width)
    own = row.table == "own"
    mark = "  " if not own else " >" if signs.cursor == "|" else " ▸"
    label = foreign(row.name if not own else f"ours: {row.name}", name - 1, ellipsis=signs.ellipsis)
    pieces: list[tuple[str, Role]] = [(f"{mark} ", "accent"), (label + " ", "strong" if own else "text")]
    if models:
        pieces.append((foreign(row.llms, models - 1, ellipsis=signs.ellipsis) + " ", "dim"))
    for column in COLUMNS:
        pieces.append(_cell(row.columns[column], cell, own=own, signs=signs))
    pieces.append((fit(_hours(row.hours), 5, right=True), "dim"))
    pieces.append((fit(row.date if date else "", date, right=True), "dim"))
    left = width - width_of(pieces) - 2
    pieces += [("  ", "text"), *fitting([_seeds(row, words) for words in (2, 1, 0)], left)]
    return Line(cut(tuple(pieces), width), key=(row.table, row.name, row.llms, row.date), selectable=True)


def _hours(hours: float | None) -> str:
    if hours is None:
        return ""
    return f"{hours:.0f}" if hours >= 1 else f"{hours:.1f}"


def _cell(standing: Standing, width: int, *, own: bool, signs: Signs) -> tuple[str, Role]:
    if standing.cell is None:
        text = f"{standing.covered} of {standing.of}" if own and standing.covered else wording.UNKNOWN
        return fit(text, width, right=True), "faint" if not own else "dim"
    precise = f"{standing.cell.mean:.1f} {signs.plus_minus}{standing.cell.sem:.1f}"
    return fit(precise if width >= 12 else f"{standing.cell.mean:.1f}", width, right=True), "text"


def _seeds(row: Row, words: int) -> Pieces:
    if row.table != "own":
        return (("published" if row.table == "main" else "additional", "faint"),)
    if row.conflict:
        return ((foreign(row.conflict, 40).rstrip(), "bad"),)
    pieces: list[tuple[str, Role]] = []
    if row.demo:
        pieces.append(("demo ", "warn"))
    pieces.append((f"{row.seeds_done} of {row.seeds_planned}", "dim"))
    if row.running and words >= 2:
        pieces.append((", running", "running"))
    if row.rerolled and words >= 1:
        pieces.append((f", {row.rerolled} re-rolled" if words >= 2 else f" +{row.rerolled}", "warn"))
    return tuple(pieces)


def own_summary(rows: Sequence[Row], width: int, signs: Signs) -> tuple[Pieces, ...]:
    """What own experiments have earned on exactly the competitions that they cover."""
    made: list[Pieces] = []
    for row in (row for row in rows if row.table == "own"):
        standing = row.own
        if standing is None:
            continue
        earned = wording.UNKNOWN
        if standing.cell is not None:
            earned = f"{standing.cell.mean:.1f} {signs.plus_minus}{standing.cell.sem:.1f} %"
        demo: Pieces = (("  demo, not comparable", "warn"),) if row.demo else ()
        head: Piece = (f" {foreign(row.name, 20)} ", "strong")
        covered = wording.plural(standing.of, "competition")
        forms: list[Pieces] = [
            (head, (f"any medal on its own {covered}: ", "dim"), (earned, "text"), *demo),
            (head, (f"medal on its own {standing.of}: ", "dim"), (earned, "text"), *demo),
        ]
        made.append(fitting(forms, width))
    return tuple(made[:4])
