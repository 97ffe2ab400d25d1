"""Cells that hold an order of names, separated by blanks: the true and a given order of the same names compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from competitions.kit import matching
from competitions.task import InvalidSubmission

Positions = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

_BLANK, _BREAK = 0x20, 0x0A
_WORD = 8
_MIXERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_SHIFT = np.uint64(29)


@dataclass(frozen=True)
class _Names:
    """The names of all rows, one after another.

    Attributes:
        row: the row of each.
        place: its place in the row.
        sizes: how many each row has.
        content: the bytes of all cells.
        starts: where in them each name starts.
        lengths: how many bytes it has.
    """

    row: Positions
    place: Positions
    sizes: Positions
    content: Bytes
    starts: Positions
    lengths: Positions


def ranks(
    truth: Sequence[str], given: Sequence[str], column: str, rows: Positions
) -> tuple[Positions, Positions]:
    """The true rank of each given name, row after row, and the number of names of each row.

    Args:
        truth: the true orders, in which no name stands twice.
        given: for each of them an order of the same names.
        column: what the messages call the column.
        rows: the submission's row that each given order is from.
    """
    wanted, told = _split(truth), _split(given)
    unequal = wanted.sizes != told.sizes
    if unequal.any():
        row = int(np.argmax(unequal))
        raise InvalidSubmission(
            f"Row {rows[row] + 1}: {column} holds {told.sizes[row]} names, expected {wanted.sizes[row]}."
        )
    longest = int(wanted.lengths.max(initial=1))
    _refuse(told.lengths > longest, told, column, rows)
    columns = [[side.row.astype(np.uint64), *_words(side, longest)] for side in (wanted, told)]
    orders = [np.argsort(_mixed(side)) for side in columns]
    if any((one[orders[0]] != two[orders[1]]).any() for one, two in zip(*columns, strict=True)):
        true_codes, codes = matching.codes(*map(tuple, columns))
        known = np.bincount(true_codes, minlength=int(codes.max()) + 1)
        _refuse(known[codes] != np.bincount(codes)[codes], told, column, rows)
        orders = [np.argsort(true_codes), np.argsort(codes)]
    found = np.empty(len(told.row), dtype=np.intp)
    found[orders[1]] = wanted.place[orders[0]]
    return found, wanted.sizes


def _refuse(strange: npt.NDArray[np.bool_], told: _Names, column: str, rows: Positions) -> None:
    if strange.any():
        row = rows[told.row[int(np.argmax(strange))]] + 1
        raise InvalidSubmission(
            f"Row {row}: {column} must hold every name of its own exactly once, and no other."
        )


def _split(cells: Sequence[str]) -> _Names:
    content = _encoded(cells)
    if int((content < _BLANK).sum()) != len(cells) - 1 or bool((content > 0x7E).any()):
        # Breaks inside of cells, and blanks beyond ASCII, which are slower to tell from names.
        content = _encoded([" ".join(cell.split()) for cell in cells])
    edges = np.flatnonzero(np.diff(content > _BLANK, prepend=False, append=False))
    starts, ends = edges[::2], edges[1::2]
    bounds = np.searchsorted(starts, np.flatnonzero(content == _BREAK))
    bounds = np.concatenate([[0], bounds, [len(starts)]])
    sizes = np.diff(bounds)
    return _Names(
        row=np.repeat(np.arange(len(cells)), sizes),
        place=np.arange(len(starts)) - np.repeat(bounds[:-1], sizes),
        sizes=sizes,
        content=content,
        starts=starts,
        lengths=ends - starts,
    )


def _encoded(cells: Sequence[str]) -> Bytes:
    return np.frombuffer("\n".join(cells).encode("utf-8", "surrogatepass"), dtype=np.uint8)


def _words(names: _Names, longest: int) -> list[Words]:
    """The bytes of each name, eight to a column, filled up with NUL."""
    content = np.append(names.content, np.zeros(_WORD, dtype=np.uint8))
    at_each_byte = np.ndarray(len(content) - _WORD + 1, dtype="<u8", buffer=content, strides=(1,))
    masks = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], dtype=np.uint64)
    words = []
    for offset in range(0, longest, _WORD):
        left = np.clip(names.lengths - offset, 0, _WORD)
        words.append(at_each_byte[np.where(left > 0, names.starts + offset, 0)] & masks[left])
    return words


def _mixed(columns: list[Words]) -> Words:
    """Numbers that hardly ever are equal where rows or names differ; sorting one column is much faster."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column, mixer in zip(columns, _MIXERS * len(columns), strict=False):
        mixed = (mixed ^ (mixed >> _SHIFT) ^ column) * mixer
    return mixed
