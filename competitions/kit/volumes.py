"""Solids as stacks of run-length masks, and their exact Hausdorff distance; no voxel is ever painted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from competitions.kit.matching import ranks

Whole = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

_PAIRS = 1 << 22  # distances computed at a time: bounds the memory


@dataclass(frozen=True)
class Solids:
    """Solids as straight strokes of voxels, none of them touched by two.

    Attributes:
        solid: which solid each stroke belongs to.
        layer: the index of its slice.
        line: the index of the line in the slice that it lies on.
        first: the index of its first voxel on the line.
        last: the index of its last voxel.
    """

    solid: Whole
    layer: Whole
    line: Whole
    first: Whole
    last: Whole

    def take(self, which: npt.NDArray[Any]) -> Solids:
        """Some of the strokes."""
        return Solids(*(field[which] for field in self._fields()))

    def voxels(self, solids: int) -> Whole:
        """How many voxels each of so many solids has."""
        return np.bincount(self.solid, weights=self.last - self.first + 1, minlength=solids).astype(np.int64)

    def _fields(self) -> tuple[Whole, Whole, Whole, Whole, Whole]:
        return self.solid, self.layer, self.line, self.first, self.last

    def sorted(self) -> Solids:
        """The strokes by solid, layer, line and place."""
        return self.take(np.lexsort((self.first, self.line, self.layer, self.solid)))


def strokes(solid: Whole, layer: Whole, start: Whole, stop: Whole, line_length: Whole) -> Solids:
    """Runs over a slice's pixels, line after line, cut into strokes; runs of a slice may overlap, which joins them."""
    order = np.lexsort((start, layer, solid))
    solid, layer, start, stop, line_length = (
        field[order] for field in (solid, layer, start, stop, line_length)
    )
    new_slice = np.concatenate([[True], (solid[1:] != solid[:-1]) | (layer[1:] != layer[:-1])])[: len(start)]
    # One numbering for all slices makes "the furthest pixel so far" never reach into the next slice.
    offset = (np.cumsum(new_slice) - 1) * (int(stop.max(initial=0)) + 1)
    reached = np.maximum.accumulate(stop + offset)
    opens = new_slice | np.concatenate([[True], (start + offset)[1:] > reached[:-1]])[: len(start)]
    firsts = np.flatnonzero(opens)
    ends = np.append(firsts[1:], len(start))[: len(firsts)] - 1
    solid, layer, start, line_length = solid[firsts], layer[firsts], start[firsts], line_length[firsts]
    stop = (reached - offset)[ends]
    lines = (stop - 1) // line_length - start // line_length + 1
    run = np.repeat(np.arange(len(start)), lines)
    line = start[run] // line_length[run] + (np.arange(len(run)) - np.repeat(np.cumsum(lines) - lines, lines))
    base = line * line_length[run]
    first = np.maximum(start[run] - base, 0)
    last = np.minimum(stop[run] - base, line_length[run]) - 1
    return Solids(solid[run], layer[run], line, first, last)


def hausdorff(one: Solids, other: Solids, scale: Numbers) -> Numbers:
    """Per solid the largest distance from a voxel of either side to the nearest voxel of the other side.

    Both sides must have voxels of every solid that either has; a solid without any has 0.

    Args:
        one: the strokes of one side.
        other: those of the other side.
        scale: per solid the distances between neighbouring layers, lines, and voxels of a line.
    """
    one, other = one.sorted(), other.sorted()
    squared = np.maximum(_directed(one, other, scale), _directed(other, one, scale))
    return np.asarray(np.sqrt(squared), dtype=np.float64)


def _directed(near: Solids, far: Solids, scale: Numbers) -> Numbers:
    """Per solid the square of the largest distance from `near` to `far`, by bounds.

    Every stroke's distance is bounded from above, by its farther end, and from below, by its ends.
    Only strokes whose upper bound beats the solid's best lower bound are looked at again, halved.
    """
    best = np.zeros(len(scale))
    open_ = _minus(near, far)
    bound = np.full(len(open_.solid), np.inf)
    most = 4
    while len(bound):
        order = np.lexsort((-bound, open_.solid))
        chosen = order[ranks(open_.solid[order]) < most]
        rest = np.ones(len(bound), dtype=bool)
        rest[chosen] = False
        tried = open_.take(chosen)
        upper, lower = _bounds(tried, bound[chosen], far, scale)
        np.maximum.at(best, tried.solid, lower)
        halves = _halved(tried, upper)
        open_, bound = _joined((open_.take(rest), bound[rest]), halves)
        alive = bound > best[open_.solid]
        open_, bound = open_.take(alive), bound[alive]
        most = min(2 * most, 256)
    return best


