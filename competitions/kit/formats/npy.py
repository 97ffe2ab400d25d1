"""Numpy's `.npy` files."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mlebench_console.competitions.raw import RawPath, read_as


def read_npy(path: RawPath) -> npt.NDArray[Any]:
    """Read the array in a file.

    Raises:
        DataProblem: the file is missing or damaged, or has no rows.
    """
    with read_as("a numpy array", path, OSError, ValueError, EOFError), path.open("rb") as stream:
        array: npt.NDArray[Any] = np.load(stream, allow_pickle=False)
        if not array.ndim:
            raise ValueError("it has no rows")
    return array
