"""Numpy's `.npy` files, whole, mapped or by rows, and the headers of PNG pictures in raw data."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from competitions.task import Preparation
from foundation.problems import DataProblem

_STEP = 1 << 14
_PNG_START = struct.Struct(">8sI4sII")


def read_npy(path: Path) -> npt.NDArray[Any]:
    """The array in a file.

    Raises:
        DataProblem: the file is missing or damaged.
    """
    return _load(path, mapped=False)


def mapped_npy(path: Path) -> npt.NDArray[Any]:
    """The array in a file, which is read where and when it is looked at.

    Raises:
        DataProblem: the file is missing, or shorter than its header says.
    """
    return _load(path, mapped=True)


def write_rows(job: Preparation, array: npt.NDArray[Any], rows: npt.NDArray[np.intp], target: Path) -> None:
    """Write some rows of an array, which may be a mapped one, to a file of their own, in the order given."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = np.lib.format.open_memmap(
        target, mode="w+", dtype=array.dtype, shape=(len(rows), *array.shape[1:])
    )
    for start in range(0, len(rows), _STEP):
        end = min(start + _STEP, len(rows))
        written[start:end] = array[rows[start:end]]
        job.progress(target.name, end, len(rows))
    written.flush()


def npy_shape(path: Path) -> tuple[int, ...]:
    """The shape of the array in a file, of which only the header is read.

    Raises:
        DataProblem: the file is missing, or shorter than its header says.
    """
    return tuple(_load(path, mapped=True).shape)


def _load(path: Path, *, mapped: bool) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataProblem(
            f"{path} cannot be read as a numpy array", str(error), "Download the competition's data again."
        ) from error
    return array


def png_size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG picture, from its header.

    Raises:
        DataProblem: the file is missing or no PNG.
    """
    try:
        with path.open("rb") as stream:
            start = stream.read(_PNG_START.size)
    except OSError as error:
        raise DataProblem(
            f"{path} cannot be read", str(error), "Download the competition's data again."
        ) from error
    if len(start) == _PNG_START.size:
        signature, _, chunk, width, height = _PNG_START.unpack(start)
        if signature == b"\x89PNG\r\n\x1a\n" and chunk == b"IHDR":
            return width, height
    raise DataProblem(
        f"{path} was not taken", "it is no PNG picture", "Download the competition's data again."
    )
