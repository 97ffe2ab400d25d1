"""Solids as stacks of run-length masks, and their exact Hausdorff distance; no voxel is ever painted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from competitions.kit.metrics.matching import ranks

Whole = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

_FEW = 4  # strokes of a solid to look at first
_PROMISING = 0.7  # of a solid's largest squared bound
_SAMPLE = 24  # strokes to bound far ones by
_ROUNDING = 1 + 1e-12  # equal distances, computed from different ends, need not be equal doubles
_PAIRS = 1 << 22  # distances computed at a time: bounds the memory


@dataclass(frozen=True)
class Solids:
    """Solids as straight strokes of voxels in ascending order, no voxel in two of them.

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

    def _fields(self) -> tuple[Whole, Whole, Whole, Whole, Whole]:
        return self.solid, self.layer, self.line, self.first, self.last

    def joined(self, other: Solids) -> Solids:
        """The strokes of both."""
        pairs = zip(self._fields(), other._fields(), strict=True)
        return Solids(*(np.concatenate(pair) for pair in pairs))

    def voxels(self, solids: int) -> Whole:
        """How many voxels each of so many solids has."""
        return np.bincount(self.solid, weights=self.last - self.first + 1, minlength=solids).astype(np.int64)


def strokes(solid: Whole, layer: Whole, start: Whole, stop: Whole, line_length: Whole) -> Solids:
    """Runs over a slice's pixels, line after line, cut into strokes; runs of a slice may overlap, which joins them."""
    place = (solid * (int(layer.max(initial=0)) + 1) + layer) * (int(start.max(initial=0)) + 1) + start
    order = np.argsort(place, kind="stable")
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
    squared = np.maximum(_directed(one, other, scale), _directed(other, one, scale))
    return np.asarray(np.sqrt(squared), dtype=np.float64)


def _directed(near: Solids, far: Solids, scale: Numbers) -> Numbers:
    """Per solid the square of the largest distance from `near` to `far`, by bounds.

    Every stroke's distance is bounded from above, by its farther end, and from below, by its ends.
    Only strokes whose upper bound beats the solid's best lower bound are looked at again, those with
    the largest bounds first, and halved.
    """
    best = np.zeros(len(scale))
    target = _Target(far, scale)
    left = _minus(near, far)
    bound = target.bound_beside(left)
    # a few promising strokes give lower bounds that spare most others any closer look
    top = np.zeros(len(scale))
    np.maximum.at(top, left.solid, bound)
    promising = bound >= _PROMISING * top[left.solid]
    bound[promising] = target.bound_around(left.take(promising), bound[promising])
    few = np.flatnonzero(promising)[_largest(left.take(promising), bound[promising], _FEW)]
    np.maximum.at(best, left.solid[few], target.bounds(left.take(few), bound[few])[1])
    for closer in (target.bound_around, target.bound_by_sample):
        alive = bound > _ROUNDING * best[left.solid]
        left, bound = left.take(alive), bound[alive]
        bound = closer(left, bound)
    most = _FEW
    while len(bound):
        chosen = _largest(left, bound, most)
        tried = left.take(chosen)
        upper, lower = target.bounds(tried, bound[chosen])
        np.maximum.at(best, tried.solid, lower)
        halves, of = _halved(tried)
        rest = np.ones(len(bound), dtype=bool)
        rest[chosen] = False
        left, bound = left.take(rest).joined(halves), np.concatenate([bound[rest], upper[of]])
        alive = bound > _ROUNDING * best[left.solid]
        left, bound = left.take(alive), bound[alive]
        most *= 2
    return best


def _largest(left: Solids, bound: Numbers, most: int) -> npt.NDArray[np.intp]:
    """The positions of each solid's strokes with the largest bounds."""
    order = np.lexsort((-bound, left.solid))
    return order[ranks(left.solid[order]) < most]


