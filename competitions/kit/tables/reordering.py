"""Rows of CSV text that come in one order and are written in another; it knows neither columns nor cells.

They wait on the disk in pieces, each of which goes before its rows are written: together they never
take more than what comes of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from competitions.kit.splits import Positions
from competitions.kit.tables.in_turn import in_turn

_PIECE = 16 << 20  # bytes, about, of which a few are held in memory
_MOST_PIECES = 256  # files open at a time
_MOST_FILLING = 2  # times the text that may be taken for it
_ROWS = 1 << 14  # at a time
_QUOTE, _NEWLINE = 34, 10

Places = npt.NDArray[np.integer[Any]]
Add = Callable[[int, bytes, Places], object]
"""Takes some rows: the least of their numbers, their text by their places, and these places among all that are written.

From call to call the numbers go up.
"""


@contextmanager
def writer(order: Positions, size: int, target: IO[bytes], scratch: Path) -> Iterator[Add]:
    """Take rows that come by number and write them in an order of their own, at the latest in the end.

    If it does not come to that end, nothing is written unless the order is that in which they come.

    Args:
        order: the numbers of the rows in the order in which they are written.
        size: how many bytes they have, about.
        target: an open file.
        scratch: a folder for the pieces.
    """
    if keeps(order):
        yield lambda _, rows, __: target.write(rows)
        return
    count = min(max(size // _PIECE, 1), _MOST_PIECES)
    share = -(-len(order) // count)
    paths = [scratch / f"rows-{number}" for number in range(-(-len(order) // share))]
    firsts: list[int] = []
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(path.open("xb")) for path in paths]

            def add(first: int, rows: bytes, places: Places) -> None:
                firsts.append(first)
                for file, part in zip(files, _parts(rows, places, share, len(files)), strict=True):
                    file.write(part)

            yield add
        came = (order[number * share : (number + 1) * share] for number in range(len(paths)))
        jobs = (partial(_taken, *piece, np.array(firsts)) for piece in zip(paths, came, strict=True))
        for path, text in zip(paths, in_turn(jobs), strict=True):
            path.unlink()
            target.write(text)
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def keeps(order: Positions) -> bool:
    """Whether it is the order in which the rows come."""
    return bool((order[1:] > order[:-1]).all())


def _parts(text: bytes, places: Places, share: int, count: int) -> Iterator[memoryview]:
    """The rows of each piece, which follow one another."""
    firsts = np.searchsorted(places, np.arange(count + 1) * share)
    edges = np.append(0, _ends(text))[firsts].tolist()
    view = memoryview(text)
    return (view[first:end] for first, end in itertools.pairwise(edges))


def _taken(path: Path, numbers: Positions, firsts: Positions) -> bytes:
    """The rows of a piece in the order of these numbers."""
    text = path.read_bytes()
    # in the piece they stand call by call, and in each call by their places, as the numbers do here
    came = np.argsort(np.searchsorted(firsts, numbers, side="right"), kind="stable")
    ends = _ends(text)
    starts = np.append(0, ends[:-1])
    edges = np.empty((2, len(came)), dtype=np.intp)
    edges[:, came] = starts, ends
    return _joined(text, *edges)


def _joined(text: bytes, starts: Positions, ends: Positions) -> bytes:
    """Stretches of a text one behind the other."""
    lengths = ends - starts
    width = int(lengths.max(initial=1))
    if width * len(lengths) > _MOST_FILLING * len(text):
        return b"".join([text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])
    # Where they are about equally long, numpy takes them as if all were as long as the longest and leaves out what
    # is too much: it is twice as fast, and four times in two threads, as it leaves the interpreter free.
    letters = np.frombuffer(text + bytes(width), dtype=np.uint8)
    from_each_place = np.ndarray(len(text) + 1, dtype=f"V{width}", buffer=letters, strides=(1,))
    places = np.arange(width)
    found = []
    for first in range(0, len(lengths), _ROWS):
        rows = slice(first, first + _ROWS)
        wide = from_each_place[starts[rows]].view(np.uint8).reshape(-1, width)
        found.append(wide[places < lengths[rows, None]].tobytes())
    return b"".join(found)


def _ends(text: bytes) -> Positions:
    """Where each row ends; a line that ends within quotes is not the end of its row."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == _NEWLINE) + 1
    if b'"' in text:
        quotes = np.flatnonzero(letters == _QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return ends
