"""A labelled raw table on its way into a dataset: read and checked, divided by rows, written as the usual files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pandas as pd

from competitions.kit import archives, splits, tables
from competitions.task import Preparation
from foundation.problems import DataProblem


def read(
    job: Preparation,
    *names: str,
    needs: Sequence[str],
    member: str | None = None,
    text: Sequence[str] | None = None,
    words: Sequence[str] = (),
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
        separator: what stands between cells.

    Raises:
        DataProblem: the file is missing, damaged or lacks a column.
    """
    path = job.source(*names)
    try:
        if member is None:
            table = tables.read_csv(path, text=text, words=words, separator=separator)
        else:
            with archives.opened_member(path, member) as stream:
                table = tables.read_csv(stream, text=text, words=words, separator=separator)
    except ValueError as error:  # what pandas and the decoder raise for a table cut short or garbled
        raise DataProblem(
            f"{path} cannot be read as a table", str(error), "Download the competition's data again."
        ) from error
    missing = [name for name in needs if name not in table.columns]
    if missing:
        raise DataProblem(
            f"{path} is not as known",
            f"it has no column {', '.join(missing)}",
            "Download the competition's data again.",
        )
    return table


def expect_width(job: Preparation, table: pd.DataFrame, columns: int, name: str) -> None:
    """The table has as many columns as it is known to have.

    Raises:
        DataProblem: it has more or fewer.
    """
    if table.shape[1] != columns:
        raise DataProblem(
            f"{job.competition.id}: {name} is not as known",
            f"it has {table.shape[1]} columns, expected {columns}",
            "Download the competition's data again.",
        )


def divided(
    job: Preparation, table: pd.DataFrame, groups: Sequence[Any] | pd.Series | npt.NDArray[Any] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The train and the test rows by the job's `test_size` and `seed`, keeping groups whole if there are any."""
    size, seed = job.number("test_size"), job.integer("seed")
    if groups is None:
        return splits.shuffled(len(table), size, seed).of(table)
    return splits.shuffled_groups(groups, size, seed).of(table)


def groups_of(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Number the rows so that those with equal cells in all of these columns share a number."""
    return table.groupby(list(columns), sort=False, dropna=False).ngroup()


def write_parts(
    job: Preparation,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    hidden: Sequence[str],
    sample: pd.DataFrame,
    train_name: str = "train.csv",
) -> None:
    """Write the usual four files: train, test without its `hidden` columns, answers, sample submission."""
    tables.write_csv(train, job.public / train_name)
    tables.write_csv(test.drop(columns=list(hidden)), job.public / "test.csv")
    tables.write_csv(test, job.private / Path(job.competition.answers).name)
    tables.write_csv(sample, job.public / Path(job.competition.sample_submission).name)
