from competitions.registry import splits
from engine.scoreboard import COLUMNS, published_rows


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
