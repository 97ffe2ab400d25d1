"""`export`: a row as text, a bundle, run groups of MLE-bench, plots; and `report`: one HTML page of an experiment."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from mlebench_console.competitions import registry
from mlebench_console.console.cli.common import Context, new_app, new_group
from mlebench_console.console.cli.output import copy_to_clipboard, say, say_json, say_on_stderr
from mlebench_console.console.cli.results.scoreboard import ExperimentId, Pad, Source, evidence_for
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.export import (
    RowFormat,
    disclose,
    row_document,
    row_text,
    shortcomings,
    write_bundle,
    write_runs,
)
from mlebench_console.engine.scoreboard.model import Row
from mlebench_console.engine.settings import Prices, read_table
from mlebench_console.foundation.files import write_bytes
from mlebench_console.foundation.problems import UsageProblem, writing
from mlebench_console.foundation.text import plural
from mlebench_console.state import sweeps

app = new_app()
export_app = new_group()
app.add_typer(export_app, name="export")

AgentName = Annotated[str, Option("--agent", metavar="NAME", help="The agent's name in the row.")]
Llms = Annotated[str, Option("--llms", metavar="NAMES", help="The models that it used.")]
Hours = Annotated[
    float | None, Option("--hours", min=0, help="The time limit of its runs, if it is not known here.")
]
Date = Annotated[str, Option("--date", metavar="DATE", help="The date in the row.")]
SourceCode = Annotated[
    bool | None, Option("--source-code/--no-source-code", help="Whether the agent's code is public.")
]
ReportsPublic = Annotated[
    bool | None, Option("--reports/--no-reports", help="Whether the grading reports are public.")
]
Splits = Annotated[
    list[str] | None, Option("--split", metavar="NAME|FILE", help="An additional column; repeatable.")
]


@export_app.command("row")
def export_row(
    context: Context,
    source: Source,
    form: Annotated[RowFormat, Option("--format", help="The format to write.")] = RowFormat.MARKDOWN,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="FILE", help="Write it to a file.")
    ] = None,
    to_clipboard: Annotated[bool, Option("--copy", help="Copy it to the terminal's clipboard.")] = False,
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
    """Write a row with the leaderboard's headings, and the conditions behind it."""
    evidence = evidence_for(context, [source], experiment_id).labelled(agent=agent, llms=llms, hours=hours)
    splits = {name: registry.read_split(name) for name in split or []}
    row = _described(
        row_of(evidence, pad_missing=pad, user_splits=splits), date, source_code=source_code, reports=reports
    )
    disclosure = disclose(evidence, row)
    text = row_text(row, disclosure, form)
    if row.conflict:
        say_on_stderr(f"{row.name} does not make a row: {row.conflict}")
    if to_clipboard:
        copy_to_clipboard(text)
    if output is not None:
        _write_file(output, text)
    if context.json:
        say_json(row_document(row, disclosure))
    elif output is not None:
        _say_written(context, (output,))
    elif not to_clipboard:
        say(text.rstrip("\n"))
    if row.conflict:
        raise typer.Exit(UsageProblem.exit_code)
    if not context.json:
        _complain_of(shortcomings(row, disclosure))


@export_app.command("bundle")
def export_bundle(
    context: Context,
    source: Source,
    folder: Annotated[Path, Argument(metavar="DIR", help="The new folder.")],
    experiment_id: ExperimentId = None,
    pad: Pad = False,
    with_files: Annotated[bool, Option(help="Also logs, code and recorded model calls of own runs.")] = False,
    agent: AgentName = "",
    llms: Llms = "",
    hours: Hours = None,
    date: Date = "",
    source_code: SourceCode = None,
    reports: ReportsPublic = True,
) -> None:
    """Write reports by seed, the row, checksums, and of own runs audit trails and submissions into a new folder."""
    evidence = evidence_for(context, [source], experiment_id).labelled(agent=agent, llms=llms, hours=hours)
    if with_files and evidence.table != "own":
        raise UsageProblem(f"there are no files of {evidence.name} here", "it was imported as reports")
    row = _described(row_of(evidence, pad_missing=pad), date, source_code=source_code, reports=reports)
    state_dir = context.places.state_dir
    manifest = write_bundle(
        folder, evidence, row, now=time.time(), with_files=with_files, state_dir=state_dir
    )
    text = f"written to {manifest.parent}; its runs folder is what MLE-bench's aggregation reads"
    context.say_result({"folder": str(manifest.parent), "manifest": str(manifest)}, text)


