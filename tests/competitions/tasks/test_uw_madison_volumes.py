"""Distances of solids painted from masks are those that comparing all voxels with all voxels gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlebench_console.competitions.registry import get, load_task

task = load_task(get("uw-madison-gi-tract-image-segmentation"))

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6))
solids = shapes.flatmap(
    lambda shape: st.sets(st.integers(0, int(np.prod(shape)) - 1), min_size=1).map(
        lambda places: np.isin(np.arange(np.prod(shape)), list(places)).reshape(shape)
    )
)
scales = st.tuples(*[st.floats(0.05, 2)] * 3)


@settings(deadline=None)
@given(solids, solids, scales)
def test_the_distance_is_that_of_all_voxels(
    one: np.ndarray, other: np.ndarray, scale: tuple[float, ...]
) -> None:
    first, second = (np.argwhere(grid) * scale for grid in (one, other))
    apart = np.sqrt(((first[:, None] - second[None]) ** 2).sum(axis=2))
    expected = max(apart.min(axis=1).max(), apart.min(axis=0).max())
    assert task.hausdorff(one, other, np.array(scale)) == pytest.approx(expected, abs=1e-12)


def test_equal_solids_are_no_distance_apart() -> None:
    grid = np.ones((3, 4, 6), dtype=bool)
    assert task.hausdorff(grid, grid, np.ones(3)) == 0.0
