"""Lines as data: pieces of text with roles, and how they are fitted to a width in cells."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from rich.cells import cell_len, set_cell_size

from mlebench_console.console.roles import Piece, Pieces, Signs
from mlebench_console.console.sanitize import Clean, plain

Part = TypeVar("Part", bound=Hashable)
# How much is shown of the end of a name that begins like others.
_NAMES_END = 7
# What text ends in that has more lines than are shown, and the least width of its lines.
_DOTS = " ..."
_NARROWEST = 8
# As many lines as a text may have where their number is not limited.
_MANY_LINES = 1000


@dataclass(frozen=True)
class ColumnSpan:
    """The cells that a column takes on a line.

    Attributes:
        by: the sort order that a click on its title selects; none if empty.
        selectable: whether the cursor may choose it on this line; other columns keep their index nevertheless.
        name: where the name of its item begins; a line may hold several items beside one another.
    """

    begin: int
    end: int
    by: str = ""
    selectable: bool = True
    name: int = 1

    @property
    def width(self) -> int:
        """The number of cells it takes."""
        return self.end - self.begin


@dataclass(frozen=True)
class Line:
    """One line of a list.

    Attributes:
        key: identifies the line's item; the cursor and marks stay with it when lines change.
        cells: in a row the columns that the cursor may choose, in a heading those that a click sorts by.
        selectable: whether the cursor may be on it.
    """

    pieces: Pieces = ()
    key: Hashable = None
    cells: tuple[ColumnSpan, ...] = ()
    selectable: bool = False

    def sorts_by(self, place: int) -> str:
        """Return the sort order that a click at a cell of this heading selects; empty if none."""
        if self.selectable:
            return ""
        return next((cell.by for cell in self.cells if cell.begin <= place < cell.end), "")


def fit(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """Pad or cut trusted text to exactly `width` cells, with an ellipsis where it is cut."""
    if width <= 0:
        return ""
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + ellipsis
    return " " * (width - length) + text if right else text + " " * (width - length)


def foreign(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """Sanitise one line of untrusted text, and pad or cut it to exactly `width` cells."""
    return fit(plain(text.replace("\n", " "), limit=4 * max(1, width)), width, right=right, ellipsis=ellipsis)


def foreign_end(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Sanitise one line of untrusted text and cut its beginning to at most `width` cells: a path keeps its end."""
    harmless = plain(text[-4 * max(1, width) :].replace("\n", " "))
    if cell_len(harmless) <= width:
        return harmless
    while harmless and cell_len(harmless) > width - 1:
        harmless = Clean(harmless[1:])
    return (ellipsis + harmless)[:width]


def told_apart(name: str, others: Sequence[str], shortest: int, ellipsis: str) -> list[str]:
    """Return a name in full and in shorter forms, down to a width; names that begin alike lose their middle.

    Their ends are what makes them differ, such as dates.
    """
    if sum(other[: shortest - 1] == name[: shortest - 1] for other in others) < 2:
        return [name]
    begin, end = name[:-_NAMES_END], name[-_NAMES_END:]
    widths = range(len(begin) - 1, shortest - _NAMES_END - 2, -1)
    return [name, *(f"{begin[:cells]}{ellipsis}{end}" for cells in widths)]


