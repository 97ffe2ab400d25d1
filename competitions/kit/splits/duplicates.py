"""Compare files by content: group equal ones for a split, and order test files without revealing their classes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.threads import in_threads

_WORKERS = 4


def same_content(job: Preparation, paths: Sequence[RawPath]) -> npt.NDArray[np.intp]:
    """Number the files so that files share a number exactly if their bytes are equal.

    Only files of equal size are read.

    Raises:
        DataProblem: a file is missing.
    """
    try:
        sizes = [path.stat().st_size for path in paths]
    except FileNotFoundError as error:
        raise _missing(job, error) from error
    common = Counter(sizes)
    read = [path for path, size in zip(paths, sizes, strict=True) if common[size] > 1]
    digests = dict(zip(read, _digests(job, read), strict=True))
    names = [digests.get(path, str(position)) for position, path in enumerate(paths)]
    return np.asarray(pd.factorize(np.array(names, dtype=object))[0], dtype=np.intp)


def ordered_by_content(job: Preparation, paths: Sequence[RawPath]) -> npt.NDArray[np.intp]:
    """Return the positions of the files sorted by a digest of their bytes, equal files in their given order.

    Raises:
        DataProblem: a file is missing.
    """
    digests = _digests(job, paths)
    return np.array(sorted(range(len(paths)), key=digests.__getitem__), dtype=np.intp)


def _digests(job: Preparation, paths: Sequence[RawPath]) -> list[str]:
    digests: list[str] = []
    try:
        for digest in in_threads(_digest, paths, _WORKERS):
            digests.append(digest)
            job.progress("comparing files", len(digests), len(paths))
    except FileNotFoundError as error:
        raise _missing(job, error) from error
    return digests


def _missing(job: Preparation, error: FileNotFoundError) -> RawDataProblem:
    path = Path(error.filename)
    return job.missing(path.name, path.parent)


def linked(first: npt.NDArray[np.intp], second: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Number rows so that rows linked by a chain of equal numbers on either side share a number."""
    from scipy import sparse  # imported here, as only preparation needs it

    firsts, seconds = (int(side.max(initial=-1)) + 1 for side in (first, second))
    ends = (first, firsts + second)
    links = sparse.coo_array((np.ones(len(first)), ends), shape=(firsts + seconds,) * 2)
    groups: npt.NDArray[np.intp] = sparse.csgraph.connected_components(links, directed=False)[1]
    return groups[first]


def _digest(path: RawPath) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()
