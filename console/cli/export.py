"""`export`: a row as text, a bundle to hand in, run groups of MLE-bench, plots."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.common import complain, copy_to_clipboard, new_group, reading_state, say
from console.cli.sources import ExperimentId, Pad, Source, disclosure_for, evidence_for, write_file
from foundation.problems import DataProblem, UsageProblem

if TYPE_CHECKING:
    from engine.scoreboard import Evidence, Row

app = new_group("Export a row, a bundle to hand in, run groups of MLE-bench, or plots.")


class Form(StrEnum):
    """What `--format` takes."""

    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"
    LATEX = "latex"


AgentName = Annotated[str, typer.Option("--agent", metavar="NAME", help="The agent's name in the row.")]
Llms = Annotated[str, typer.Option("--llms", metavar="NAMES", help="The models that it used.")]
Hours = Annotated[
    float | None,
    typer.Option("--hours", min=0, help="The time limit of its runs, where it is not known here."),
]
Date = Annotated[str, typer.Option("--date", metavar="DATE", help="The date in the row.")]
SourceCode = Annotated[
    bool | None, typer.Option("--source-code/--no-source-code", help="Whether the agent's code is public.")
]
ReportsPublic = Annotated[
    bool | None, typer.Option("--reports/--no-reports", help="Whether the grading reports are public.")
]
Splits = Annotated[
    list[str] | None, typer.Option("--split", metavar="NAME|FILE", help="A further column; repeatable.")
]


@app.command("row")
def export_row(
    context: typer.Context,
    source: Source,
    form: Annotated[Form, typer.Option("--format", help="As what to write it.")] = Form.MARKDOWN,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")
    ] = None,
    to_clipboard: Annotated[
        bool, typer.Option("--copy", help="Copy it to the terminal's clipboard.")
    ] = False,
    experiment_id: ExperimentId = None,
    pad: Pad = False,
    split: Splits = None,
    agent: AgentName = "",
    llms: Llms = "",
    hours: Hours = None,
    date: Date = "",
    source_code: SourceCode = None,
    reports: ReportsPublic = None,
) -> None:
    """Write a row with the leaderboard's headings, and with it everything that must be told."""
    from engine.scoreboard import RowFormat, row_text

    evidence = _labelled(context, source, experiment_id, agent, llms, hours)
    row = _row(evidence, pad=pad, splits=split, date=date, source_code=source_code, reports=reports)
    disclosure = disclosure_for(context, evidence, row)
    text = row_text(row, disclosure, RowFormat(form))
    if row.conflict:
        complain(f"{row.name} makes no row: {row.conflict}")
    if to_clipboard:
        copy_to_clipboard(text)
    if output is not None:
        write_file(output, text)
    elif not to_clipboard:
        say(text.rstrip("\n"))
    if row.conflict:
        raise typer.Exit(UsageProblem.exit_code)


@app.command("bundle")
def export_bundle(
    context: typer.Context,
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new folder.")],
    experiment_id: ExperimentId = None,
    pad: Pad = False,
    with_files: Annotated[
        bool, typer.Option("--with-files", help="Also submissions, logs and code of own runs.")
    ] = False,
    agent: AgentName = "",
    llms: Llms = "",
    hours: Hours = None,
    date: Date = "",
    source_code: SourceCode = None,
    reports: ReportsPublic = True,
) -> None:
    """Write reports by seed, their mapping, the row and a manifest with checksums into a new folder."""
    from engine.scoreboard.export import write_bundle
    from engine.scoreboard.own_runs import files_of

    evidence = _labelled(context, source, experiment_id, agent, llms, hours)
    row = _row(evidence, pad=pad, splits=None, date=date, source_code=source_code, reports=reports)
    disclosure = disclosure_for(context, evidence, row)
    if with_files:
        if evidence.table != "own":
            raise UsageProblem(f"there are no files of {evidence.name} here", "it was imported as reports")
        with reading_state(context) as database:
            manifest = write_bundle(
                folder,
                evidence,
                row,
                disclosure,
                now=time.time(),
                find_files=lambda trial: files_of(database, trial),
            )
    else:
        manifest = write_bundle(folder, evidence, row, disclosure, now=time.time())
    say(f"written to {manifest.parent}; its runs folder is what MLE-bench's aggregation reads")


@app.command("runs")
def export_runs(
    context: typer.Context,
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new folder of run groups.")],
    experiment_id: ExperimentId = None,
    pad: Pad = False,
) -> None:
    """Write own runs as MLE-bench's run groups: one a seed, with submissions, logs, code and reports."""
    from engine.scoreboard.export import write_runs
    from engine.scoreboard.own_runs import files_of

    evidence = evidence_for(context, [source], experiment_id)
    if evidence.table != "own":
        raise UsageProblem(f"there are no runs of {evidence.name} here", "it was imported as reports")
    if folder.exists() and any(folder.iterdir()):
        raise UsageProblem(f"{folder} is not empty", "", "Name a new folder.")
    with reading_state(context) as database:
        try:
            runs, groups = write_runs(
                folder,
                evidence,
                pad_missing=pad,
                now=time.time(),
                find_files=lambda trial: files_of(database, trial),
            )
        except OSError as error:
            raise DataProblem(f"{folder} can't be written", error.strerror or str(error)) from error
    say(f"{runs} runs in {groups} run groups in {folder}")


@app.command("plots")
def export_plots(
    context: typer.Context,
    source: Source,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the files are written.")],
    form: Annotated[
        str, typer.Option("--format", metavar="svg|png|pdf", help="png and pdf need the extra 'plots'.")
    ] = "svg",
    experiment_id: ExperimentId = None,
    pad: Pad = False,
) -> None:
    """Draw every plot that there are numbers for into files."""
    from engine.scoreboard import row_of
    from engine.scoreboard.own_runs import curves_of
    from engine.scoreboard.plots import picture, plots_of

    evidence = evidence_for(context, [source], experiment_id)
    if evidence.conflict:
        raise UsageProblem(f"{evidence.name} makes no plots", evidence.conflict)
    row = row_of(evidence, pad_missing=pad)
    if evidence.table == "own":
        with reading_state(context) as database:
            plots = plots_of(evidence, row, curves=curves_of(database, evidence))
    else:
        plots = plots_of(evidence, row)
    drawn = [(plot.key, picture(plot, form)) for plot in plots]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataProblem(f"{folder} can't be made", error.strerror or str(error)) from error
    for key, content in drawn:
        write_file(folder / f"{key}.{form}", content)


def _labelled(
    context: typer.Context,
    source: str,
    experiment_id: str | None,
    agent: str,
    llms: str,
    hours: float | None,
) -> Evidence:
    return evidence_for(context, [source], experiment_id).labelled(agent=agent, llms=llms, hours=hours)


def _row(
    evidence: Evidence,
    *,
    pad: bool,
    splits: list[str] | None,
    date: str,
    source_code: bool | None,
    reports: bool | None,
) -> Row:
    from dataclasses import replace

    from competitions import registry
    from engine.scoreboard import row_of

    row = row_of(
        evidence,
        pad_missing=pad,
        user_splits={name: registry.read_split(name) for name in splits or []},
    )
    return replace(row, date=date or row.date, source_available=source_code, reports_available=reports)