def _bounds(tried: Solids, known: Numbers, far: Solids, scale: Numbers) -> tuple[Numbers, Numbers]:
    """The squares of an upper and of a lower bound of each stroke's distance to the other side."""
    # Layers of all solids in one ascending numbering; what is nearer than a known bound is not far off in it.
    step = int(max(tried.layer.max(initial=0), far.layer.max(initial=0))) + 1
    height = far.solid * (2 * step) + far.layer
    layers = np.minimum(np.sqrt(known) / scale[tried.solid, 0], step) // 1
    own = tried.solid * (2 * step) + tried.layer
    low = np.searchsorted(height, own - layers, side="left")
    high = np.searchsorted(height, own + layers, side="right")
    upper, lower = np.empty(len(own)), np.empty(len(own))
    before = np.concatenate([[0], np.cumsum(high - low)])
    done = 0
    while done < len(own):
        end = max(int(np.searchsorted(before, before[done] + _PAIRS, side="right")) - 1, done + 1)
        part = np.arange(done, end)
        left = np.repeat(part, (high - low)[part])
        right = low[left] + np.arange(before[done], before[end]) - before[left]
        steps = scale[tried.solid[left]]
        sideways = ((tried.layer[left] - far.layer[right]) * steps[:, 0]) ** 2
        sideways += ((tried.line[left] - far.line[right]) * steps[:, 1]) ** 2
        first, last = tried.first[left], tried.last[left]
        short, long = far.first[right], far.last[right]
        at_first = sideways + (np.maximum(np.maximum(short - first, first - long), 0) * steps[:, 2]) ** 2
        at_last = sideways + (np.maximum(np.maximum(short - last, last - long), 0) * steps[:, 2]) ** 2
        starts = before[part] - before[done]
        lower[part] = np.maximum(np.minimum.reduceat(at_first, starts), np.minimum.reduceat(at_last, starts))
        upper[part] = np.minimum.reduceat(np.maximum(at_first, at_last), starts)
        done = end
    return np.minimum(upper, known), lower


def _halved(strokes_: Solids, bound: Numbers) -> tuple[Solids, Numbers]:
    """Both halves of each stroke; a single voxel, whose bounds are equal, is done and drops out."""
    more = np.flatnonzero(strokes_.last > strokes_.first)
    both = np.concatenate([more, more])
    halves = strokes_.take(both)
    middle = (strokes_.first[more] + strokes_.last[more]) // 2
    first = np.concatenate([strokes_.first[more], middle + 1])
    last = np.concatenate([middle, strokes_.last[more]])
    return Solids(halves.solid, halves.layer, halves.line, first, last), bound[both]


def _joined(one: tuple[Solids, Numbers], other: tuple[Solids, Numbers]) -> tuple[Solids, Numbers]:
    fields = zip(one[0]._fields(), other[0]._fields(), strict=True)
    return Solids(*(np.concatenate(pair) for pair in fields)), np.concatenate([one[1], other[1]])


def _minus(one: Solids, other: Solids) -> Solids:
    """The voxels of one side that the other one has not, both sorted."""
    size = [
        int(max(a.max(initial=0), b.max(initial=0))) + 2
        for a, b in zip(one._fields(), other._fields(), strict=True)
    ]
    place = max(size[3], size[4])

    def ends(side: Solids) -> tuple[Whole, Whole]:
        base = ((side.solid * size[1] + side.layer) * size[2] + side.line) * place
        return base + side.first, base + side.last + 1

    (start, stop), (taken, freed) = ends(one), ends(other)
    low = np.searchsorted(freed, start, side="right")
    high = np.maximum(np.searchsorted(taken, stop, side="left"), low)
    pieces = high - low + 1
    run = np.repeat(np.arange(len(start)), pieces)
    piece = np.arange(len(run)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    hole = low[run] + piece
    begin = np.where(piece == 0, start[run], np.append(freed, 0)[hole - 1])
    end = np.where(piece == pieces[run] - 1, stop[run], np.append(taken, 0)[np.minimum(hole, len(taken))])
    kept = np.flatnonzero(begin < end)
    base = (start - one.first)[run]
    left = one.take(run[kept])
    return Solids(left.solid, left.layer, left.line, (begin - base)[kept], (end - base)[kept] - 1)
