"""The scoreboard as lines: own, imported and published rows, sorted by a column, with their footnotes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from console import wording
from console.screens.titles import Column, titles_line
from console.tui.painting import (
    ColumnSpan,
    Line,
    Piece,
    Pieces,
    cut,
    fit,
    fitting,
    foreign,
    heading,
    width_of,
)
from console.tui.theme import Signs
from console.views.filters import words_accept
from console.views.scoreboard import Subject, subject_of
from console.views.sorting import Sorting
from engine.scoreboard import COLUMNS, Row, Standing

SORTS = ("name", "models", *COLUMNS, "hours", "date", "seeds")
_TITLES = {"name": "agent", "models": "models", "hours": "h", "date": "date", "seeds": "seeds"}
_MARGIN = 3
_LEAST_MODELS = 12
# Narrower cells hold a number, with nothing of how sure it is.
_ROOM_FOR_WORDS = 11
# Footnotes that hold for a whole table or kind of row, beside the notes of single rows.
_PADDED = "padded: incomplete seeds count as failing"
_NOTE_ADDITIONAL = (
    "additional table: rows that used feedback from the test set, or are otherwise not comparable"
)


@dataclass(frozen=True)
class Look:
    """How the table is looked at; `longest` is how many cells the longest name takes."""

    sorting: Sorting[str]
    width: int
    signs: Signs
    longest: int = 0
    words: str = ""
    marked: frozenset[Subject] = frozenset()


@dataclass(frozen=True)
class _Layout:
    """Where each column begins and ends; one that finds no room is missing."""

    places: dict[str, tuple[int, int]]

    def width(self, column: str) -> int:
        """How wide a column is; 0 where it is left out."""
        begin, end = self.places.get(column, (0, 0))
        return end - begin


def columns_shown(width: int, rows: Sequence[Row]) -> tuple[str, ...]:
    """Which columns find room, in their order: the cursor chooses among these."""
    return tuple(_layout(width, longest_label(rows)).places)


def longest_label(rows: Sequence[Row]) -> int:
    """How many cells the longest name takes."""
    return max((cell_len(_label(row)) for row in rows), default=0)


def _label(row: Row) -> str:
    return {"own": f"ours: {row.name}", "imported": f"imported: {row.name}"}.get(row.table, row.name)


def titles(look: Look) -> Line:
    """The names of the columns."""
    layout = _layout(look.width, look.longest)
    columns = [Column("", _MARGIN)]
    for name in layout.places:
        title, width = _TITLES.get(name, name.capitalize()), layout.width(name)
        if name == "seeds":
            columns.append(Column(f"  {title}", width, name))
        else:
            columns.append(Column(title, width, name, right=name not in ("name", "models")))
    return titles_line(columns, look.sorting, look.signs)


def lines(rows: Sequence[Row], look: Look) -> list[Line]:
    """Every row that the filter lets through in its order, the additional table below, footnotes at the end."""
    found = [row for row in rows if _is_wanted(row, look.words)]
    notes = _footnotes(found)
    main = [row for row in found if row.table != "additional"]
    additional = [row for row in found if row.table == "additional"]
    made = [_line(row, look, notes) for row in sorted_rows(main, look.sorting)]
    if additional:
        made += [Line(), Line(heading("additional table", look.width, look.signs))]
        made += [_line(row, look, notes) for row in sorted_rows(additional, look.sorting)]
    if not made:
        made.append(Line((("  no row has these words", "dim"),)))
    if notes or additional:
        made.append(Line())
    for text, mark in notes.items():
        room = max(10, look.width - 7)
        made.append(Line(((f"  [{mark}] ", "accent"), (foreign(text, room).rstrip(), "dim"))))
    if additional:
        made.append(Line(((f"  {fit(_NOTE_ADDITIONAL, look.width - 3).rstrip()}", "dim"),)))
    return made


def sorted_rows(rows: Sequence[Row], sorting: Sorting[str]) -> list[Row]:
    """Rows in an order; own rows without a value stand on top, others without one at the end."""
    value = _VALUES.get(sorting.by)
    if value is not None:
        ordered = sorted(rows, key=value)
        # Words go from A to Z, numbers and dates from the largest.
        ascending = sorting.by in ("name", "models")
        return ordered if ascending is not sorting.turned else ordered[::-1]
    valued = [(row.columns[sorting.by].cell, row) for row in rows]
    having = sorted(
        ((cell.mean, row) for cell, row in valued if cell is not None),
        key=lambda pair: pair[0],
        reverse=not sorting.turned,
    )
    without = [row for cell, row in valued if cell is None]
    return (
        [row for row in without if _is_ours(row)]
        + [row for _mean, row in having]
        + [row for row in without if not _is_ours(row)]
    )


_VALUES: dict[str, Callable[[Row], tuple[float | str, ...]]] = {
    "name": lambda row: (row.name.lower(), row.llms.lower()),
    "models": lambda row: (row.llms.lower(), row.name.lower()),
    "hours": lambda row: (-1.0 if row.hours is None else row.hours,),
    "date": lambda row: (row.date,),
    "seeds": lambda row: (_is_ours(row), row.seeds_done or 0, row.table == "main"),
}


def key_of(row: Row) -> tuple[Subject, str, str]:
    """What tells a row from all others; published agents have several."""
    return subject_of(row), row.llms, row.date


def _is_ours(row: Row) -> bool:
    return subject_of(row).has_runs


def _is_wanted(row: Row, words: str) -> bool:
    return words_accept(words, row.name, row.agent, row.llms, row.table, row.date, row.note, row.edition)


def _footnotes(rows: Sequence[Row]) -> dict[str, int]:
    """The footnotes of these rows and their numbers, in the order in which they are met."""
    texts = dict.fromkeys(text for row in rows for text in _notes_of(row))
    return {text: place for place, text in enumerate(texts, start=1)}


def _notes_of(row: Row) -> tuple[str, ...]:
    return (*((_PADDED,) if row.padded else ()), *((row.note,) if row.note else ()))


def _layout(width: int, longest: int) -> _Layout:
    cell = 13 if width >= 140 else 11 if width >= 100 else 8
    tail = 32 if width >= 140 else 23 if width >= 100 else 17
    date = 12 if width >= 140 else 0
    room = width - _MARGIN - len(COLUMNS) * cell - 5 - date - tail
    # Names take what they need; models what that leaves, unless it is too little to tell them apart.
    name = max(14, min(44, room, longest + 2))
    models = min(60, room - name) if room - name >= _LEAST_MODELS else 0
    sizes = {"name": name if models else max(14, min(44, room)), "models": models}
    sizes |= dict.fromkeys(COLUMNS, cell) | {"hours": 5, "date": date, "seeds": tail}
    places: dict[str, tuple[int, int]] = {}
    begin = _MARGIN
    for column, size in sizes.items():
        if size:
            places[column] = (begin, min(width, begin + size))
            begin += size
    return _Layout(places)


def _line(row: Row, look: Look, notes: dict[str, int]) -> Line:
    layout, signs, ours = _layout(look.width, look.longest), look.signs, _is_ours(row)
    if subject_of(row) in look.marked:
        mark = f" {signs.marked} "
    else:
        mark = "   " if not ours else f" {'>' if signs.cursor == '|' else '▸'} "
    pieces: list[Piece] = [(mark, "accent")]
    for column in layout.places:
        size = layout.width(column)
        if column == "name":
            text = foreign(_label(row), size - 1, ellipsis=signs.ellipsis)
            pieces.append((text + " ", "strong" if ours else "text"))
        elif column == "models":
            pieces.append((foreign(row.llms, size - 1, ellipsis=signs.ellipsis) + " ", "dim"))
        elif column in COLUMNS:
            pieces.append(_cell(row.columns[column], size, ours=ours, signs=signs))
        elif column == "hours":
            pieces.append((fit(_hours(row.hours), size, right=True), "dim"))
        elif column == "date":
            pieces.append((foreign(row.date, size - 1).rjust(size), "dim"))
    numbers = ",".join(str(notes[text]) for text in _notes_of(row))
    marks = f" [{numbers}]" if numbers else ""
    room = look.width - width_of(pieces) - 2
    forms = [_seeds(row, words, marks) for words in (3, 2, 1, 0)]
    pieces += [("  ", "text"), *fitting(forms, room)]
    return Line(
        cut(tuple(pieces), look.width),
        key=key_of(row),
        cells=tuple(ColumnSpan(*place) for place in layout.places.values()),
        selectable=True,
    )


def _hours(hours: float | None) -> str:
    if hours is None:
        return ""
    return f"{hours:.0f}" if hours >= 1 else f"{hours:.1f}"


def _cell(standing: Standing, width: int, *, ours: bool, signs: Signs) -> Piece:
    if standing.cell is None:
        between = " of " if width >= _ROOM_FOR_WORDS else "/"
        text = f"{standing.covered}{between}{standing.of}" if ours and standing.covered else wording.UNKNOWN
        return fit(text, width, right=True), "dim"
    precise = f"{standing.cell.mean:.1f} {signs.plus_minus}{standing.cell.sem:.1f}"
    return fit(
        precise if width >= _ROOM_FOR_WORDS else f"{standing.cell.mean:.1f}", width, right=True
    ), "text"


def _seeds(row: Row, words: int, marks: str) -> Pieces:
    """How many seeds, or where a row comes from, in `words` of detail."""
    if not _is_ours(row):
        text = "published" if row.table == "main" else "additional"
        return ((text if words else text[:4], "dim"), (marks, "accent"))
    if row.conflict:
        return ((foreign(row.conflict, 60).rstrip(), "bad"),)
    pieces: list[Piece] = []
    if row.demo:
        pieces.append(("demo ", "warn"))
    pieces.append((f"{row.seeds_done}" + (f" of {row.seeds_planned}" if row.seeds_planned else ""), "dim"))
    if row.running and words >= 2:
        pieces.append((", running", "running"))
    if row.rerolled and words >= 1:
        pieces.append((f", {row.rerolled} re-rolled" if words >= 3 else f" +{row.rerolled}", "warn"))
    return (*pieces, (marks, "accent"))


def summary(rows: Sequence[Row], width: int, signs: Signs) -> tuple[Pieces, ...]:
    """What own experiments have earned on exactly the competitions that they cover."""
    made: list[Pieces] = []
    for row in rows:
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
