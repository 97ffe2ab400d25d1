"""Arrays and picture sizes are read from sound files, and damaged files are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mlebench_console.competitions.kit.formats import npy
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob


def test_an_array_and_its_shape_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6).reshape(2, 3, 1))
    assert npy.read_npy(tmp_path / "a.npy").tolist() == [[[0], [1], [2]], [[3], [4], [5]]]
    assert npy.npy_file(tmp_path / "a.npy").shape == (2, 3, 1)


@pytest.mark.parametrize("content", [None, b"", b"\x93NUMPY", b"no array at all"])
def test_a_damaged_array_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "mask.npy"
    if content is not None:
        path.write_bytes(content)
    for read in (npy.read_npy, npy.npy_file):
        with pytest.raises(DataProblem, match=r"mask\.npy"):
            read(path)


def test_an_array_cut_short_is_refused_even_when_only_its_shape_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "band.npy"
    np.save(path, np.zeros((100, 100)))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DataProblem, match=r"band\.npy"):
        npy.npy_file(path)


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    for read in (npy.read_npy, npy.npy_file):
        with pytest.raises(DataProblem, match=r"objects\.npy"):
            read(tmp_path / "objects.npy")


def test_a_single_number_has_no_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.array(7))
    with pytest.raises(DataProblem, match=r"one\.npy.*it has no rows"):
        npy.npy_file(tmp_path / "one.npy")


@pytest.mark.parametrize(
    "array",
    [
        np.arange(60).reshape(20, 3),
        np.asfortranarray(np.arange(60).reshape(20, 3)),
        np.array([str(n) for n in range(20)]),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 20])
def test_chosen_rows_become_files_as_numpy_saves_them(
    array: np.ndarray, block_bytes: int, tmp_path: Path, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npy, "_BLOCK_BYTES", block_bytes)
    np.save(tmp_path / "all.npy", array)
    opened = npy.npy_file(tmp_path / "all.npy")
    assert np.array_equal(np.concatenate(list(opened.blocks())), array)
    parts = {
        tmp_path / "deep" / "some.npy": np.array([19, 0, 5, 5, 7]),
        tmp_path / "others.npy": np.arange(18, 0, -2),
    }
    npy.write_rows(make_job(), opened, parts)
    for target, rows in parts.items():
        np.save(tmp_path / "expected.npy", np.ascontiguousarray(array[rows]))
        assert target.read_bytes() == (tmp_path / "expected.npy").read_bytes()
