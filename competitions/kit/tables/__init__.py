"""Read and write CSV tables with the bytes and the doubles that pandas 2.2 gave MLE-bench.

`labelled_table` splits a table into the usual files, `large_tables` handles tables larger than memory.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pandas as pd

from mlebench_console.competitions.kit.placing import checksummed
from mlebench_console.competitions.kit.tables import csv_text, pandas2
from mlebench_console.competitions.raw import RawPath

# What pandas reads as a missing cell; pandas has no public name for this list.
NA_WORDS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)

_SIGNIFICANT = re.compile(r"%\.([1-9]|1[0-5])g")  # float formats that `csv_text` supports


def read_csv(
    source: RawPath | IO[bytes],
    *,
    text: Sequence[str] | None = None,
    words: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    separator: str = ",",
) -> pd.DataFrame:
    """Read a CSV; numbers become the nearest double, an empty file an empty table.

    Args:
        source: a path (never interpreted as compressed or as a URL), or an open file.
        text: columns to keep verbatim as text, so that "NA", "007" and "" stay as they are; an empty
            sequence means all columns. By default pandas infers each column's dtype.
        words: columns that are text too, but where "NA" and the like are missing cells;
            ignored when `text` is given.
        columns: read only these.
        separator: the character between cells.
    """
    if isinstance(source, RawPath):
        with source.open("rb") as stream:
            return read_csv(stream, text=text, words=words, columns=columns, separator=separator)

    def parsed(large: Sequence[str] = ()) -> pd.DataFrame:
        as_words = [*large, *(words if text is None else ())]
        try:
            options = _columns(source, text, as_words, columns, separator)
            with _mixed_types_allowed():
                table: pd.DataFrame = pd.read_csv(source, **options)
        except pd.errors.EmptyDataError:
            return pd.DataFrame()
        return table

    def again(large: Sequence[str]) -> pd.DataFrame:
        source.seek(0)
        return parsed(large)

    table = parsed()
    return pandas2.with_former_types(table, NA_WORDS, again) if text is None or text else table


def read_blocks(
    source: IO[bytes],
    rows: int,
    *,
    text: Sequence[str] | None = None,
    words: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
) -> Iterator[pd.DataFrame]:
    """Read a CSV in blocks of rows, from front to back; the index continues from block to block.

    Unless a column is text or its dtype is given, pandas infers its dtype in each block separately.

    Args:
        source: an open file.
        rows: the number of rows per block.
        text: as for `read_csv`.
        words: as for `read_csv`.
        columns: read only these.
        types: the known dtypes of columns, by pandas' names.
    """
    options = _columns(source, text, words if text is None else (), columns, ",", types)
    with pd.read_csv(source, chunksize=rows, **options) as blocks:
        while True:
            with _mixed_types_allowed():
                block = next(blocks, None)
            if block is None:
                return
            yield block


def _columns(
    source: IO[bytes],
    text: Sequence[str] | None,
    words: Sequence[str],
    columns: Sequence[str] | None,
    separator: str,
    types: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the options with which pandas reads a table's columns."""
    common: dict[str, Any] = {"sep": separator, "usecols": None if columns is None else list(columns)}
    if text is None:
        return common | {"dtype": {**(types or {}), **dict.fromkeys(words, str)}}
    if not text:
        return common | {"dtype": str, "keep_default_na": False}
    names = pd.read_csv(source, sep=separator, nrows=0).columns
    source.seek(0)
    return common | {
        "dtype": {**(types or {}), **dict.fromkeys([*words, *text], str)},
        "keep_default_na": False,
        "na_values": {name: list(NA_WORDS) for name in names if name not in text},
    }


@contextmanager
def _mixed_types_allowed() -> Iterator[None]:
    """Silence pandas' warning of mixed columns: dtypes are inferred chunk by chunk, as in MLE-bench."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        yield


def write_csv(
    table: pd.DataFrame,
    target: Path | IO[bytes],
    *,
    header: bool = True,
    separator: str = ",",
    quote_text: bool = False,
    float_format: str | None = None,
) -> None:
    """Write a table without its index: comma, minimal quoting, LF, missing as empty, shortest floats.

    Args:
        table: what to write.
        target: a path to create, or an open file, such as a member of a zip.
        header: whether to write the names of the columns first.
        separator: the character between cells.
        quote_text: quote the header and every cell that is not a number, missing ones included.
        float_format: a `%` format for floats instead of their shortest form.
    """
    if isinstance(target, Path):
        with checksummed.created(target) as stream:
            write_csv(
                table,
                stream,
                header=header,
                separator=separator,
                quote_text=quote_text,
                float_format=float_format,
            )
        return
    common: dict[str, Any] = {
        "index": False,
        "lineterminator": "\n",
        "sep": separator,
        "quoting": csv.QUOTE_NONNUMERIC if quote_text else csv.QUOTE_MINIMAL,
        "float_format": float_format,
    }
    significant = _SIGNIFICANT.fullmatch(float_format or "")
    if float_format and (quote_text or not significant):  # pandas quotes formatted floats like text
        table.to_csv(target, header=header, **common)
        return
    if header:
        table.iloc[:0].to_csv(target, **common)
    form = csv_text.CellFormat(int(significant[1]) if significant else None, separator, quote_text)
    for block in csv_text.blocks(table, form):
        if isinstance(block, bytes):
            target.write(block)
        else:
            block.to_csv(target, header=False, **common)


def one_hot(labels: pd.Series, classes: Sequence[str]) -> pd.DataFrame:
    """Return one column of 0 and 1 per class."""
    return pd.DataFrame({name: (labels == name).astype("int64") for name in classes}, index=labels.index)
