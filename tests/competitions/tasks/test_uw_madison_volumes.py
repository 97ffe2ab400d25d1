"""Distances of solids made of strokes are those that comparing all voxels with all voxels gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from competitions.registry import get, load_task

volumes = load_task(get("uw-madison-gi-tract-image-segmentation")).volumes

SHAPE = (3, 4, 6)  # layers, lines, voxels of a line

grids = (
    st.lists(st.booleans(), min_size=72, max_size=72).filter(any).map(lambda v: np.array(v).reshape(SHAPE))
)
sparse = st.sets(st.integers(0, 71), min_size=1, max_size=4).map(
    lambda places: np.isin(np.arange(72), list(places)).reshape(SHAPE)
)
solids = st.one_of(grids, sparse)
scales = st.tuples(*[st.floats(0.05, 2)] * 3)


def strokes(grids_: list[np.ndarray], cut: int = 0) -> Any:
    """The strokes of solids, each given by its pixels as runs, `cut` of them doubled."""
    runs = []
    for solid, grid in enumerate(grids_):
        for layer, picture in enumerate(grid):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], picture.ravel().astype(int), [0]])))
            runs += [(solid, layer, a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    runs += runs[:cut]
    solids_, layers, starts, stops = np.array(runs, dtype=np.int64).T
    return volumes.strokes(solids_, layers, starts, stops, np.full(len(runs), SHAPE[2]))


def painted(found: Any, count: int) -> np.ndarray:
    grid = np.zeros((count, *SHAPE), dtype=bool)
    for solid, layer, line, first, last in zip(
        found.solid, found.layer, found.line, found.first, found.last, strict=True
    ):
        assert not grid[solid, layer, line, first : last + 1].any()
        grid[solid, layer, line, first : last + 1] = True
    return grid


def distance(one: np.ndarray, other: np.ndarray, scale: tuple[float, ...]) -> float:
    first, second = (np.argwhere(grid) * scale for grid in (one, other))
    apart = np.sqrt(((first[:, None] - second[None]) ** 2).sum(axis=2))
    return float(max(apart.min(axis=1).max(), apart.min(axis=0).max()))


@given(st.lists(grids, min_size=1, max_size=3), st.integers(0, 5))
def test_strokes_hold_the_voxels_of_the_runs_each_once(grids_: list[np.ndarray], cut: int) -> None:
    assert (painted(strokes(grids_, cut), len(grids_)) == np.array(grids_)).all()


@settings(deadline=None)
@given(st.lists(st.tuples(solids, solids, scales), min_size=1, max_size=3), st.sampled_from([1, 50, 1 << 22]))
def test_the_distance_is_that_of_all_voxels(
    sides: list[tuple[np.ndarray, np.ndarray, tuple[float, ...]]], most: int
) -> None:
    ones, others, scales_ = zip(*sides, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(volumes, "_PAIRS", most)
        found = volumes.hausdorff(strokes(list(ones)), strokes(list(others)), np.array(scales_))
    assert found == pytest.approx([distance(*side) for side in sides], abs=1e-12)


def test_equal_solids_are_no_distance_apart() -> None:
    grid = np.ones(SHAPE, dtype=bool)
    assert volumes.hausdorff(strokes([grid]), strokes([grid]), np.ones((1, 3))).tolist() == [0.0]
