"""The scoreboard as lines: own rows among the published ones, sorted by a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.model import wording
from console.painting import Line, Pieces, cut, fit, foreign
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
    name, llm, cell = _widths(width)

    def title(text: str, column: str, size: int, *, right: bool = True) -> tuple[str, Role]:
        arrow = f" {signs.up if order.turned else signs.down}" if order.column == column else ""
        return fit(text + arrow, size, right=right), "accent" if arrow else "dim"

    pieces: list[tuple[str, Role]] = [("   ", "text"), title("agent", "name", name, right=False)]
    if llm:
        pieces.append((fit("models", llm), "dim"))
    for column in COLUMNS:
        pieces.append(title(column.capitalize(), column, cell))
    pieces.append((fit("h", 5, right=True), "dim"))
    pieces.append(title("date" if width >= 120 else "", "date", 12 if width >= 120 else 0))
    return cut((*pieces, ("  seeds", "dim")), width)


def lines(rows: Sequence[Row], order: Order, width: int, signs: Signs) -> list[Line]:
    """Every row, those without a value in the sorting column last."""
    return [_line(row, width, signs) for row in sorted_rows(rows, order)]


def sorted_rows(rows: Sequence[Row], order: Order) -> list[Row]:
    """Rows in an order; what has no value comes last whichever way it is turned."""
    if order.column in ("name", "date"):
        ordered = sorted(rows, key=lambda row: str(getattr(row, order.column)).lower())
        return ordered[::-1] if order.turned is (order.column == "name") else ordered
    valued = [(row.columns[order.column].cell, row) for row in rows]
    having = sorted(
        ((cell.mean, row) for cell, row in valued if cell is not None),
        key=lambda pair: pair[0],
        reverse=not order.turned,
    )
    # Demo rows stand apart: their numbers must not be read beside real ones.
    without = [row for cell, row in valued if cell is None]
    return [row for _mean, row in having] + without


def _widths(width: int) -> tuple[int, int, int]:
    cell = 14 if width >= 100 else 9
    fixed = 3 + 4 * cell + 5 + (12 if width >= 120 else 0) + (26 if width >= 100 else 6)
    llm = max(0, min(40, width - fixed - 26)) if width >= 110 else 0
    return max(14, min(44, width - fixed - llm)), llm, cell


def _line(row: Row, width: int, signs: Signs) -> Line:
    name, llm, cell = _widths(width)
    own = row.table == "own"
    mark = "  " if not own else " >" if signs.cursor == "|" else " ▸"
    label = foreign(row.name if not own else f"ours: {row.name}", name - 1, ellipsis=signs.ellipsis)
    pieces: list[tuple[str, Role]] = [(f"{mark} ", "accent"), (label + " ", "strong" if own else "text")]
    if llm:
        pieces.append((foreign(row.llms, llm - 1, ellipsis=signs.ellipsis) + " ", "dim"))
    for column in COLUMNS:
        pieces.append(_cell(row.columns[column], cell, own=own, signs=signs))
    pieces.append((fit("" if row.hours is None else f"{row.hours:.3g}", 5, right=True), "dim"))
    if width >= 120:
        pieces.append((fit(row.date, 12, right=True), "dim"))
    pieces += [("  ", "text"), *_seeds(row)]
    return Line(cut(tuple(pieces), width), key=(row.table, row.name, row.llms, row.date), selectable=True)


def _cell(standing: Standing, width: int, *, own: bool, signs: Signs) -> tuple[str, Role]:
    if standing.cell is None:
        text = f"{standing.covered} of {standing.of}" if own and standing.covered else wording.UNKNOWN
        return fit(text, width, right=True), "faint" if not own else "dim"
    precise = f"{standing.cell.mean:.1f} {signs.plus_minus}{standing.cell.sem:.1f}"
    return fit(precise if width >= 12 else f"{standing.cell.mean:.1f}", width, right=True), "text"


def _seeds(row: Row) -> Pieces:
    if row.table != "own":
        return (("published" if row.table == "main" else "published, additional", "faint"),)
    if row.conflict:
        return ((foreign(row.conflict, 40).rstrip(), "bad"),)
    pieces: list[tuple[str, Role]] = []
    if row.demo:
        pieces.append(("demo ", "warn"))
    pieces.append((f"{row.seeds_done} of {row.seeds_planned}", "dim"))
    if row.running:
        pieces.append((", running", "running"))
    if row.rerolled:
        pieces.append((f", {row.rerolled} re-rolled", "warn"))
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
        demo: Pieces = (("  demo: synthetic data, not comparable", "warn"),) if row.demo else ()
        head = (f" {foreign(row.name, 28)} ", "strong")
        middle = (f"any medal on its own {wording.plural(standing.of, 'competition')}: ", "dim")
        made.append(cut((head, middle, (earned, "text"), *demo), width))
    return tuple(made[:4])
