"""Read, filter, write and checksum Parquet tables too large for memory, in blocks of rows through pyarrow.

pyarrow is an optional extra, because it is as large as all other libraries together and few competitions need it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.raw import RawDataProblem, RawPath, read_as
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    import pyarrow as pa

_STRETCH = 1 << 20
_SAME = {"large_string": "string", "string_view": "string", "large_binary": "binary"}


def distinct(path: RawPath, column: str) -> npt.NDArray[Any]:
    """Return the distinct values of a column in order of first appearance.

    Raises:
        DataProblem: the file is missing or damaged, or has no such column.
        EnvironmentProblem: pyarrow is not installed.
    """
    found = [pd.unique(_values(stretch, column)) for stretch in _stretches(path, [column])]
    return pd.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))


def rows_with(path: RawPath, key: str, keys: npt.NDArray[Any], columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield some columns of the rows whose key is among `keys`, block by block; raises as `distinct`."""
    for stretch in _stretches(path, list(dict.fromkeys([key, *columns]))):
        yield stretch.filter(np.isin(_values(stretch, key), keys)).select(list(columns))


def write(job: Preparation, target: Path, blocks: Iterable[pa.Table]) -> None:
    """Write blocks of rows to a file and report the progress under its name."""
    _, pq = _library()
    target.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        writer: Any = None
        for done, rows in enumerate(blocks, start=1):
            writer = writer or stack.enter_context(pq.ParquetWriter(target, rows.schema))
            writer.write_table(rows)
            job.progress(target.name, done, done)


def content_sum(path: Path) -> str:
    """Return a checksum of a table's columns, types, order and cells, which does not depend on the file's writer.

    A missing number equals NaN, and a text is the same however it is stored.

    Raises:
        DataProblem: the file is missing or damaged.
        EnvironmentProblem: pyarrow is not installed.
    """
    with _opened(path) as table:
        columns = [_ColumnSum(column.name, column.type) for column in table.schema_arrow]
        for batch in table.iter_batches(_STRETCH):
            for column, values in zip(columns, batch.columns, strict=True):
                column.add(values)
    found = json.dumps([column.result() for column in columns])
    return hashlib.sha256(found.encode()).hexdigest()


class _ColumnSum:
    """The checksum of one column, to which values are added in pieces of any size."""

    def __init__(self, name: str, type: pa.DataType) -> None:
        self._name = name
        pa, _ = _library()
        self._type = type.value_type if pa.types.is_dictionary(type) else type
        self._values, self._missing = hashlib.sha256(), hashlib.sha256()

    def add(self, values: pa.Array) -> None:
        pa, _ = _library()
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        missing = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        self._missing.update(missing.astype(np.uint8).tobytes())
        if any(check(values.type) for check in (pa.types.is_integer, pa.types.is_floating)):
            numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
            self._values.update(np.where(missing, numbers.dtype.type(0), numbers).tobytes())
        else:
            cells = (json.dumps(cell, default=str) for cell in values.to_pylist())
            self._values.update("".join(f"{cell}\n" for cell in cells).encode())

    def result(self) -> list[str]:
        type = str(self._type)
        return [self._name, _SAME.get(type, type), self._values.hexdigest(), self._missing.hexdigest()]


def _stretches(path: RawPath, columns: list[str]) -> Iterator[pa.Table]:
    pa, _ = _library()
    with _opened(path) as table:
        missing = [name for name in columns if name not in table.schema_arrow.names]
        if missing:
            raise RawDataProblem(
                f"{path} is not in the expected form", f"it has no column {', '.join(missing)}"
            )
        for batch in table.iter_batches(_STRETCH, columns=columns):
            yield pa.Table.from_batches([batch.replace_schema_metadata(None)]).select(columns)


@contextmanager
def _opened(path: RawPath) -> Iterator[Any]:
    pa, pq = _library()
    with (
        read_as("parquet", path, pa.ArrowException, OSError),
        path.open("rb") as stream,
        pq.ParquetFile(stream) as table,
    ):
        yield table


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
