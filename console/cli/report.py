"""`report`: one self-contained HTML page of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.common import new_app, places_of, reading_state
from console.cli.sources import ExperimentId, Pad, Source, disclosure_for, evidence_for, write_file

app = new_app()


@app.command()
def report(
    context: typer.Context,
    source: Source,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Where the page is written.")
    ],
    experiment_id: ExperimentId = None,
    pad: Pad = False,
) -> None:
    """Write one self-contained HTML page of an experiment: tables, plots, every run."""
    from engine.scoreboard import published_rows, row_of
    from engine.scoreboard.own_runs import curves_of, files_of
    from engine.scoreboard.page import page_of
    from engine.settings import Prices, read_table

    evidence = evidence_for(context, [source], experiment_id)
    row = row_of(evidence, pad_missing=pad)
    disclosure = disclosure_for(context, evidence, row)
    places = places_of(context)
    published, prices = published_rows(places.state_dir), read_table(places.config_file, Prices)
    if evidence.table == "own":
        with reading_state(context) as database:
            page = page_of(
                evidence,
                row,
                disclosure,
                curves=curves_of(database, evidence),
                published=published,
                find_files=lambda trial: files_of(database, trial),
                prices=prices,
            )
    else:
        page = page_of(evidence, row, disclosure, published=published, prices=prices)
    write_file(output, page)