def distinct_names(names: Iterable[str], width: int, ellipsis: str = "…") -> dict[str, str]:
    """Sanitise names and cut them to `width` cells; those that would read the same lose their middle, not their end."""
    whole = {name: plain(name.replace("\n", " "), limit=4 * max(1, width)) for name in names}
    short = {
        name: text if cell_len(text) <= width else fit(text, width, ellipsis=ellipsis)
        for name, text in whole.items()
    }
    alike: dict[str, list[str]] = {}
    for name, text in short.items():
        alike.setdefault(text, []).append(name)
    for same in alike.values():
        if len(same) == 1:
            continue
        beside = enumerate(zip(*(whole[name] for name in same), strict=False))
        begin = next((place for place, letters in beside if len(set(letters)) > 1), 0)
        while begin and whole[same[0]][begin - 1].isalnum():
            begin -= 1
        for name in same:
            rest = whole[name][begin:]
            end = fit(rest, min(cell_len(rest), width // 2), ellipsis=ellipsis)
            short[name] = fit(whole[name], width - cell_len(end), ellipsis=ellipsis) + end
    return short


def foreign_path(path: str, width: int, *, ellipsis: str = "…") -> str:
    """Sanitise a path and cut it to at most `width` cells: the name of the file is kept, then the folders next to it.

    A cut path begins as the whole one does, as far as there is room; a name that is too long is cut in its middle.
    """
    whole = plain(path.replace("\n", " "))
    if cell_len(whole) <= width:
        return whole
    *folders, name = whole.split("/")
    kept = name
    while folders and cell_len(longer := f"{folders[-1]}/{kept}") <= width - cell_len(ellipsis) - 1:
        kept = longer
        folders.pop()
    if kept == name and folders and cell_len(name) < width - 1:
        # The end of the folder's name tells more than the root.
        return foreign_end(whole, width, ellipsis=ellipsis)
    if cell_len(kept) < width - cell_len(ellipsis):
        begin = set_cell_size(whole, width - cell_len(kept) - cell_len(ellipsis) - 1).rstrip()
        return f"{begin.rpartition('/')[0]}/{ellipsis}/{kept}" if "/" in begin else f"{ellipsis}/{kept}"
    ahead = (width - cell_len(ellipsis)) // 2
    return f"{set_cell_size(kept, ahead)}{foreign_end(kept, width - ahead, ellipsis=ellipsis)}"


def width_of(pieces: Iterable[Piece]) -> int:
    """Return the width of pieces in cells."""
    return sum(cell_len(text) for text, _role in pieces)


def spread(left: Pieces, right: Pieces, width: int) -> Pieces:
    """Align pieces to both ends of a line; the left ones are cut if there is no room."""
    room = width - width_of(right)
    if room < 1:
        return cut(right, width)
    left = cut(left, room - 1)
    return (*left, (" " * (room - width_of(left)), "text"), *right)


def spread_fitting(lefts: Sequence[Pieces], rights: Sequence[Pieces], width: int) -> Pieces:
    """Align pieces to both ends of a line in the longest forms that fit; forms are given longest first.

    The left end is shortened before the right one; text is cut only where even the shortest forms are too long.
    """
    for right in rights:
        for left in lefts:
            if width_of(left) + width_of(right) < width:
                return spread(left, right, width)
    return spread(lefts[-1], rights[-1], width)


def fitting(forms: Sequence[Pieces], width: int) -> Pieces:
    """Return the longest form that fits a width; the last one is cut if none fits."""
    return next((form for form in forms if width_of(form) <= width), cut(forms[-1], width))


def beside(
    columns: Sequence[Sequence[Pieces]], widths: Sequence[int], between: Piece = ("  ", "text")
) -> list[Pieces]:
    """Put columns of lines beside each other, each cut and padded to its width."""
    lines: list[Pieces] = []
    for row in zip_longest(*columns, fillvalue=()):
        line: Pieces = ()
        for pieces, width in zip(row, widths, strict=True):
            shown = cut(pieces, width)
            padding: Piece = (" " * (width - width_of(shown)), "text")
            line = (*line, between, *shown, padding) if line else (*shown, padding)
        lines.append(line)
    return lines


def joined(groups: Iterable[Pieces], between: Piece, width: int) -> Pieces:
    """Join groups of pieces with a separator; groups that don't fit are left out as a whole."""
    made: Pieces = ()
    for group in groups:
        longer = (*made, between, *group) if made else group
        if width_of(longer) <= width:
            made = longer
    return made


def cut(pieces: Pieces, width: int, ellipsis: str = "") -> Pieces:
    """Cut pieces to a width, with the ellipsis, if given, at the cut."""
    if ellipsis and width_of(pieces) > width > 0:
        return (*cut(pieces, width - 1), (ellipsis, "dim"))
    kept: list[Piece] = []
    for text, role in pieces:
        length = cell_len(text)
        if length > width:
            if width > 0:
                kept.append((set_cell_size(text, width), role))
            break
        kept.append((text, role))
        width -= length
    return tuple(kept)


def heading(title: str, width: int, signs: Signs, *, note: str = "") -> Pieces:
    """Return a horizontal rule with a title in it, which separates the sections of a screen."""
    before: Pieces = ((f" {signs.rule}{signs.rule} ", "faint"), (title, "dim"), (" ", "faint"))
    after: Pieces = ((f" {note} ", "dim"),) if note else ()
    room = width - width_of(before) - width_of(after) - 1
    return (*before, (signs.rule * max(0, room), "faint"), *after)


def bar(share: float, width: int, signs: Signs) -> tuple[str, str]:
    """Return the filled and the empty part of a bar, drawn in eighths of a cell."""
    share = min(1.0, max(0.0, share))
    parts = len(signs.bar_parts)
    eighths = int(share * width * parts)
    full, rest = divmod(eighths, parts)
    drawn = signs.bar_full * full + (signs.bar_parts[rest] if rest else "")
    return drawn, signs.bar_empty * (width - len(drawn))


def shared_out(counts: Mapping[Part, int], width: int) -> dict[Part, int]:
    """Divide the cells of a bar among parts in proportion to their counts, at least one for each non-zero count.

    The last parts are left out where there are more of them than cells.
    """
    parts = {part: count for part, count in counts.items() if count > 0}
    parts = dict(list(parts.items())[: max(0, width)])
    total = sum(parts.values())
    cells = {part: max(1, count * width // total) for part, count in parts.items()}
    # Rounding differences go to the part that is furthest from its exact share.
    while parts and (spare := width - sum(cells.values())):
        step = 1 if spare > 0 else -1
        able = [part for part in parts if step > 0 or cells[part] > 1]
        nearest = max(able, key=lambda part: step * (parts[part] * width / total - cells[part]))
        cells[nearest] += step
    return cells


def cells_of(text: str, width: int, *, is_stripped: bool = False) -> list[str]:
    """Split text into pieces of at most `width` cells, after spaces or slashes if possible; no character is lost.

    Where pieces are stripped afterwards, a space that ends one may be beyond the width.
    """
    made = []
    while cell_len(text) > width:
        size, end = 0, 0
        while size + cell_len(text[end]) <= width:
            size += cell_len(text[end])
            end += 1
        end = (
            text.rfind(" ", width // 2, end + is_stripped) + 1 or text.rfind("/", width // 2, end) + 1 or end
        )
        made.append(text[:end])
        text = text[end:]
    return [*made, text]


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Break text into lines of at most `width` cells; where there are more than `most`, the last one ends in dots."""
    # A list that has not got its width yet has less room than the dots need.
    width = max(_NARROWEST, width)
    parts = [part.rstrip() for part in cells_of(text, width, is_stripped=True)]
    if len(parts) <= most:
        return parts
    last = parts[most - 1]
    return [
        *parts[: most - 1],
        f"{set_cell_size(last, min(cell_len(last), width - len(_DOTS))).rstrip()}{_DOTS}",
    ]


def foreign_lines(text: str, width: int, most: int = _MANY_LINES) -> list[str]:
    """Sanitise untrusted text and break it into lines as `wrapped` does; empty text has none."""
    harmless = plain(text.replace("\n", " ").strip(), limit=(most + 1) * max(_NARROWEST, width))
    return wrapped(harmless, width, most) if harmless else []
