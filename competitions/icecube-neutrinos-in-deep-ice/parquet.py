"""Parquet tables too large for memory, read and divided a stretch of rows at a time through pyarrow.

The library is an optional extra, because it is as large as all others together and few competitions need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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
    import pyarrow.parquet as pq

_STRETCH = 1 << 20


@dataclass(frozen=True)
class Part:
    """The rows whose key is among some values, and some of the columns, as a file of their own."""

    target: Path
    keys: npt.NDArray[Any]
    columns: Sequence[str]


def distinct(path: RawPath, column: str) -> npt.NDArray[Any]:
    """The values of a column in order of first appearance.

    Raises:
        DataProblem: the file is missing or damaged, or has no such column.
        EnvironmentProblem: pyarrow is not installed.
    """
    found = [pd.unique(_values(stretch, column)) for stretch in _stretches(path, [column])]
    return pd.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))


def rows_with(path: RawPath, key: str, keys: npt.NDArray[Any], columns: Sequence[str]) -> pd.DataFrame:
    """The rows whose key is among some values as a table in memory; raises as `distinct` does."""
    parts = []
    for stretch in _stretches(path, [key, *columns]):
        chosen = np.isin(_values(stretch, key), keys)
        parts.append(pd.DataFrame({name: _values(stretch, name)[chosen] for name in columns}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))


def divide(job: Preparation, path: RawPath, key: str, parts: Sequence[Part]) -> None:
    """Write each part of a table, rows in the order of the table; raises as `distinct` does."""
    columns = list(dict.fromkeys([key, *(name for part in parts for name in part.columns)]))
    with ExitStack() as stack:
        writers: dict[Path, pq.ParquetWriter] = {}
        for done, stretch in enumerate(_stretches(path, columns), start=1):
            for part in parts:
                rows = stretch.filter(np.isin(_values(stretch, key), part.keys)).select(list(part.columns))
                if part.target not in writers:
                    writers[part.target] = stack.enter_context(_writer(part.target, rows.schema))
                writers[part.target].write_table(rows)
            job.progress(path.name, done, done)


def _stretches(path: RawPath, columns: list[str]) -> Iterator[pa.Table]:
    pa, pq = _library()
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as table:
            missing = [name for name in columns if name not in table.schema_arrow.names]
            if missing:
                raise RawDataProblem(f"{path} is not as known", f"it has no column {', '.join(missing)}")
            for batch in table.iter_batches(_STRETCH, columns=columns):
                yield pa.Table.from_batches([batch.replace_schema_metadata(None)]).select(columns)
    except (pa.ArrowException, OSError) as error:
        raise RawDataProblem(f"{path} cannot be read as parquet", str(error)) from error


@contextmanager
def _writer(target: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    _, pq = _library()
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(target, schema) as writer:
        yield writer


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
