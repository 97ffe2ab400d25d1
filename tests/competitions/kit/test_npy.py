"""Arrays are read from sound files, and damaged files are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mlebench_console.competitions.kit.formats import npy
from mlebench_console.foundation.problems import DataProblem


def test_an_array_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3, 1))
    assert npy.read_npy(tmp_path / "a.npy").tolist() == [[[0], [1], [2]], [[3], [4], [5]]]


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY", b"no array at all"])
def test_a_damaged_array_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mask.npy"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataProblem, match=r"mask\.npy"):
        npy.read_npy(path)


def test_an_array_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "band.npy"
    np.save(path, np.zeros((100, 100)))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataProblem, match=r"band\.npy"):
        npy.read_npy(path)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    with pytest.raises(DataProblem, match=r"objects\.npy"):
        npy.read_npy(tmp_path / "objects.npy")


def test_a_single_number_has_no_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.array(7))
    with pytest.raises(DataProblem, match=r"one\.npy.*it has no rows"):
        npy.read_npy(tmp_path / "one.npy")
