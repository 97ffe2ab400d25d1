"""Overlaps of pairs of boxes: upright boxes, rotated rectangles (exact), and cuboids standing on the ground."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]


def box_iou(first: Numbers, second: Numbers) -> Numbers:
    """Return the intersection over union of boxes given as rows of x_min, y_min, x_max, y_max, one pair per row.

    Areas are plain products, so that a box with both axes inverted has a positive area; where the
    union is not above 0 the result is 0.
    """
    with np.errstate(all="ignore"):  # infinite corners make NaN, which is no overlap
        sides = np.minimum(first[:, 2:], second[:, 2:]) - np.maximum(first[:, :2], second[:, :2])
        common = np.prod(np.maximum(sides, 0.0), axis=1)
        areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (first, second)]
        union = areas[0] + areas[1] - common
        ratio = np.where(union > 0, common / union, 0.0)
    return np.nan_to_num(ratio, nan=0.0)


def rectangle_overlap(first: Numbers, second: Numbers) -> Numbers:
    """Return the common area of rotated rectangles, one pair per row.

    A rectangle is a row of centre x, centre y, length, width and the angle of its length against the
    x axis. The second one is moved into the frame of the first, and the area under each of its edges
    is added up inside the first one's borders: exact, also where edges coincide.
    """
    half_length, half_width = first[:, 2] / 2, first[:, 3] / 2
    cosine, sine = np.cos(first[:, 4]), np.sin(first[:, 4])
    dx, dy = second[:, 0] - first[:, 0], second[:, 1] - first[:, 1]
    x, y = cosine * dx + sine * dy, cosine * dy - sine * dx
    angle = second[:, 4] - first[:, 4]
    along = np.stack([np.cos(angle), np.sin(angle)]) * (second[:, 2] / 2)
    across = np.stack([-np.sin(angle), np.cos(angle)]) * (second[:, 3] / 2)
    corners = [
        np.stack([x, y]) + side * along + end * across for side, end in ((1, 1), (-1, 1), (-1, -1), (1, -1))
    ]
    area = np.zeros(len(first))
    for start, stop in zip(corners, corners[1:] + corners[:1], strict=True):
        area -= _area_under_edge(start, stop, half_length, half_width)
    return np.maximum(area, 0.0)


def cuboid_iou(
    first: Numbers, second: Numbers, left: Positions, right: Positions, *, above: float
) -> Numbers:
    """Return the intersection over union of upright cuboids where it exceeds `above`, else 0, for pairs of positions.

    A cuboid is a row of centre x, y and z, width, length, height, and the angle of its length against
    the x axis. Cheap bounds exclude most pairs that cannot exceed `above`, so that only few are clipped.
    """
    result = np.zeros(len(left))
    with np.errstate(all="ignore"):  # infinite heights make NaN, which is no overlap
        radii = [np.hypot(cuboids[:, 3], cuboids[:, 4]) / 2 for cuboids in (first, second)]
        reach = radii[0][left] + radii[1][right]
        close = np.abs(first[:, 0][left] - second[:, 0][right]) < reach
        near = np.flatnonzero(close & (np.abs(first[:, 1][left] - second[:, 1][right]) < reach))
        first, second = first[left[near]], second[right[near]]
        dx, dy = second[:, 0] - first[:, 0], second[:, 1] - first[:, 1]
        top = np.minimum(first[:, 2] + first[:, 5] / 2, second[:, 2] + second[:, 5] / 2)
        bottom = np.maximum(first[:, 2] - first[:, 5] / 2, second[:, 2] - second[:, 5] / 2)
        high = np.maximum(top - bottom, 0.0)
        volumes = np.prod(first[:, 3:6], axis=1) + np.prod(second[:, 3:6], axis=1)
        at_most = np.minimum(_framed(first, second, dx, dy), _framed(second, first, -dx, -dy)) * high
        able = np.flatnonzero(at_most / (volumes - at_most) > above * (1 - 1e-9))
        ground = [cuboids[able][:, [0, 1, 4, 3, 6]] for cuboids in (first, second)]
        common = rectangle_overlap(*ground) * high[able]
        ratio = np.clip(common / (volumes[able] - common), 0.0, 1.0)
    result[near[able]] = np.where(ratio > above, ratio, 0.0)
    return result


def _framed(first: Numbers, second: Numbers, dx: Numbers, dy: Numbers) -> Numbers:
    """Return the area that each first rectangle shares with the bounding box, parallel to it, of the second one."""
    cosine, sine = np.cos(first[:, 6]), np.sin(first[:, 6])
    turn = second[:, 6] - first[:, 6]
    along, across = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    width, length = second[:, 3], second[:, 4]
    x = _shared(first[:, 4], length * along + width * across, cosine * dx + sine * dy)
    y = _shared(first[:, 3], length * across + width * along, cosine * dy - sine * dx)
    return x * y


def _shared(first: Numbers, second: Numbers, distance: Numbers) -> Numbers:
    """Return the overlap of two intervals, given by their lengths and the distance of their centres."""
    touching = (first + second) / 2 - np.abs(distance)
    return np.maximum(np.minimum(np.minimum(first, second), touching), 0.0)


def _area_under_edge(
    start: npt.NDArray[Any], stop: npt.NDArray[Any], half_length: Numbers, half_width: Numbers
) -> Numbers:
    """Return the signed area between an edge and the lower border of an upright rectangle around the origin."""
    (x0, y0), (x1, y1) = start, stop
    left, right = np.clip(x0, -half_length, half_length), np.clip(x1, -half_length, half_length)
    run, rise = x1 - x0, y1 - y0
    low = y0 + np.clip(_ratio(left - x0, run), 0.0, 1.0) * rise
    high = y0 + np.clip(_ratio(right - x0, run), 0.0, 1.0) * rise
    # between the points where the edge crosses the upper and the lower border the height is linear
    climb = high - low
    crossings = np.sort(
        [np.clip(_ratio(side * half_width - low, climb), 0.0, 1.0) for side in (-1, 1)], axis=0
    )
    places = [np.zeros_like(low), *crossings, np.ones_like(low)]
    heights = [np.clip(low + place * climb, -half_width, half_width) + half_width for place in places]
    mean = sum(
        (places[i + 1] - places[i]) * (heights[i + 1] + heights[i]) / 2 for i in range(len(places) - 1)
    )
    return np.asarray((right - left) * mean, dtype=np.float64)


def _ratio(part: Numbers, whole: Numbers) -> Numbers:
    """Return part over whole; 0 where the whole is 0, since the value does not matter there."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
