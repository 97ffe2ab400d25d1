"""Levenshtein distances of many pairs of texts at once, exact, without a loop over pairs or characters.

Equal ends are cut off, then all pairs advance together through the bit-parallel algorithm of Myers
(1999) in blocks: one 64-bit word per pair holds 64 rows of a column of the classical table.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Words = npt.NDArray[np.uint64]

_BITS = 64
_ONE = np.uint64(1)
_TOP = np.uint64(_BITS - 1)
_FULL = np.uint64(2**_BITS - 1)
_CODES = 0x110000  # Unicode code points
_BATCH = 1 << 22  # characters compared at a time, to bound the memory
_TABLE = 1 << 23  # 64-bit words that the masks of a batch may take


def edit_distances(truth: Sequence[str], predicted: Sequence[str]) -> Counts:
    """Per row the fewest insertions, deletions and substitutions of code points that make the texts equal."""
    distances = np.zeros(len(truth), dtype=np.int64)
    pairs = zip(truth, predicted, strict=True)
    rows = [row for row, (left, right) in enumerate(pairs) if left != right]
    sizes = np.array([len(truth[row]) + len(predicted[row]) for row in rows], dtype=np.int64)
    batches = np.cumsum(sizes) // _BATCH
    for start, end in _runs(batches):
        chosen = rows[start:end]
        texts = _joined([truth[row] for row in chosen] + [predicted[row] for row in chosen])
        distances[chosen] = _distances(
            texts.chosen(slice(len(chosen))), texts.chosen(slice(len(chosen), None))
        )
    return distances


def sequence_distances(truth: Sequence[Sequence[int]], predicted: Sequence[Sequence[int]]) -> Counts:
    """As `edit_distances`, for lists of numbers."""
    # one character per true number, and one for all others, since none of them is ever met
    characters = {number: chr(code) for code, number in enumerate({item for row in truth for item in row}, 1)}
    return edit_distances(
        *(
            ["".join(characters.get(number, "\0") for number in row) for row in side]
            for side in (truth, predicted)
        )
    )


def _runs(codes: Counts) -> list[tuple[int, int]]:
    edges = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    return [(start, end) for start, end in itertools.pairwise(edges) if start < end]


@dataclass(frozen=True)
class _Texts:
    """Many texts as places in one long array of characters."""

    characters: npt.NDArray[np.uint32]
    starts: Counts
    sizes: Counts

    def chosen(self, rows: Rows | slice) -> _Texts:
        return _Texts(self.characters, self.starts[rows], self.sizes[rows])

    def without(self, front: Counts, back: Counts) -> _Texts:
        return _Texts(self.characters, self.starts + front, self.sizes - front - back)


def _joined(texts: Sequence[str]) -> _Texts:
    sizes = np.array([len(text) for text in texts], dtype=np.int64)
    encoded = "".join(texts).encode("utf-32-le", "surrogatepass")
    return _Texts(np.frombuffer(encoded, dtype="<u4"), np.cumsum(sizes) - sizes, sizes)


def _placed(texts: _Texts) -> npt.NDArray[np.uint32]:
    """The characters of all the texts one after the other."""
    places = np.arange(int(texts.sizes.sum())) + np.repeat(_shift(texts), texts.sizes)
    characters: npt.NDArray[np.uint32] = texts.characters[places]
    return characters


def _shift(texts: _Texts) -> Counts:
    # what leads from a place in the texts joined without gaps to the place where the character lies
    return texts.starts - (np.cumsum(texts.sizes) - texts.sizes)


def _distances(left: _Texts, right: _Texts) -> Counts:
    none = np.zeros_like(left.sizes)
    front = _common(left, right, from_end=False)
    left, right = left.without(front, none), right.without(front, none)
    back = _common(left, right, from_end=True)
    left, right = left.without(none, back), right.without(none, back)
    swap = left.sizes > right.sizes
    short, long = (
        _Texts(left.characters, np.where(flags, right.starts, left.starts), sizes)
        for flags, sizes in (
            (swap, np.minimum(left.sizes, right.sizes)),
            (~swap, np.maximum(left.sizes, right.sizes)),
        )
    )
    distances = long.sizes.copy()  # what it is when nothing of the shorter text is left
    blocks = -(-short.sizes // _BITS)
    alphabet = int(np.count_nonzero(np.bincount(left.characters))) + 1
    for count in np.unique(blocks[blocks > 0]):
        rows = np.flatnonzero(blocks == count)
        rows = rows[np.argsort(-long.sizes[rows], kind="stable")]
        step = max(1, _TABLE // (alphabet * int(count)))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            distances[part] = _advance(short.chosen(part), long.chosen(part), int(count))
    return distances


def _common(left: _Texts, right: _Texts, *, from_end: bool) -> Counts:
    """How many characters each pair has in common at one end."""
    shared = np.minimum(left.sizes, right.sizes)
    ends = np.cumsum(shared)
    if from_end:
        # read backwards over all pairs, so that a pair's last character is the first one met
        left, right = (
            _Texts(side.characters, side.starts + side.sizes - shared, shared) for side in (left, right)
        )
        misses = ends[-1] - 1 - np.flatnonzero(_placed(left) != _placed(right))[::-1]
        firsts, lasts = ends[-1] - ends, ends[-1] - ends + shared
    else:
        left, right = (_Texts(side.characters, side.starts, shared) for side in (left, right))
        misses = np.flatnonzero(_placed(left) != _placed(right))
        firsts, lasts = ends - shared, ends
    found = np.append(misses, np.iinfo(np.int64).max)[np.searchsorted(misses, firsts)]
    common: Counts = np.minimum(found, lasts) - firsts
    return common


def _matches(pattern: _Texts, text: _Texts, blocks: int) -> tuple[Words, Rows]:
    """Bit masks of where each character of the alphabet stands in each pattern, and the mask of each text character.

    Characters that no pattern has share one mask, which is empty.
    """
    inside, outside = _placed(pattern), _placed(text)
    alphabet = np.flatnonzero(np.bincount(inside))
    codes = np.zeros(_CODES, dtype=np.intp)
    codes[alphabet] = np.arange(1, len(alphabet) + 1)
    width = len(alphabet) + 1
    masks = np.zeros((len(pattern.sizes) * width, blocks), dtype=np.uint64)
    owners = np.repeat(np.arange(len(pattern.sizes)) * width, pattern.sizes)
    places = np.arange(len(inside)) - np.repeat(np.cumsum(pattern.sizes) - pattern.sizes, pattern.sizes)
    bits = _ONE << (places % _BITS).astype(np.uint64)
    np.bitwise_or.at(masks, (owners + codes[inside], places // _BITS), bits)
    return masks, np.repeat(np.arange(len(text.sizes)) * width, text.sizes) + codes[outside]


def _advance(pattern: _Texts, text: _Texts, blocks: int) -> Counts:
    """The distances of pairs whose patterns all take so many blocks; longer texts stand first."""
    masks, found = _matches(pattern, text, blocks)
    starts = np.cumsum(text.sizes) - text.sizes
    rising = np.full((blocks, len(starts)), _FULL)  # rows of the table where it rises by one downwards
    falling = np.zeros((blocks, len(starts)), dtype=np.uint64)
    last = ((pattern.sizes - 1) % _BITS).astype(np.uint64)
    distances = pattern.sizes.copy()
    active = np.searchsorted(-text.sizes, -np.arange(int(text.sizes.max())), side="left")
    for place, count in enumerate(active.tolist()):
        matching = masks[found[starts[:count] + place]]
        up, down = np.ones(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64)
        for block in range(blocks):
            plus, minus = rising[block, :count], falling[block, :count]
            equal = matching[:, block]
            vertical = equal | minus
            equal = equal | down
            diagonal = (((equal & plus) + plus) ^ plus) | equal
            above = minus | ~(diagonal | plus)
            below = plus & diagonal
            if block == blocks - 1:
                shift = last[:count]
                distances[:count] += ((above >> shift) & _ONE).astype(np.int64)
                distances[:count] -= ((below >> shift) & _ONE).astype(np.int64)
            next_up, next_down = above >> _TOP, below >> _TOP
            above, below = above << _ONE | up, below << _ONE | down
            rising[block, :count] = below | ~(vertical | above)
            falling[block, :count] = above & vertical
            up, down = next_up, next_down
    return distances
