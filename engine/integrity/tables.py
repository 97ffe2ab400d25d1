"""Read a submission or a sample submission for detectors, row by row within limits."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mlebench_console.foundation.files import reading_untrusted
from mlebench_console.foundation.problems import DataProblem

_MOST_ROWS = 200_000
_MOST_BYTES = 64 << 20
_LONGEST_ID = 200


@dataclass(frozen=True)
class Predictions:
    """The ids of a table and the predictions for them, as far as it was read.

    Attributes:
        is_whole: whether all rows were read.
    """

    ids: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    is_whole: bool

    @property
    def most_common(self) -> tuple[tuple[str, ...], float]:
        """The most frequent prediction, and its share of the rows."""
        if not self.values:
            return (), 0.0
        ((value, count),) = Counter(self.values).most_common(1)
        return value, count / len(self.values)

    @property
    def entropy(self) -> float:
        """The entropy of the predictions, in bits."""
        total = len(self.values)
        return sum(count / total * math.log2(total / count) for count in Counter(self.values).values())


def read_predictions(path: Path) -> Predictions:
    """Read a table whose first column has ids.

    Raises:
        DataProblem: it can't be read, or is not a table.
    """
    with reading_untrusted(path) as stream:
        content = stream.read(_MOST_BYTES)
        is_whole = not stream.read(1)
    ids: list[str] = []
    values: list[tuple[str, ...]] = []
    lines = csv.reader(io.StringIO(content.decode("utf-8-sig", "replace"), newline=""))
    try:
        next(lines, None)
        for row in lines:
            if not row:
                continue
            if len(ids) >= _MOST_ROWS:
                is_whole = False
                break
            ids.append(row[0][:_LONGEST_ID])
            values.append(tuple(row[1:]))
    except csv.Error as error:
        raise DataProblem(f"{path.name} is not a table", str(error)) from error
    return Predictions(tuple(ids), tuple(values), is_whole)


def sample_of(path: Path) -> Predictions | None:
    """Read a sample submission, cached because many runs share it; None where it does not exist."""
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return None
    return _sample(path, changed)


@lru_cache(maxsize=2)
def _sample(path: Path, _changed: int) -> Predictions:
    return read_predictions(path)


@lru_cache(maxsize=2)
def distinctive_ids(sample: Predictions) -> frozenset[str]:
    """Return the ids that don't occur in a text by chance, unlike small numbers or short words."""
    return frozenset(one for one in sample.ids if len(one) >= 5 or (len(one) >= 3 and not one.isalnum()))
