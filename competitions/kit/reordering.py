"""Rows of CSV text that come in one order and are written in another; it knows neither columns nor cells.

They wait on the disk in pieces, each of which goes before its rows are written: together they never
take more than what comes of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from competitions.kit.splits import Positions

_PIECE = 64 << 20  # bytes, about, of which one is held in memory
_MOST_PIECES = 256  # files open at a time
_QUOTE, _NEWLINE = 34, 10

Places = npt.NDArray[np.integer[Any]]
Add = Callable[[bytes, Places], object]
"""Takes rows, and the place of each among all that are written."""


@contextmanager
def writer(order: Positions, size: int, target: IO[bytes], scratch: Path) -> Iterator[Add]:
    """Take rows that come by number and write them in an order of their own, at the latest in the end.

    Args:
        order: the numbers of the rows in the order in which they are written.
        size: how many bytes they have, about.
        target: an open file.
        scratch: a folder for the pieces.
    """
    if (order[1:] > order[:-1]).all():
        yield lambda rows, _: target.write(rows)
        return
    count = min(max(size // _PIECE, 1), _MOST_PIECES)
    share = -(-len(order) // count)
    paths = [scratch / f"rows-{number}" for number in range(-(-len(order) // share))]
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("xb")) for path in paths]
        yield lambda rows, places: _spread(rows, places // share, files)
    for number, path in enumerate(paths):
        rows = _separated(path.read_bytes())
        path.unlink()
        came = order[number * share : (number + 1) * share]
        ranks = np.argsort(np.argsort(came))  # in its piece a row stands where it stood among those that came
        target.write(b"".join(map(rows.__getitem__, ranks.tolist())))


def _spread(text: bytes, pieces: Places, files: Sequence[IO[bytes]]) -> None:
    rows = _separated(text)
    order = np.argsort(pieces, kind="stable")
    edges = np.searchsorted(pieces[order], np.arange(len(files) + 1)).tolist()
    numbers = order.tolist()
    for file, (first, end) in zip(files, itertools.pairwise(edges), strict=True):
        file.write(b"".join(map(rows.__getitem__, numbers[first:end])))


def _separated(text: bytes) -> list[bytes]:
    """The rows one by one; a line that ends within quotes is not the end of its row."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == _NEWLINE)
    if b'"' in text:
        quotes = np.flatnonzero(letters == _QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    edges = [0, *(ends + 1).tolist()]
    return [text[first:end] for first, end in itertools.pairwise(edges)]
