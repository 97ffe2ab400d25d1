"""Tables of raw data that are no tables any more are refused by name; odd cells become what pandas 2.2 made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.competitions.changed_raw import prepared_after, refused
from tests.conformance.trees import VECTORS, Vector

Change = Callable[[Path], None]


def content(name: str, made: bytes) -> Change:
    def change(raw: Path) -> None:
        (raw / name).write_bytes(made)

    return change


def cell(name: str, column: str, value: str) -> Change:
    """Every cell of a column gets a value."""

    def change(raw: Path) -> None:
        table = pd.read_csv(raw / name, dtype=str, keep_default_na=False)
        table.assign(**{column: value}).to_csv(raw / name, index=False)

    return change


def rows(name: str, count: int) -> Change:
    def change(raw: Path) -> None:
        lines = (raw / name).read_bytes().splitlines(keepends=True)
        (raw / name).write_bytes(b"".join(lines[: count + 1]))

    return change


def folder(name: str) -> Change:
    def change(raw: Path) -> None:
        (raw / name).unlink()
        (raw / name).mkdir()

    return change


SPINE = "rsna-2022-cervical-spine-fracture-detection"


@pytest.mark.parametrize(
    ("competition_id", "change", "message"),
    [
        ("spaceship-titanic", content("train.csv", b"\xb3\xff\0"), "train.csv cannot be read as a table"),
        ("spaceship-titanic", content("train.csv", b""), "it has no column PassengerId, Transported"),
        ("spaceship-titanic", rows("train.csv", 0), "it has no rows"),
        ("spaceship-titanic", folder("train.csv"), "train.csv cannot be read as a table"),
        ("spooky-author-identification", content("train.zip", b"PK"), "train.zip"),
        ("nomad2018-predict-transparent-conductors", content("train.csv.zip", b""), "train.csv.zip"),
        ("osic-pulmonary-fibrosis-progression", cell("train.csv", "Weeks", "one"), "column Weeks holds text"),
        (
            "vinbigdata-chest-xray-abnormalities-detection",
            cell("train.csv", "x_max", "far"),
            "column x_max holds text",
        ),
        ("rsna-breast-cancer-detection", cell("train.csv", "cancer", "no"), "column cancer holds text"),
        (SPINE, rows("train.csv", 4), "train.csv does not match train_bounding_boxes.csv"),
        (
            "stanford-covid-vaccine",
            content("test.json", b'{"id":"a","sequence":"A","seq_length":1,"seq_scored":1,"new":1}\n'),
            "its molecules have 'new'",
        ),
    ],
)
def test_what_is_no_table_any_more_is_refused_by_name(
    competition_id: str, change: Change, message: str, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    change(raw)
    assert message in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(
    ("competition_id", "column", "value", "written"),
    [
        ("plant-pathology-2021-fgvc8", "labels", "N/A", ""),
        ("siim-isic-melanoma-classification", "age_approx", "0.30000000000000004", "0.3"),
        ("osic-pulmonary-fibrosis-progression", "Percent", "0.30000000000000004", "0.30000000000000004"),
    ],
)
def test_odd_cells_are_written_as_pandas_2_wrote_them(
    competition_id: str, column: str, value: str, written: str, tmp_path: Path
) -> None:
    made = prepared_after(cell("train.csv", column, value), competition_id, "v1", tmp_path)
    table = pd.read_csv(made / "public" / "train.csv", dtype=str, keep_default_na=False)
    assert set(table[column]) == {written}
