"""Nouns of the console and their fields: what a command's table, a screen's list and a filter are all made from.

    SUBMISSION = Noun(
        "submission",
        key=lambda row: row.submission.id,
        document=lambda row, _now: asdict(row.submission),
        fields=(
            NounField("number", lambda row, _: str(row.submission.sequence), 4, right=True, drop=2),
            NounField("standing", draw_standing, 14, order=by_standing, matches=stands),
            NounField("message", draw_message, 16, grows=REST, role="warn", words=True),
        ),
    )
    SUBMISSION.columns("number standing", number={"title": "#"})

A place (a command, a list) chooses fields by name and may change their layout, never their cells: what a cell says is
decided once. `console.fitting` gives columns their widths, `console.cli.output.say_rows` prints them, and
`console.tui.widgets.table` draws them. Each noun is a module of `console.nouns`, with the row that its query joins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from rich.cells import cell_len

from mlebench_console.console.lists import FilterTerm, SortOrder, parse_terms
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.console.sanitize import Clean, plain
from mlebench_console.foundation.problems import UsageProblem

Row = TypeVar("Row")

# The value of `grows` for a column that takes all the remaining width.
REST = 10_000


@dataclass(frozen=True)
class Forms:
    """A cell in at most three forms, longest first; the longest that fits is drawn, or the last one is cut."""

    forms: Sequence[str | Pieces]

    def fitting(self, width: int) -> str | Pieces:
        """Return the longest form that fits a width, or the last one."""
        return next((form for form in self.forms if natural(form) <= width), self.forms[-1])


@dataclass(frozen=True)
class Rest:
    """A cell that spans its own column and all that follow, such as a problem in place of figures.

    Attributes:
        pieces: what its own column says; a filter and a pipe, which have the other columns too, read only this.
        beyond: what stands after it in place of the others.
        shorter: drawn instead where the pieces don't fit.
        least: the width up to which names are narrowed to make room; beyond it the cell is cut. 0 means its full width.
    """

    pieces: Pieces
    beyond: Pieces = ()
    shorter: Pieces = ()
    least: int = 0

    @property
    def whole(self) -> Pieces:
        """All of it."""
        return (*self.pieces, *self.beyond)


# Text is drawn in its field's role; pieces have roles of their own.
Cell = str | Pieces | Forms | Rest


def cleaned(cell: Cell) -> Cell:
    """Return a cell with harmless text in one line, to be measured and drawn; fields may quote anybody."""
    if isinstance(cell, Forms):
        return Forms([form for each in cell.forms if isinstance(form := cleaned(each), str | tuple)])
    if isinstance(cell, Rest):
        pieces, beyond, shorter = map(_cleaned, (cell.pieces, cell.beyond, cell.shorter))
        return replace(cell, pieces=pieces, beyond=beyond, shorter=shorter)
    return _clean(cell) if isinstance(cell, str) else _cleaned(cell)


def _cleaned(pieces: Pieces) -> Pieces:
    return tuple((_clean(text), role) for text, role in pieces)


def _clean(text: str) -> Clean:
    return plain(text.replace("\n", " "))


def text_of(cell: Cell, width: int = REST) -> str:
    """Return a cell without roles, in its longest form or the longest that fits, and nothing that spans others.

    A filter and a pipe read the longest form.
    """
    form = cell.fitting(width) if isinstance(cell, Forms) else cell.pieces if isinstance(cell, Rest) else cell
    return form if isinstance(form, str) else "".join(text for text, _role in form)


def natural(cell: Cell) -> int:
    """Return the width that a cell needs; one that spans other columns needs none of its own."""
    return 0 if isinstance(cell, Rest) else cell_len(text_of(cell))


def shortest(cell: Cell) -> int:
    """Return the width of a cell in its shortest form."""
    return natural(cell.forms[-1] if isinstance(cell, Forms) else cell)


@dataclass(frozen=True)
class Order(Generic[Row]):
    """An order of rows: how people call it, and the rank of a row, the first one the lowest."""

    words: str
    rank: Callable[[Row, Drawing], Any]


@dataclass(frozen=True)
class NounField(Generic[Row]):
    """One thing that is said of each row: its title and cell, and how a column of it is laid out.

    Attributes:
        name: by which places choose it, and by which a filter names it.
        cell: returns the cell of a row.
        width: the width of its column in cells.
        grows: the width it may grow to if there is room and a row needs it; `REST` takes all the remaining width.
        title: that of its column; the name if None.
        drop: the order in which columns are left out for lack of room, highest first; 0 is never left out.
        right: whether it is right-aligned.
        role: the role of its text; `title_role` is that of its title.
        gap: the number of empty cells before it.
        usual: the text of rows of which there is nothing to say, beside "", "-" and "0".
        order: how rows are sorted by it; None where they can't be.
        matches: by what `name:value` in a filter selects a row: the value is the beginning, the whole or a part of its
            cell's text, or a function says so; None where a filter can't name it.
        words: whether a filter searches its text for free words.
        wraps: the most lines on which its text goes on below its row, where that has room; 1 if it is cut instead.
        chosen: whether the cursor may choose its cell, for all rows or by row.
    """

    name: str
    cell: Callable[[Row, Drawing], Cell]
    width: int
    grows: int = 0
    title: str | None = None
    drop: int = 0
    right: bool = False
    role: Role = "text"
    title_role: Role = "dim"
    gap: int = 2
    usual: str = ""
    order: Order[Row] | None = None
    matches: Callable[[Row, str], bool] | Literal["beginning", "whole", "part"] | None = None
    words: bool = False
    wraps: int = 1
    chosen: bool | Callable[[Row], bool] = False

    @property
    def heading(self) -> str:
        """The title of its column."""
        return self.name if self.title is None else self.title

    @property
    def is_name(self) -> bool:
        """Whether it grows up to a limit, as names do, which are cut last."""
        return self.width < self.grows < REST

    def selects(self, row: Row, value: str, drawing: Drawing) -> bool:
        """Return whether `name:value` in a filter selects a row."""
        if callable(self.matches):
            return self.matches(row, value)
        text = text_of(self.cell(row, drawing)).lower()
        if self.matches == "whole":
            return text == value
        return bool(value) and (text.startswith(value) if self.matches == "beginning" else value in text)

    def says_nothing(self, text: str) -> bool:
        """Return whether the text of a cell is what nearly all rows have."""
        return text in ("", "-", "0", self.usual)


Columns = Sequence[NounField[Row]]


def record_document(row: Any, _now: float) -> dict[str, Any]:
    """Return the record of a row as JSON's object."""
    return asdict(row)


