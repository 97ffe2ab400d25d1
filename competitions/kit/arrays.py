"""Numpy's `.npy` files, whole, mapped or by rows, and the headers of PNG pictures in raw data."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from competitions.kit.raw_files import on_disk
from competitions.raw import RawPath
from competitions.task import Preparation
from foundation.problems import DataProblem

_STEP = 1 << 14
_PNG_START = struct.Struct(">8sI4sII")


def read_npy(path: RawPath) -> npt.NDArray[Any]:
    """The array in a file.

    Raises:
        DataProblem: the file is missing or damaged.
    """
    return _load(path, mapped=False)


def mapped_npy(path: RawPath) -> npt.NDArray[Any]:
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


def npy_shape(path: RawPath) -> tuple[int, ...]:
    """The shape of the array in a file, of which only the header is read.

    Raises:
        DataProblem: the file is missing, or shorter than its header says.
    """
    return tuple(_load(path, mapped=True).shape)


def _load(path: RawPath, *, mapped: bool) -> npt.NDArray[Any]:
    try:
        with on_disk(path) if mapped else path.open("rb") as stream:
            array: npt.NDArray[Any] = _mapped(stream) if mapped else np.load(stream, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataProblem(
            f"{path} cannot be read as a numpy array", str(error), "Download the competition's data again."
        ) from error
    return array


def _mapped(stream: IO[bytes]) -> npt.NDArray[Any]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, in_columns, kind = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, in_columns, kind = np.lib.format.read_array_header_2_0(stream)
    if kind.hasobject:
        raise ValueError("it holds Python objects")
    order: Literal["C", "F"] = "F" if in_columns else "C"
    return np.memmap(stream, dtype=kind, mode="r", offset=stream.tell(), shape=shape, order=order)


def png_size(path: RawPath) -> tuple[int, int]:
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
