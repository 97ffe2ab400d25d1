"""The rows of the published leaderboard: the table shipped with this project, or a newer one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mlebench_console.competitions.registry import splits
from mlebench_console.engine.scoreboard.model import COLUMNS, Cell, Row, Standing
from mlebench_console.foundation.files import read_csv, write_bytes
from mlebench_console.foundation.folders import make_private
from mlebench_console.foundation.problems import DataProblem, writing

# The file name of a newer table in the state directory.
PUBLISHED_NAME = "published.csv"

_TABLES = ("main", "additional")
_PLAIN = (
    "table",
    "agent",
    "llms",
    "hours",
    "date",
    "source_available",
    "reports_available",
    "padded_missing_seeds",
    "note",
)


def published_rows(state_dir: Path | None = None) -> tuple[Row, ...]:
    """Read the published leaderboard: the newer table of a state directory, or the built-in one.

    Raises:
        DataProblem: the newer table is not valid.
    """
    newer = None if state_dir is None else state_dir / PUBLISHED_NAME
    return _built_in() if newer is None or not newer.is_file() else _read(newer)


def update_published(state_dir: Path, source: Path) -> tuple[Row, ...]:
    """Replace the built-in table with a newer one, after checking that it is valid.

    Raises:
        DataProblem: it is not valid, or can't be saved.
    """
    rows = _read(source)
    with writing(state_dir / PUBLISHED_NAME):
        make_private(state_dir)
        write_bytes(state_dir / PUBLISHED_NAME, source.read_bytes())
    return rows


@cache
def _built_in() -> tuple[Row, ...]:
    return _read(Path(__file__).with_name(PUBLISHED_NAME))


def _read(path: Path) -> tuple[Row, ...]:
    needed = (*_PLAIN, *(f"{column}_{part}" for column in COLUMNS for part in ("mean", "sem")))
    sizes = {column: len(splits()[split]) for column, split in COLUMNS.items()}
    rows = []
    for number, entry in enumerate(read_csv(path, needed, "table of published rows"), start=1):
        try:
            rows.append(_row(entry, sizes))
        except (ValueError, TypeError) as error:
            raise DataProblem(f"{path}, row {number}, is not valid", str(error)) from error
    if not rows:
        raise DataProblem(f"{path} has no rows")
    return tuple(rows)


def _row(entry: dict[str, str], sizes: dict[str, int]) -> Row:
    if entry["table"] not in _TABLES:
        raise ValueError(f"table is '{entry['table']}', not one of {', '.join(_TABLES)}")
    return Row(
        table="main" if entry["table"] == "main" else "additional",
        name=entry["agent"],
        agent=entry["agent"],
        llms=entry["llms"],
        columns={
            column: Standing(_cell(entry[f"{column}_mean"], entry[f"{column}_sem"]), size, size)
            for column, size in sizes.items()
        },
        own=None,
        hours=float(entry["hours"]) if entry["hours"] else None,
        date=entry["date"],
        edition="v1",
        padded=entry["padded_missing_seeds"] == "yes",
        source_available=entry["source_available"] == "yes",
        reports_available=entry["reports_available"] == "yes",
        note=entry["note"],
    )


def _cell(mean: str, sem: str) -> Cell | None:
    """Return a published cell; None where the row lacks that column."""
    return Cell(float(mean), float(sem), None) if mean else None
