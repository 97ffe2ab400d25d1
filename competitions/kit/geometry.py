"""Overlaps of boxes, pair by pair: upright ones, and rotated rectangles clipped exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def box_iou(first: Numbers, second: Numbers) -> Numbers:
    """Intersection over union of boxes given as rows of x_min, y_min, x_max, y_max, one pair per row.

    Areas are plain products, so that a box with both axes inverted has a positive one; where the
    union is not above 0 the result is 0.
    """
    with np.errstate(all="ignore"):  # infinite corners make NaN, which is no overlap
        sides = np.minimum(first[:, 2:], second[:, 2:]) - np.maximum(first[:, :2], second[:, :2])
        common = np.prod(np.maximum(sides, 0.0), axis=1)
        union = np.prod(first[:, 2:] - first[:, :2], axis=1)
        union += np.prod(second[:, 2:] - second[:, :2], axis=1) - common
        ratio = np.where(union > 0, common / union, 0.0)
    return np.nan_to_num(ratio, nan=0.0)


def rectangle_overlap(first: Numbers, second: Numbers) -> Numbers:
    """The common area of rotated rectangles, one pair per row.

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


def _area_under_edge(
    start: npt.NDArray[Any], stop: npt.NDArray[Any], half_length: Numbers, half_width: Numbers
) -> Numbers:
    """The signed area between an edge and the lower border of an upright rectangle around the origin."""
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
    """Part over whole; 0 where the whole is 0, where its value does not matter."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole != 0)
