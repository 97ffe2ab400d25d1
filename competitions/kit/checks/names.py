"""Cells of names separated by blanks, taken apart as bytes and numbered, millions at once.

What the names mean is for others to know: labels are in `labels`, orders in `sequences`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from competitions.kit.checks import spellings
from competitions.kit.checks.spellings import Positions, Spellings, Words

_BLANK, _BREAK = 0x20, 0x0A
_SHORT = 64  # bytes; longer names are rare, and compared one by one


@dataclass(frozen=True)
class Names:
    """The names of all rows, one after another.

    Attributes:
        row: the row of each.
        sizes: how many each row has.
        spelt: their bytes.
    """

    row: Positions
    sizes: Positions
    spelt: Spellings

    @property
    def place(self) -> Positions:
        """The place of each in its row."""
        first = np.cumsum(self.sizes) - self.sizes
        return np.arange(len(self.row)) - first[self.row]


def split(cells: pd.Series) -> Names:
    """The names in each cell; any white space stands between names, and a missing cell is an empty one."""
    cells = _as_text(cells)
    content = spellings.joined(cells)
    if int((content < _BLANK).sum()) != max(len(cells) - 1, 0) or bool((content > 0x7E).any()):
        # Breaks inside of cells, and blanks beyond ASCII, which are slower to tell from names.
        plain = [" ".join(cell.split()) for cell in cells.tolist()]
        content = spellings.joined(pd.Series(plain, dtype="str"))
    # names stand in the gaps between blanks and breaks; a gap of no width holds none
    marks = np.flatnonzero(content <= _BLANK)
    starts, ends = np.append(-1, marks) + 1, np.append(marks, len(content))
    row = np.append(0, np.cumsum(content[marks] == _BREAK))
    if bool((ends == starts).any()):
        held = ends > starts
        starts, ends, row = starts[held], ends[held], row[held]
    sizes = np.bincount(row, minlength=len(cells))
    return Names(row=row, sizes=sizes, spelt=Spellings(content, starts, ends - starts))


def _as_text(cells: pd.Series) -> pd.Series:
    if isinstance(cells.dtype, pd.StringDtype):
        return cells.fillna("") if cells.hasnans else cells
    return pd.Series(["" if pd.isna(cell) else str(cell) for cell in cells.tolist()], dtype="str")


def numbered(*sides: Names) -> list[Positions]:
    """A number for each name of each side, the same one for equal names and no other."""
    lengths = np.concatenate([side.spelt.lengths for side in sides])
    longest = min(max(side.spelt.longest for side in sides), _SHORT)
    parts = zip(*(side.spelt.words(max(longest, 1)) for side in sides), strict=True)
    codes, found = _distinct([np.concatenate(words) for words in parts])
    if (lengths > longest).any():
        long = [np.flatnonzero(side.spelt.lengths > longest) for side in sides]
        spelt = [name for side, which in zip(sides, long, strict=True) for name in side.spelt.bytes_of(which)]
        codes[lengths > longest] = found + pd.factorize(np.array(spelt, dtype=object))[0]
    edges = np.cumsum([len(side.row) for side in sides])[:-1]
    return np.split(codes, edges)


def _distinct(columns: list[Words]) -> tuple[Positions, int]:
    # one word is its own number; several are mixed into one, which might be another name's too
    codes, keys = pd.factorize(columns[0] if len(columns) == 1 else spellings.mixed(columns))
    codes = np.asarray(codes, dtype=np.intp)
    first = np.zeros(len(keys), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    if len(columns) == 1 or all((column == column[first][codes]).all() for column in columns):
        return codes, len(keys)
    rows, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return np.asarray(codes, dtype=np.intp).ravel(), len(rows)
