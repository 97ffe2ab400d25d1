"""Numpy's `.npy` files, whole or by rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlebench_console.competitions.raw import RawPath, read_as
from mlebench_console.competitions.task import Preparation

_BLOCK_BYTES = 16 << 20
_FAULTS = (OSError, ValueError, EOFError)


@dataclass(frozen=True)
class NpyFile:
    """An array in a file, read from front to back, some rows at a time.

    Attributes:
        start: the position of its first row in the file.
        in_columns: whether it is stored column by column, so that it must be read as a whole.
    """

    path: RawPath
    shape: tuple[int, ...]
    kind: np.dtype[Any]
    start: int
    in_columns: bool

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Yield all rows in order, some at a time.

        Raises:
            DataProblem: the file is damaged.
        """
        row_bytes = self.kind.itemsize * math.prod(self.shape[1:])
        step = max(1, _BLOCK_BYTES // max(row_bytes, 1))
        whole = read_npy(self.path) if self.in_columns else None
        with read_as("a numpy array", self.path, *_FAULTS), self.path.open("rb") as stream:
            stream.seek(self.start)
            for first in range(0, len(self), step):
                rows = min(step, len(self) - first)
                if whole is None:
                    content = stream.read(rows * row_bytes)
                    yield np.frombuffer(content, self.kind).reshape(rows, *self.shape[1:])
                else:
                    yield whole[first : first + rows]


def read_npy(path: RawPath) -> npt.NDArray[Any]:
    """Read the array in a file.

    Raises:
        DataProblem: the file is missing or damaged.
    """
    with read_as("a numpy array", path, *_FAULTS), path.open("rb") as stream:
        array: npt.NDArray[Any] = np.load(stream, allow_pickle=False)
    return array


def npy_file(path: RawPath) -> NpyFile:
    """Open the array in a file, reading only the header.

    Raises:
        DataProblem: the file is missing, or shorter than its header says.
    """
    with read_as("a numpy array", path, *_FAULTS), path.open("rb") as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, in_columns, kind = np.lib.format.read_array_header_1_0(stream)
        else:
            shape, in_columns, kind = np.lib.format.read_array_header_2_0(stream)
        if kind.hasobject:
            raise ValueError("it holds Python objects")
        if not shape:
            raise ValueError("it has no rows")
        start = stream.tell()
        if start + kind.itemsize * math.prod(shape) > path.stat().st_size:
            raise ValueError("it is shorter than its header says")
    return NpyFile(path, shape, kind, start, in_columns)


def write_rows(job: Preparation, array: NpyFile, parts: Mapping[Path, npt.NDArray[np.intp]]) -> None:
    """Write some rows of an array to each of several files, in the order given for each file."""
    written = []
    for target, rows in parts.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shape = (len(rows), *array.shape[1:])
        order = np.argsort(rows, kind="stable")
        made = np.lib.format.open_memmap(target, mode="w+", dtype=array.kind, shape=shape)
        written.append((made, rows[order], order))
    done = 0
    for block in array.blocks():
        for made, rows, places in written:
            first, end = np.searchsorted(rows, [done, done + len(block)])
            made[places[first:end]] = block[rows[first:end] - done]
        done += len(block)
        job.progress(array.path.name, done, len(array))
    for made, _, _ in written:
        made.flush()