@export_app.command("runs")
def export_runs(
    context: Context,
    source: Source,
    folder: Annotated[Path, Argument(metavar="DIR", help="The new folder of run groups.")],
    experiment_id: ExperimentId = None,
    pad: Pad = False,
) -> None:
    """Write own runs as MLE-bench's run groups: one for each seed, with submissions, logs, code and reports."""
    evidence = evidence_for(context, [source], experiment_id)
    if evidence.table != "own":
        raise UsageProblem(f"there are no runs of {evidence.name} here", "it was imported as reports")
    if folder.exists() and any(folder.iterdir()):
        raise UsageProblem(f"{folder} is not empty", "", "Name a new folder.")
    with writing(folder):
        runs, groups = write_runs(folder, evidence, pad_missing=pad, now=time.time(), with_files=True)
    text = f"{runs} runs in {groups} run groups in {folder}"
    context.say_result({"folder": str(folder), "runs": runs, "groups": groups}, text)


@export_app.command("plots")
def export_plots(
    context: Context,
    source: Source,
    folder: Annotated[Path, Argument(metavar="DIR", help="Where to write the files.")],
    form: Annotated[
        str, Option("--format", metavar="svg|png|pdf", help="png and pdf need the extra 'plots'.")
    ] = "svg",
    experiment_id: ExperimentId = None,
    pad: Pad = False,
) -> None:
    """Draw all plots for which there is data, as files."""
    from mlebench_console.engine.scoreboard.plots import picture, plots_of

    evidence = evidence_for(context, [source], experiment_id)
    if evidence.conflict:
        raise UsageProblem(f"{evidence.name} can't be plotted", evidence.conflict)
    plots = plots_of(evidence, row_of(evidence, pad_missing=pad))
    drawn = {folder / f"{plot.key}.{form}": picture(plot, form) for plot in plots}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for path, content in drawn.items():
        _write_file(path, content)
    _say_written(context, tuple(drawn))


@app.command()
def report(
    context: Context,
    source: Source,
    output: Annotated[Path, Option("--output", "-o", metavar="FILE", help="Where to write the page.")],
    experiment_id: ExperimentId = None,
    pad: Pad = False,
) -> None:
    """Write one self-contained HTML page of an experiment: tables, plots, every run."""
    from mlebench_console.console.nouns.need import need_text
    from mlebench_console.engine.control import status
    from mlebench_console.engine.needs.needs import needs, read_needs
    from mlebench_console.engine.scoreboard.page import page_of
    from mlebench_console.engine.scoreboard.published import published_rows
    from mlebench_console.engine.scoreboard.timeline import read_timeline

    evidence = evidence_for(context, [source], experiment_id)
    row = row_of(evidence, pad_missing=pad)
    places = context.places
    published, prices = published_rows(places.state_dir), read_table(places.config_file, Prices)
    timeline, now = None, time.time()
    texts: list[str] = []
    if evidence.sweep_ids:
        with context.reading_state() as database:
            chosen = [sweeps.get(database, name) for name in evidence.sweep_ids]
            timeline = read_timeline(database, chosen, now)
            needed = needs(read_needs(database), status(places), now).of_sweeps(evidence.sweep_ids)
            texts = [need_text(need, now) for need in needed]
    page = page_of(evidence, row, published=published, prices=prices, timeline=timeline, needs=texts)
    _write_file(output, page)
    _say_written(context, (output,))


def _described(row: Row, date: str, *, source_code: bool | None, reports: bool | None) -> Row:
    return replace(row, date=date or row.date, source_available=source_code, reports_available=reports)


# How what a row lacks is mended.
_MENDED_BY = {
    "agent": "--agent names it",
    "models": "--llms names them",
    "integrity": "see 'mlebench-console integrity'",
}


def _complain_of(lacking: Sequence[tuple[str, str]]) -> None:
    """Print to standard error, behind the row, what it lacks before it is ready for the leaderboard."""
    if not lacking:
        return
    sys.stdout.flush()
    say_on_stderr(f"not ready for the leaderboard: {plural(len(lacking), 'thing is', 'things are')} missing")
    for about, text in lacking:
        mended = _MENDED_BY.get(about)
        say_on_stderr(f"  {about:<12}  {text}{f': {mended}' if mended else ''}")


def _write_file(path: Path, content: str | bytes) -> None:
    with writing(path):
        write_bytes(path, content.encode() if isinstance(content, str) else content)


def _say_written(context: Context, paths: Sequence[Path]) -> None:
    """Print the names of the written files."""
    names = [str(path) for path in paths]
    context.say_result({"files": names}, *(f"written to {name}" for name in names))
