"""Overlaps of boxes are those that clipping one polygon by the other gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlebench_console.competitions.kit.metrics import geometry

Point = tuple[float, float]

centres = st.floats(-3, 3).map(lambda x: round(x, 3))
sides = st.floats(0.1, 5).map(lambda x: round(x, 3))
angles = st.one_of(
    st.floats(-7, 7), st.sampled_from([0.0, math.pi / 2, math.pi, -math.pi / 4, 1e-300, 1e-12])
)
rectangles = st.tuples(centres, centres, sides, sides, angles)


def corners(rectangle: tuple[float, ...]) -> list[Point]:
    x, y, length, width, angle = rectangle
    c, s = math.cos(angle), math.sin(angle)
    ends = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
    return [
        (x + a * length / 2 * c - b * width / 2 * s, y + a * length / 2 * s + b * width / 2 * c)
        for a, b in ends
    ]


def cross(origin: Point, to: Point, point: Point) -> float:
    return (to[0] - origin[0]) * (point[1] - origin[1]) - (to[1] - origin[1]) * (point[0] - origin[0])


def clipped(polygon: list[Point], by: list[Point]) -> list[Point]:
    """The part of a polygon inside a convex one, cut edge by edge (Sutherland and Hodgman)."""
    for start, stop in zip(by, by[1:] + by[:1], strict=True):
        kept: list[Point] = []
        for here, there in zip(polygon, polygon[1:] + polygon[:1], strict=True):
            inside, next_inside = cross(start, stop, here), cross(start, stop, there)
            if inside >= 0:
                kept.append(here)
            if (inside >= 0) != (next_inside >= 0):
                share = inside / (inside - next_inside)
                kept.append((here[0] + share * (there[0] - here[0]), here[1] + share * (there[1] - here[1])))
        polygon = kept
    return polygon


def area(polygon: list[Point]) -> float:
    return abs(sum(cross((0, 0), a, b) for a, b in zip(polygon, polygon[1:] + polygon[:1], strict=True))) / 2


def overlap(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    return float(geometry.rectangle_overlap(np.array([first]), np.array([second]))[0])


@given(rectangles, rectangles)
def test_rotated_rectangles_overlap_as_polygons_do(
    first: tuple[float, ...], second: tuple[float, ...]
) -> None:
    expected = area(clipped(corners(first), corners(second)))
    assert overlap(first, second) == pytest.approx(expected, abs=1e-9)
    assert overlap(second, first) == pytest.approx(expected, abs=1e-9)


@given(rectangles)
def test_a_rectangle_overlaps_itself_and_its_half_turn_in_full(rectangle: tuple[float, ...]) -> None:
    turned = (*rectangle[:4], rectangle[4] + math.pi)
    full = pytest.approx(rectangle[2] * rectangle[3], rel=1e-9)
    assert overlap(rectangle, rectangle) == full
    assert overlap(rectangle, turned) == full


def test_far_away_rectangles_do_not_overlap() -> None:
    assert overlap((0, 0, 2, 1, 0.3), (1e9, -1e9, 2, 1, 1.1)) == 0.0


PAIR = np.array([0])
heights = st.tuples(st.floats(-1, 1), sides)


@given(rectangles, heights, rectangles, heights)
def test_cuboids_overlap_as_their_ground_and_their_height(
    first: tuple[float, ...],
    first_z: tuple[float, ...],
    second: tuple[float, ...],
    second_z: tuple[float, ...],
) -> None:
    ground = area(clipped(corners(first), corners(second)))
    tops, bottoms = ([z + side * h / 2 for z, h in (first_z, second_z)] for side in (1, -1))
    common = ground * max(min(tops) - max(bottoms), 0)
    volumes = [r[2] * r[3] * z[1] for r, z in ((first, first_z), (second, second_z))]
    expected = common / (sum(volumes) - common)
    one, other = (
        np.array([[r[0], r[1], z[0], r[3], r[2], z[1], r[4]]])
        for r, z in ((first, first_z), (second, second_z))
    )
    for above in (0.0, 0.5):
        found = geometry.cuboid_iou(one, other, PAIR, PAIR, above=above)[0]
        if abs(expected - above) > 1e-9:
            assert found == pytest.approx(expected if expected > above else 0.0, abs=1e-9)


def test_infinite_cuboids_overlap_nothing() -> None:
    cuboid = np.array([[0, 0, 0, 2, 4, 1.5, 0.1]])
    for place in range(6):
        strange = cuboid.copy()
        strange[0, place] = np.inf
        assert geometry.cuboid_iou(strange, cuboid, PAIR, PAIR, above=0.0)[0] == 0.0


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((0, 0, 10, 10), (0, 0, 10, 10), 1.0),
        ((0, 0, 10, 10), (5, 0, 15, 10), 50 / 150),
        ((0, 0, 10, 10), (10, 0, 20, 10), 0.0),
        ((0, 0, 0, 0), (0, 0, 0, 0), 0.0),
        ((10, 10, 0, 0), (0, 0, 10, 10), 0.0),
        ((10, 0, 0, 10), (0, 0, 10, 10), 0.0),
        ((0, 0, math.inf, 10), (0, 0, 10, 10), 0.0),
        ((math.nan, 0, 10, 10), (0, 0, 10, 10), 0.0),
    ],
)
def test_upright_boxes_overlap(first: tuple[float, ...], second: tuple[float, ...], expected: float) -> None:
    iou = geometry.box_iou(np.array([first], dtype=float), np.array([second], dtype=float))
    assert iou[0] == pytest.approx(expected)
