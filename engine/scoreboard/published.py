"""The published rows that come with this project; it reads them and judges nothing."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

from competitions.registry import splits
from engine.scoreboard.model import COLUMNS, Cell, Row, Standing


@cache
def published_rows() -> tuple[Row, ...]:
    """Read the published leaderboard, main table first, best first within each table."""
    text = files("engine.scoreboard").joinpath("published.csv").read_text(encoding="utf-8")
    sizes = {column: len(splits()[split]) for column, split in COLUMNS.items()}
    return tuple(_row(entry, sizes) for entry in csv.DictReader(text.splitlines()))


def _row(entry: dict[str, str], sizes: dict[str, int]) -> Row:
    return Row(
        table="main" if entry["table"] == "main" else "additional",
        name=entry["agent"],
        agent=entry["agent"],
        llms=entry["llms"],
        columns={
            column: Standing(
                Cell(float(entry[f"{column}_mean"]), float(entry[f"{column}_sem"]), None), size, size
            )
            for column, size in sizes.items()
        },
        own=None,
        hours=float(entry["hours"]),
        date=entry["date"],
        edition="v1",
        padded=entry["padded_missing_seeds"] == "yes",
        source_available=entry["source_available"] == "yes",
        reports_available=entry["reports_available"] == "yes",
        note=entry["note"],
    )
