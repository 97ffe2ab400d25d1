"""The line over a log: where its view is, what is hidden, and whether it follows."""

from __future__ import annotations

from console import wording
from console.logs.logpage import Page
from console.tui.painting import (
    Piece,
    Pieces,
    foreign,
    spread,
)
from console.tui.theme import Signs


def log_status(page: Page, from_column: int, width: int, signs: Signs, *, wrap: bool) -> Pieces:
    """Tell about a page: what is wrong and which hit this is on the left, where one is on the right."""
    if not page.exists and not page.note:
        return ((" nothing has been printed yet", "dim"),)
    left: list[Piece] = [(" ", "text")]
    if page.note:
        left.append((foreign(page.note, max(10, width - 50)).rstrip() + "  ", "warn"))
    if page.hits is not None:
        left.append((_hits(page, page.hits), "accent"))
    right: list[Piece] = []
    if page.filtered:
        right.append(("only lines with a hit  ", "accent"))
    if from_column:
        right.append((f"from column {from_column + 1}  ", "dim"))
    if wrap:
        right.append(("wrap  ", "dim"))
    right.append((f"{wording.size(page.size)}  ", "dim"))
    if page.following:
        right.append(("following ", "good"))
    else:
        new = f", +{wording.plural(page.behind, 'line')}" if page.behind else ""
        right += [(f"{page.share:.0%}  ", "dim"), (f"paused{new} {signs.down} ", "warn")]
    return spread(tuple(left), tuple(right), width)


def _hits(page: Page, hits: int) -> str:
    total = f"{hits:,}{'+' if page.counting else ''}"
    if page.hit_number is None:
        return f"{total} hits" if page.counting else wording.plural(hits, "hit")
    return f"hit {page.hit_number:,} of {total}"