class _Target:
    """The side to which distances are taken."""

    def __init__(self, strokes_: Solids, scale: Numbers) -> None:
        self._strokes = strokes_
        self._scale = scale
        self._layers = int(strokes_.layer.max(initial=0)) + 1
        self._lines = int(strokes_.line.max(initial=0)) + 1
        self._places = int(strokes_.last.max(initial=0)) + 1
        self._order = self._number(strokes_.solid, strokes_.layer, strokes_.line) + strokes_.first
        steps = scale[strokes_.solid]
        self._line = strokes_.line * steps[:, 1]
        self._first, self._last = strokes_.first * steps[:, 2], strokes_.last * steps[:, 2]

    def _number(self, solid: Whole, layer: Whole, line: Whole) -> Whole:
        return ((solid * self._layers + layer) * self._lines + line) * self._places

    def bound_beside(self, tried: Solids) -> Numbers:
        """The squares of bounds from above: by the strokes before and after each stroke's place."""
        return self._bound_by_line(tried, np.full(len(tried.solid), np.inf), 0, 0)

    def bound_around(self, tried: Solids, bound: Numbers) -> Numbers:
        """Better bounds: by the lines around each stroke's place."""
        for layers, lines in ((0, -1), (0, 1), (-1, 0), (1, 0)):
            bound = self._bound_by_line(tried, bound, layers, lines)
        return bound

    def bound_by_sample(self, tried: Solids, bound: Numbers) -> Numbers:
        """Better bounds for what is far away: by a sample of the strokes."""
        begin = np.searchsorted(self._strokes.solid, tried.solid)
        count = np.searchsorted(self._strokes.solid, tried.solid, side="right") - begin
        for part in range(_SAMPLE):
            bound = self._bound_by(tried, bound, begin + count * part // _SAMPLE)
        return bound

    def _bound_by_line(self, tried: Solids, bound: Numbers, layers: int, lines: int) -> Numbers:
        place = np.minimum(tried.first, self._places - 1)
        layer = np.clip(tried.layer + layers, 0, self._layers - 1)
        line = np.clip(tried.line + lines, 0, self._lines - 1)
        after = np.searchsorted(self._order, self._number(tried.solid, layer, line) + place)
        for index in (after - 1, after):
            bound = self._bound_by(tried, bound, np.clip(index, 0, len(self._order) - 1))
        return bound

    def _bound_by(self, tried: Solids, bound: Numbers, other: Whole) -> Numbers:
        apart = (tried.layer - self._strokes.layer[other]) * self._scale[tried.solid, 0]
        ends = self._squares(tried, np.arange(len(bound)), other)
        found = apart * apart + np.maximum(*ends)
        return np.where(self._strokes.solid[other] == tried.solid, np.minimum(bound, found), bound)

    def _squares(self, tried: Solids, left: Whole, right: Whole) -> tuple[Numbers, Numbers]:
        """The squares of the distances from both ends of strokes to others, the layers left out."""
        steps = self._scale[tried.solid]
        sideways = ((tried.line * steps[:, 1])[left] - self._line[right]) ** 2
        short, long = self._first[right], self._last[right]
        first, last = (tried.first * steps[:, 2])[left], (tried.last * steps[:, 2])[left]
        at_first = np.maximum(np.maximum(short - first, first - long), 0)
        at_last = np.maximum(np.maximum(short - last, last - long), 0)
        return sideways + at_first * at_first, sideways + at_last * at_last

    def bounds(self, tried: Solids, known: Numbers) -> tuple[Numbers, Numbers]:
        """The squares of an upper and of a lower bound of each stroke's distance, given an upper one."""
        windows = self._windows(tried, known)
        counts = windows.stop - windows.start
        pairs = np.concatenate([[0], np.cumsum(counts)])[
            np.searchsorted(windows.of, np.arange(len(known) + 1))
        ]
        upper, lower = known.copy(), np.zeros(len(known))
        done = 0
        while done < len(known):
            end = max(int(np.searchsorted(pairs, pairs[done] + _PAIRS, side="right")) - 1, done + 1)
            here = np.arange(*np.searchsorted(windows.of, [done, end]))
            window = np.repeat(here, counts[here])
            left = windows.of[window]
            right = (
                windows.start[window]
                + np.arange(len(window))
                - np.repeat(np.cumsum(counts[here]) - counts[here], counts[here])
            )
            at_first, at_last = (ends + windows.apart[window] for ends in self._squares(tried, left, right))
            begins = np.flatnonzero(np.diff(left, prepend=-1))
            if len(begins):
                mine = left[begins]
                nearest = [np.minimum.reduceat(ends, begins) for ends in (at_first, at_last)]
                lower[mine] = np.maximum(*nearest)
                upper[mine] = np.minimum.reduceat(np.maximum(at_first, at_last), begins)
            done = end
        return upper, lower

    def _windows(self, tried: Solids, known: Numbers) -> _Windows:
        """What is nearer than a known bound lies in few layers, and in each of them on few lines."""
        steps = self._scale[tried.solid]
        reach = np.floor(np.sqrt(known) / steps[:, 0]).astype(np.int64) + 1
        low = np.clip(tried.layer - reach, 0, self._layers - 1)
        layers = np.clip(tried.layer + reach, 0, self._layers - 1) - low + 1
        of = np.repeat(np.arange(len(known)), layers)
        layer = low[of] + np.arange(len(of)) - np.repeat(np.cumsum(layers) - layers, layers)
        apart = ((layer - tried.layer[of]) * steps[of, 0]) ** 2
        lines = np.floor(np.sqrt(np.maximum(known[of] - apart, 0)) / steps[of, 1]).astype(np.int64) + 1
        begin = np.clip(tried.line[of] - lines, 0, self._lines)
        end = np.clip(tried.line[of] + lines + 1, 0, self._lines)
        row = self._number(tried.solid[of], layer, np.zeros_like(layer))
        start, stop = (np.searchsorted(self._order, row + line * self._places) for line in (begin, end))
        return _Windows(of, apart, start.astype(np.int64), stop.astype(np.int64))


@dataclass(frozen=True)
class _Windows:
    """Stretches of the target's strokes to compare a tried stroke with, `apart` telling the layers' part."""

    of: Whole
    apart: Numbers
    start: Whole
    stop: Whole


def _halved(strokes_: Solids) -> tuple[Solids, Whole]:
    """Both halves of each stroke, and whose halves they are; a single voxel, whose bounds are equal, is done."""
    more = np.flatnonzero(strokes_.last > strokes_.first)
    of = np.concatenate([more, more])
    whole = strokes_.take(of)
    middle = (strokes_.first[more] + strokes_.last[more]) // 2
    first = np.concatenate([strokes_.first[more], middle + 1])
    last = np.concatenate([middle, strokes_.last[more]])
    return Solids(whole.solid, whole.layer, whole.line, first, last), of


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
