"""Read and check a labelled raw table, split it by rows, and write the usual files of a dataset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import splits, tables
from mlebench_console.competitions.kit.placing import checksummed
from mlebench_console.competitions.kit.tables import large_tables
from mlebench_console.competitions.kit.tables.large_tables import RawTable
from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.competitions.task import Preparation


def read(
    job: Preparation,
    *names: str,
    needs: Sequence[str],
    member: str | None = None,
    text: Sequence[str] | None = None,
    words: Sequence[str] = (),
    numbers: Sequence[str] = (),
    separator: str = ",",
) -> pd.DataFrame:
    """Read the first of the named raw files that exists; `text`, `words` and `separator` as in `tables`.

    Args:
        job: whose raw folder to look in.
        names: the file, and other names it may have.
        needs: columns that it must have.
        member: the table's name inside, if the file is a zip.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.
        numbers: the needed columns that must contain only numbers and missing cells.
        separator: the character between cells.

    Raises:
        DataProblem: the file is missing or damaged, lacks a column or has no rows.
    """
    path = job.source(*names)
    with large_tables.opened(path, member) as stream:
        table = tables.read_csv(stream, text=text, words=words, separator=separator)
    _expect_columns(path, table.columns, needs)
    if not len(table):
        raise large_tables.unreadable(path, "it has no rows")
    for name in numbers:
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise large_tables.unreadable(path, f"column {name} holds text where numbers are expected")
    return table


def open_rows(
    job: Preparation,
    name: str,
    types: Mapping[str, str],
    *,
    member: str | None = None,
    text: Sequence[str] = (),
    words: Sequence[str] = (),
) -> RawTable:
    """Open a raw table that may be too large for memory.

    Args:
        job: whose raw folder to look in.
        name: the file.
        types: its columns, and the dtypes that pandas infers for them in the real data.
        member: the table's name inside, if the file is a zip.
        text: columns to keep verbatim.
        words: columns that are text with missing cells, unless `text` is given.

    Raises:
        DataProblem: the file is missing or damaged, or has other columns.
    """
    table = RawTable(job.source(name), member, types, text, words)
    _expect_columns(table.path, table.columns, list(types))
    if len(table.columns) != len(types):
        raise job.unexpected(member or name, f"it has {len(table.columns)} columns, expected {len(types)}")
    return table


def _expect_columns(path: RawPath, columns: Collection[str], needs: Sequence[str]) -> None:
    missing = [name for name in needs if name not in columns]
    if missing:
        raise RawDataProblem(f"{path} is not in the expected form", f"it has no column {', '.join(missing)}")


def expect_width(job: Preparation, table: pd.DataFrame, columns: int, name: str) -> None:
    """Check that a table has the expected number of columns.

    Raises:
        DataProblem: it has more or fewer.
    """
    if len(table.columns) != columns:
        raise job.unexpected(name, f"it has {len(table.columns)} columns, expected {columns}")


def divided(
    job: Preparation, table: pd.DataFrame, groups: Sequence[Any] | pd.Series | npt.NDArray[Any] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the train and the test rows by the job's `test_size` and `seed`; groups, if given, are kept whole."""
    return _split(job, len(table), groups).of(table)


def divided_rows(
    job: Preparation,
    table: RawTable,
    groups: pd.Series | None = None,
    *,
    train_name: str = "train.csv",
    apart: str | None = None,
) -> pd.DataFrame:
    """Split as `divided` does, write the train rows and return the test rows.

    Raises:
        DataProblem: the table cannot be read, or a value of the column `apart` is in both parts.
    """
    with checksummed.created(job.public / train_name) as stream:
        if table.is_large:
            return large_tables.write_train(table, lambda n: _split(job, n, groups), stream, apart=apart)
        train, test = divided(job, table.whole, groups)
        if apart is not None and train[apart].isin(test[apart]).any():
            raise large_tables.in_both_parts(table.path, apart)
        tables.write_csv(train, stream)
        return test


def _split(
    job: Preparation, count: int, groups: Sequence[Any] | pd.Series | npt.NDArray[Any] | None
) -> splits.Split:
    return splits.by_row(job, count) if groups is None else splits.by_group(job, groups)


def groups_of(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the rows so that those with equal cells in all of these columns share a number."""
    return table.groupby(list(columns), sort=False, dropna=False).ngroup()


def write_parts(
    job: Preparation,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    hidden: Sequence[str] = (),
    sample: pd.DataFrame,
    answers: pd.DataFrame | None = None,
    train_name: str = "train.csv",
) -> None:
    """Write the usual four files: train, test without its `hidden` columns, answers, sample submission.

    The answers default to the complete test rows.
    """
    tables.write_csv(train, job.public / train_name)
    write_test(job, test, hidden=hidden, sample=sample, answers=answers)


def write_test(
    job: Preparation,
    test: pd.DataFrame,
    *,
    hidden: Sequence[str] = (),
    sample: pd.DataFrame,
    answers: pd.DataFrame | None = None,
) -> None:
    """Write the files of `write_parts` except the train rows."""
    tables.write_csv(test.drop(columns=list(hidden)), job.public / "test.csv")
    write_answers(job, test if answers is None else answers, sample)


def write_labels(
    job: Preparation,
    train: pd.DataFrame,
    answers: pd.DataFrame,
    *,
    sample: pd.DataFrame,
    train_name: str = "train.csv",
) -> None:
    """Write the usual three files where the test items are images or the like: train, answers, sample submission."""
    tables.write_csv(train, job.public / train_name)
    write_answers(job, answers, sample)


def write_answers(job: Preparation, answers: pd.DataFrame, sample: pd.DataFrame) -> None:
    """Write the answers and the sample submission to the paths that the competition's facts name."""
    tables.write_csv(answers, job.private / Path(job.competition.answers).name)
    tables.write_csv(sample, job.public / Path(job.competition.sample_submission).name)
