"""A labelled table is read whole or refused by name, divided, and written as the files that agents know."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.foundation.problems import DataProblem

if TYPE_CHECKING:
    from tests.competitions.conftest import MakeJob

TABLE = pd.DataFrame({"PassengerId": [f"p{n}" for n in range(20)], "Transported": [True, False] * 10})


def test_a_missing_file_is_named(make_job: MakeJob) -> None:
    with pytest.raises(DataProblem, match=r"train\.csv is missing from the raw data"):
        labelled_table.read(make_job(), "train.csv", needs=["a"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"train\.csv is not in the expected form.*it has no column a"),
        (b"b\n1\n", r"it has no column a"),
        (b'a,b\n1,2\n3,"4\n', r"train\.csv cannot be read as a table"),
        (b"a,b\n1,2\n3,4,5\n", r"train\.csv cannot be read as a table"),
        (b"a\n\xff\xfe\n", r"train\.csv cannot be read as a table"),
    ],
)
def test_a_damaged_table_is_named(make_job: MakeJob, content: bytes, message: str) -> None:
    job = make_job()
    (job.raw / "train.csv").write_bytes(content)
    with pytest.raises(DataProblem, match=f"(?s){message}"):
        labelled_table.read(job, "train.csv", needs=["a"])


def test_a_table_in_a_zip_cut_short_is_named(make_job: MakeJob) -> None:
    job = make_job()
    path = job.raw / "train.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.csv", "a\n" + "1\n" * 1000)
    assert len(labelled_table.read(job, path.name, member="train.csv", needs=["a"])) == 1000
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataProblem, match=r"train\.csv\.zip cannot be read as a zip"):
        labelled_table.read(job, path.name, member="train.csv", needs=["a"])


def test_another_number_of_columns_is_told(make_job: MakeJob) -> None:
    labelled_table.expect_width(make_job(), TABLE, 2, "train.csv")
    with pytest.raises(DataProblem, match="it has 2 columns, expected 3"):
        labelled_table.expect_width(make_job(), TABLE, 3, "train.csv")


def test_rows_with_equal_cells_share_a_number() -> None:
    rows = pd.DataFrame({"a": ["x", "y", "x", None, None], "b": [1, 1, 1, 2, 2]})
    assert labelled_table.groups_of(rows, ["a", "b"]).tolist() == [0, 1, 0, 2, 2]


def test_the_usual_files_are_written_and_targets_hidden(make_job: MakeJob) -> None:
    job = make_job()
    train, test = labelled_table.divided(job, TABLE)
    assert (len(train), len(test)) == (18, 2)
    sample = test[["PassengerId"]].assign(Transported=False)
    labelled_table.write_parts(
        job, train, test, hidden=["Transported"], sample=sample, train_name="labels.csv"
    )
    written = {
        str(path.relative_to(job.public.parent)): path.read_text().splitlines()[0]
        for folder in (job.public, job.private)
        for path in folder.iterdir()
    }
    assert written == {
        "public/labels.csv": "PassengerId,Transported",
        "public/test.csv": "PassengerId",
        "public/sample_submission.csv": "PassengerId,Transported",
        "private/test.csv": "PassengerId,Transported",
    }


def test_groups_are_kept_whole(make_job: MakeJob) -> None:
    groups = [f"g{n // 2}" for n in range(20)]
    train, test = labelled_table.divided(make_job(), TABLE.assign(group=groups), groups)
    assert len(test) == 2
    assert not set(train["group"]) & set(test["group"])


def test_the_folder_of_the_outputs_is_made(make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job(public=tmp_path / "elsewhere" / "public")
    labelled_table.write_parts(job, TABLE, TABLE, hidden=["Transported"], sample=TABLE)
    assert (tmp_path / "elsewhere" / "public" / "train.csv").is_file()
