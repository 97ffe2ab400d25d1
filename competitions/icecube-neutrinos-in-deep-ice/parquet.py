"""Parquet tables too large for memory, read and divided a stretch of rows at a time through pyarrow.

The library is an optional extra, because it is as large as all others together and few competitions need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from competitions.raw import RawDataProblem, RawPath
from competitions.task import Preparation
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    import pyarrow as pa

_STRETCH = 1 << 20


def distinct(path: RawPath, column: str) -> npt.NDArray[Any]:
    """The values of a column in order of first appearance.

    Raises:
        DataProblem: the file is missing or damaged, or has no such column.
        EnvironmentProblem: pyarrow is not installed.
    """
    found = [pd.unique(_values(stretch, column)) for stretch in _stretches(path, [column])]
    return pd.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))


def rows_with(path: RawPath, key: str, keys: npt.NDArray[Any], columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows whose key is among some values, and some of the columns, stretch by stretch; raises as `distinct`."""
    for stretch in _stretches(path, list(dict.fromkeys([key, *columns]))):
        yield stretch.filter(np.isin(_values(stretch, key), keys)).select(list(columns))


def write(job: Preparation, target: Path, stretches: Iterable[pa.Table]) -> None:
    """Write rows to a file, which is named in the progress."""
    _, pq = _library()
    target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        writer: Any = None
        for done, rows in enumerate(stretches, start=1):
            writer = writer or stack.enter_context(pq.ParquetWriter(target, rows.schema))
            writer.write_table(rows)
            job.progress(target.name, done, done)


def _stretches(path: RawPath, columns: list[str]) -> Iterator[pa.Table]:
    pa, pq = _library()
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as table:
            missing = [name for name in columns if name not in table.schema_arrow.names]
            if missing:
                raise RawDataProblem(
                    f"{path} is not in the expected form", f"it has no column {', '.join(missing)}"
                )
            for batch in table.iter_batches(_STRETCH, columns=columns):
                yield pa.Table.from_batches([batch.replace_schema_metadata(None)]).select(columns)
    except (pa.ArrowException, OSError) as error:
        raise RawDataProblem(f"{path} cannot be read as parquet", str(error)) from error


def _values(table: pa.Table, column: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = table.column(column).to_numpy()
    return values


def _library() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise EnvironmentProblem(
            "Parquet tables cannot be read here",
            "the library pyarrow is not installed",
            "Install it with: pip install 'mlebench-console[parquet]'",
        ) from error
    return pyarrow, pyarrow.parquet
