"""`import`: experiments from MLE-bench's reports onto the scoreboard, and newer published rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.common import new_group, places_of, say
from console.cli.sources import ExperimentId

app = new_group("Import reports of MLE-bench onto the scoreboard, or newer published rows.")


@app.command("reports")
def import_reports(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called on the scoreboard.")],
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Grading reports, a runs folder, a bundle, or a table."),
    ],
    experiment_id: ExperimentId = None,
    agent: Annotated[str, typer.Option(metavar="NAME", help="The agent.")] = "",
    llms: Annotated[str, typer.Option(metavar="NAMES", help="The models that it used.")] = "",
    hours: Annotated[float | None, typer.Option(min=0, help="The time limit of its runs.")] = None,
    hardware: Annotated[str, typer.Option(metavar="TEXT", help="What its runs were given.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of one of that name.")] = False,
) -> None:
    """Put an experiment on the scoreboard from its grading reports, which are copied."""
    from engine.scoreboard import reports
    from engine.scoreboard.reports import About, report_files

    found = report_files(paths, experiment_id)
    about = About(name, agent, llms, hours, hardware)
    evidence = reports.import_reports(places_of(context).state_dir, found, about, replace=replace)
    count = len(evidence.competitions)
    say(f"{name}: {len(evidence.trials)} results of {count} competitions from {len(found)} files")
    if evidence.conflict:
        say(f"it makes no row: {evidence.conflict}")


@app.command("remove")
def remove(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which import.")],
) -> None:
    """Take an imported experiment off the scoreboard; own runs are not touched."""
    from engine.scoreboard.reports import remove_import

    remove_import(places_of(context).state_dir, name)
    say(f"{name} is no longer on the scoreboard")


@app.command("published")
def published(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="CSV", help="A table like the one that comes along.")],
) -> None:
    """Let a newer table of published rows take the place of the one that comes with the program."""
    from engine.scoreboard.published import update_published

    rows = update_published(places_of(context).state_dir, path)
    say(f"{len(rows)} published rows, the newest of {max(row.date for row in rows)}")
