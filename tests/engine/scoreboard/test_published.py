from importlib.resources import files
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import splits
from mlebench_console.engine.scoreboard.model import COLUMNS
from mlebench_console.engine.scoreboard.published import PUBLISHED_NAME, published_rows, update_published
from mlebench_console.foundation.problems import DataProblem


def test_published_rows_are_complete_and_ordered_best_first() -> None:
    rows = published_rows()
    assert len(rows) == 30
    main = [row.columns["all"].cell for row in rows if row.table == "main"]
    means = [cell.mean for cell in main if cell is not None]
    assert len(means) == len(main) == 28
    assert means == sorted(means, reverse=True)


def test_published_columns_agree_with_the_sizes_of_the_splits() -> None:
    """A row's `all` is its three parts, weighted by their sizes, but for the rounding of the source."""
    sizes = {column: len(splits()[split]) for column, split in COLUMNS.items()}
    assert sizes == {"low": 22, "medium": 38, "high": 15, "all": 75}
    off = []
    for row in published_rows():
        cells = {column: standing.cell for column, standing in row.columns.items()}
        parts = sum(sizes[column] * cell.mean for column, cell in cells.items() if cell and column != "all")
        whole = cells["all"]
        assert whole is not None
        if abs(parts / sizes["all"] - whole.mean) > 0.05:
            off.append(row.name)
    # As published: the mean of its parts is 1.33, its `all` says 1.60.
    assert off == ["MLAB"]


def test_footnotes_come_with_the_rows() -> None:
    noted = {row.name: row.note for row in published_rows() if row.note}
    assert noted["Disarray"] == "test-set feedback"
    padded = {row.name for row in published_rows() if row.padded}
    assert "Operand ensemble" in padded


def test_a_newer_table_takes_the_place_of_the_one_that_comes_along(tmp_path: Path) -> None:
    built_in = (
        files("mlebench_console.engine.scoreboard").joinpath(PUBLISHED_NAME).read_text(encoding="utf-8")
    )
    newer = tmp_path / "newer.csv"
    head, first, *_ = built_in.splitlines()
    newer.write_text(
        f"{head}\n{first.replace('Famou-Agent 2.0', 'Newcomer')}\nmain,Partial,x,50,1,,,,,,,,2027-01-01,no,no,no,\n"
    )
    update_published(tmp_path / "state", newer)
    rows = published_rows(tmp_path / "state")
    assert [row.name for row in rows] == ["Newcomer", "Partial"]
    assert (rows[1].columns["medium"].cell, rows[1].hours) == (None, None)
    assert published_rows(tmp_path)[0].name == "Famou-Agent 2.0"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("table,agent", "agent", "no column table"),
        ("80.3,", "much,", "row 1, is not valid"),
        ("main,Famou", "top,Famou", "table is 'top'"),
    ],
)
def test_a_table_that_cannot_be_read_replaces_nothing(tmp_path: Path, old: str, new: str, said: str) -> None:
    built_in = (
        files("mlebench_console.engine.scoreboard").joinpath(PUBLISHED_NAME).read_text(encoding="utf-8")
    )
    newer = tmp_path / "newer.csv"
    newer.write_text(built_in.replace(old, new, 1))
    with pytest.raises(DataProblem, match=said):
        update_published(tmp_path, newer)
    assert not (tmp_path / PUBLISHED_NAME).exists()