@dataclass(frozen=True)
class Noun(Generic[Row]):
    """A kind of thing that the console lists.

    Attributes:
        name: as people call it.
        fields: all that a list may say of a row.
        key: identifies a row; the cursor and marks stay with it when rows change.
        document: returns a row as JSON's object at a time: the record with its codes, data and texts, not its fields.
    """

    name: str
    fields: Columns[Row]
    key: Callable[[Row], Any]
    document: Callable[[Row, float], dict[str, Any]] = record_document

    def columns(self, names: str, **layouts: Mapping[str, Any]) -> tuple[NounField[Row], ...]:
        """Return the fields of these names, separated by spaces, some with another layout."""
        known = {field.name: field for field in self.fields}
        return tuple(replace(known[name], **layouts.get(name, {})) for name in names.split())

    def filter(self, text: str) -> RowFilter[Row]:
        """Parse a filter such as `state:failed !leaf`; a field may be named by the beginning of its name."""
        return RowFilter(self, text, *parse_terms(text, self.filtered_by))

    @property
    def filtered_by(self) -> tuple[str, ...]:
        """The names of the fields that a filter may name."""
        return tuple(field.name for field in self.fields if field.matches is not None)

    def checked_filter(self, text: str) -> RowFilter[Row]:
        """Parse a filter that names only fields which rows have.

        Raises:
            UsageProblem: it names another one.
        """
        found = self.filter(text)
        if found.unknown:
            known = ", ".join(f"{name}:" for name in self.filtered_by)
            raise UsageProblem(
                f"{self.name}s have no field '{found.unknown[0]}:'", f"expected {known} or a word"
            )
        return found

    def order(self, name: str) -> Order[Row]:
        """Return the order by the field of a name, which has one."""
        return next(field.order for field in self.fields if field.name == name and field.order is not None)

    def ordered(self, rows: Iterable[Row], sorting: SortOrder[str], drawing: Drawing) -> list[Row]:
        """Sort rows by the field that `sorting` names; rows of one rank keep their order."""
        order = self.order(sorting.by)
        return sorted(rows, key=lambda row: order.rank(row, drawing), reverse=sorting.reversed)


@dataclass(frozen=True)
class RowFilter(Generic[Row]):
    """A filter of a noun's rows: `name:value` terms and free words, all of which must match; an empty one accepts all.

    Attributes:
        unknown: names of fields that don't exist; terms with them are ignored.
    """

    noun: Noun[Row]
    text: str = ""
    terms: tuple[FilterTerm, ...] = ()
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it has any terms."""
        return bool(self.terms)

    @cached_property
    def _named(self) -> dict[str, NounField[Row]]:
        return {field.name: field for field in self.noun.fields}

    @cached_property
    def _searched(self) -> Columns[Row]:
        """The fields in which free words are searched; none without such words."""
        has_words = any(not term.field for term in self.terms)
        return [field for field in self.noun.fields if field.words] if has_words else []

    def accepts(self, row: Row, drawing: Drawing) -> bool:
        """Return whether a row passes."""
        words = " ".join(text_of(field.cell(row, drawing)) for field in self._searched).lower()
        return all(
            (self._named[term.field].selects(row, term.value, drawing) if term.field else term.value in words)
            is not term.is_negated
            for term in self.terms
        )
