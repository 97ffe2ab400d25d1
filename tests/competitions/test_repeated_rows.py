"""Raw tables in which a row stands twice are prepared as MLE-bench does it: every row counts, a file comes once."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from tests.competitions.changed_raw import prepared_after

DOGS, TISSUE = "dog-breed-identification", "histopathologic-cancer-detection"
LEFT_OUT = "ce27d36c9147cc19.jpg"  # of the hotels, known to stand twice in Kaggle's data
TABLES = {
    "bms-molecular-translation": ("train_labels.csv", "train_labels.csv", "test.csv", "image_id"),
    DOGS: ("labels.csv", "labels.csv", "test.csv", "id"),
    "hotel-id-2021-fgvc8": ("train.csv", "train.csv", "test.csv", "image"),
    "imet-2020-fgvc7": ("train.csv", "train.csv", "answers.csv", "id"),
}


def repeat_rows(path: Path) -> list[str]:
    """Let the first five rows stand at the end again, and give their first cells."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    with path.open("a", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows[1:6])
    return [row[0] for row in rows[1:6]]


@pytest.mark.parametrize("competition_id", TABLES)
def test_every_row_is_split_and_no_file_is_asked_for_twice(competition_id: str, tmp_path: Path) -> None:
    raw_name, train_name, answers_name, column = TABLES[competition_id]
    counts = []

    def change(raw: Path) -> None:
        repeat_rows(raw / raw_name)
        ids = pd.read_csv(raw / raw_name)[column]
        counts.append(int((ids != LEFT_OUT).sum()))

    folder = prepared_after(change, competition_id, "v1", tmp_path)
    parts = [pd.read_csv(folder / "public" / train_name), pd.read_csv(folder / "private" / answers_name)]
    assert sum(map(len, parts)) == counts[0]
    files = [path for path in (folder / "public").rglob("*") if path.suffix in {".png", ".jpg"}]
    assert len(files) == sum(part[column].nunique() for part in parts)


def test_a_repeated_patch_is_in_each_part_that_one_of_its_rows_is_drawn_for(tmp_path: Path) -> None:
    repeated: list[str] = []
    folder = prepared_after(
        lambda raw: repeated.extend(repeat_rows(raw / "train_labels.csv")), TISSUE, "v1", tmp_path
    )
    parts = [pd.read_csv(folder / "public/train_labels.csv"), pd.read_csv(folder / "private/answers.csv")]
    for part in parts:
        counts = part["id"].value_counts()
        assert (counts[counts.index.isin(repeated)] == 2).all()
        assert (counts[~counts.index.isin(repeated)] == 1).all()
    assert set(repeated) <= {name for part in parts for name in part["id"]}
