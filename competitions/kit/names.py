"""Cells of names separated by blanks, taken apart as bytes and numbered, millions at once.

What the names mean is for others to know: labels are in `labels`, orders in `sequences`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.kit import spellings
from competitions.kit.spellings import Positions, Spellings, Words

_BLANK, _BREAK = 0x20, 0x0A
_SHORT = 64  # bytes; longer names are rare, and compared one by one


@dataclass(frozen=True)
class Names:
    """The names of all rows, one after another.

    Attributes:
        row: the row of each.
        place: its place in the row.
        sizes: how many each row has.
        spelt: their bytes.
    """

    row: Positions
    place: Positions
    sizes: Positions
    spelt: Spellings


def split(cells: pd.Series) -> Names:
    """The names in each cell; any white space stands between names, and a missing cell is an empty one."""
    cells = _as_text(cells)
    content = spellings.joined(cells)
    if int((content < _BLANK).sum()) != max(len(cells) - 1, 0) or bool((content > 0x7E).any()):
        # Breaks inside of cells, and blanks beyond ASCII, which are slower to tell from names.
        plain = [" ".join(cell.split()) for cell in cells.tolist()]
        content = spellings.joined(pd.Series(plain, dtype="str"))
    edges = _edges(content > _BLANK)
    starts, ends = edges[::2], edges[1::2]
    bounds = np.searchsorted(starts, np.flatnonzero(content == _BREAK))
    bounds = np.concatenate([[0], bounds, [len(starts)]]) if len(cells) else np.zeros(1, dtype=np.intp)
    sizes = np.diff(bounds)
    return Names(
        row=np.repeat(np.arange(len(cells)), sizes),
        place=np.arange(len(starts)) - np.repeat(bounds[:-1], sizes),
        sizes=sizes,
        spelt=Spellings(content, starts, ends - starts),
    )


def _as_text(cells: pd.Series) -> pd.Series:
    if isinstance(cells.dtype, pd.StringDtype):
        return cells.fillna("") if cells.hasnans else cells
    return pd.Series(["" if pd.isna(cell) else str(cell) for cell in cells.tolist()], dtype="str")


def _edges(inside: npt.NDArray[np.bool_]) -> Positions:
    """Where stretches of true begin and end, in turn."""
    changes = np.empty(len(inside) + 1, dtype=np.bool_)
    changes[[0, -1]] = (inside[0], inside[-1]) if len(inside) else False
    np.not_equal(inside[1:], inside[:-1], out=changes[1:-1])
    return np.flatnonzero(changes)


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
