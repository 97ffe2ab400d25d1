"""`scoreboard`: own experiments beside the published rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.cli.common import Json, new_app, places_of, reading_state, say, say_json, say_table

if TYPE_CHECKING:
    from engine.scoreboard import Evidence, Row, Standing

app = new_app()


class Sorting(StrEnum):
    """What `--sort` takes."""

    ALL = "all"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


@app.command()
def scoreboard(
    context: typer.Context,
    pad: Annotated[bool, typer.Option("--pad", help="Count missing and lost runs as no medal.")] = False,
    split: Annotated[
        list[str] | None, typer.Option(metavar="NAME|FILE", help="A further column; repeatable.")
    ] = None,
    sort: Annotated[Sorting, typer.Option(help="The column to sort the published rows by.")] = Sorting.ALL,
    own_only: Annotated[bool, typer.Option("--own", help="Only own and imported experiments.")] = False,
    json: Json = False,
) -> None:
    """Show own experiments beside the published rows: any-medal % as mean ± SEM over seeds."""
    from competitions import registry
    from engine.scoreboard import imported_evidence, own_evidence, published_rows, row_of
    from state import database

    state_dir = places_of(context).state_dir
    extra = {name: registry.read_split(name) for name in split or []}
    found: tuple[Evidence, ...] = ()
    if database.exists(state_dir):
        with reading_state(context) as opened:
            found = own_evidence(opened)
    own = [row_of(one, pad_missing=pad, user_splits=extra) for one in (*found, *imported_evidence(state_dir))]
    published = () if own_only else published_rows(state_dir)
    ranked = sorted(published, key=lambda row: (row.table != "main", -_mean(row.columns[sort])))
    if json:
        say_json([asdict(row) for row in (*own, *ranked)])
        return
    columns = ["low", "medium", "high", "all", *(split or [])]
    if own:
        say("own experiments, any medal %, mean ± SEM over seeds")
        _say_own(own, columns)
        say()
    if ranked:
        say("published rows (all of real data)")
        _say_published(ranked, columns[:4])


def _say_own(rows: list[Row], columns: list[str]) -> None:
    say_table(
        ("experiment", "agent", "its own", *columns, "h", "seeds", "edition", ""),
        [
            (
                row.name,
                row.agent,
                _cell(row.own),
                *(_cell(row.columns[column]) for column in columns),
                _hours(row.hours),
                _seeds(row),
                row.edition,
                _marks(row),
            )
            for row in rows
        ],
        right=("its own", *columns, "h"),
    )


def _say_published(rows: list[Row], columns: list[str]) -> None:
    say_table(
        ("agent", "llms", *columns, "h", "date", ""),
        [
            (
                row.agent,
                row.llms,
                *(_cell(row.columns[column]) for column in columns),
                _hours(row.hours),
                row.date,
                _marks(row),
            )
            for row in rows
        ],
        right=(*columns, "h"),
        limits={"llms": 32},
    )


def _mean(standing: Standing) -> float:
    return -1.0 if standing.cell is None else standing.cell.mean


def _cell(standing: Standing | None) -> str:
    """A cell, or how much of the split there is to make one of."""
    if standing is None or standing.covered == 0:
        return "-"
    if standing.cell is None:
        return f"{standing.covered}/{standing.of}"
    return str(standing.cell)


def _hours(hours: float | None) -> str:
    return "-" if hours is None else f"{hours:.3g}"


def _seeds(row: Row) -> str:
    planned = "" if row.seeds_planned is None else f" of {row.seeds_planned}"
    return f"{row.seeds_done}{planned}{', running' if row.running else ''}"


def _marks(row: Row) -> str:
    marks: Mapping[str, Any] = {
        "demo: synthetic data, not a result": row.demo,
        "imported": row.table == "imported",
        "padded": row.padded,
        f"{row.rerolled} re-rolled": row.rerolled,
        "additional table": row.table == "additional",
        row.note: row.note,
        row.conflict: row.conflict,
    }
    return "; ".join(mark for mark, holds in marks.items() if holds)
