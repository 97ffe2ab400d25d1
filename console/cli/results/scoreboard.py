"""`scoreboard`, `aggregate`, `compare`, `insight` and `import`: own experiments among the published rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from mlebench_console.competitions import registry
from mlebench_console.console.cli.common import Context, new_app, new_group
from mlebench_console.console.cli.output import say, say_json, say_on_stderr, say_rows, say_texts, say_wrapped
from mlebench_console.engine.settings import Prices, read_table
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.state import database

if TYPE_CHECKING:
    from mlebench_console.engine.scoreboard.model import Cell, Costs, Evidence, Measure, Row

app = new_app()
import_app = new_group()
app.add_typer(import_app, name="import")

Source = Annotated[
    str,
    Argument(
        metavar="SOURCE",
        help="An experiment, sweep or import, or a path to reports, a runs folder or a table.",
    ),
]
Sources = Annotated[
    list[str],
    Argument(
        metavar="SOURCE...", help="An experiment, sweep or import, or reports, a runs folder or a table."
    ),
]
ExperimentId = Annotated[
    str | None, Option(metavar="ID", help="Which experiment of a runs folder's run_group_experiments.csv.")
]
Pad = Annotated[bool, Option("--pad-missing", "--pad", help="Count missing and lost runs as no medal.")]


By = Literal["split", "category", "competition"]


def evidence_for(context: Context, sources: Sequence[str], experiment_id: str | None = None) -> Evidence:
    """Load the evidence that the sources of a command name."""
    from mlebench_console.engine.scoreboard.reports import load_evidence

    state_dir, prices = context.places.state_dir, context.prices
    return load_evidence(sources, state_dir=state_dir, experiment_id=experiment_id, prices=prices)


@app.command()
def scoreboard(
    context: Context,
    pad: Annotated[bool, Option(help="Count missing and lost runs as no medal.")] = False,
    split: Annotated[
        list[str] | None, Option(metavar="NAME|FILE", help="An additional column; repeatable.")
    ] = None,
    sort: Annotated[
        Literal["all", "low", "medium", "high"], Option(help="The column to sort the published rows by.")
    ] = "all",
    own_only: Annotated[bool, Option("--own", help="Only own and imported experiments.")] = False,
) -> None:
    """Show own experiments beside the published rows: any-medal % as mean ± SEM over seeds."""
    from mlebench_console.console.nouns.scoreboard import SCOREBOARD_ROW, split_field
    from mlebench_console.console.views import scoreboard as view
    from mlebench_console.engine.scoreboard.aggregation import row_of
    from mlebench_console.engine.scoreboard.model import COLUMNS
    from mlebench_console.engine.scoreboard.own_runs import own_evidence
    from mlebench_console.engine.scoreboard.published import published_rows
    from mlebench_console.engine.scoreboard.reports import imported_evidence

    places = context.places
    state_dir = places.state_dir
    user_splits = {name: registry.read_split(name) for name in split or []}
    found: tuple[Evidence, ...] = ()
    if database.exists(state_dir):
        with context.reading_state() as opened:
            found = own_evidence(opened, context.prices)
    own = [
        row_of(one, pad_missing=pad, user_splits=user_splits)
        for one in (*found, *imported_evidence(state_dir))
    ]

    def rank(row: Row) -> tuple[bool, float]:
        cell = row.columns[sort].cell
        return row.table != "main", 1.0 if cell is None else -cell.mean

    published = [] if own_only else sorted(published_rows(state_dir), key=rank)
    if context.json:
        say_json([SCOREBOARD_ROW.document(row, 0.0) for row in (*own, *published)])
        return
    splits = " ".join(COLUMNS)
    if own:
        say("own experiments, any medal %, mean ± SEM over seeds")
        before = SCOREBOARD_ROW.columns(f"experiment agent models own {splits}")
        after = SCOREBOARD_ROW.columns("covered tokens usd_run usd_medal edition hours date seeds notes")
        say_rows((*before, *map(split_field, user_splits), *after), own)
    # All of them are published: a column of tables would say the same in each row.
    columns = SCOREBOARD_ROW.columns(f"agent models {splits} hours date notes")
    for table, title in (("main", "published rows (all of real data)"), ("additional", view.ADDITIONAL)):
        shown = [row for row in published if row.table == table]
        if shown:
            if own or table == "additional":
                say()
            say_wrapped(title)
            say_rows(columns, shown)


@app.command()
def aggregate(
    context: Context,
    sources: Sources,
    experiment_id: ExperimentId = None,
    split: Annotated[
        list[str] | None,
        Option(metavar="NAME|FILE", help="Only this split; repeatable. Low, medium, high, all."),
    ] = None,
    pad: Pad = False,
    num_seeds: Annotated[int, Option(metavar="N", help="How many seeds to take; -1 for all.", min=-1)] = -1,
    by: Annotated[By, Option(help="How to break the row down.")] = "split",
) -> None:
    """Aggregate runs, grading reports or a table of outcomes: percentages as mean ± SEM over seeds."""
    from mlebench_console.console.nouns.scoreboard import COSTS
    from mlebench_console.engine.scoreboard.export import measures_document
    from mlebench_console.engine.scoreboard.model import MEASURES_BY_INTEREST

    evidence = evidence_for(context, sources, experiment_id)
    lines = _aggregated(evidence, split, by, pad=pad, seeds=num_seeds)
    edition = evidence.conditions.edition
    if context.json:
        say_json(
            {
                "name": evidence.name,
                "edition": edition,
                "padded": pad,
                "note": evidence.note,
                "lines": [
                    {
                        "name": name,
                        "runs_of": covered,
                        "measures": measures_document(measures),
                        **({"model_costs": costs and costs.document()} if by == "competition" else {}),
                    }
                    for name, covered, measures, costs in lines
                ],
            }
        )
        return
    say(f"{evidence.name}, edition {edition}, mean ± SEM over seeds{', padded' if pad else ''}")
    if evidence.note:
        say_on_stderr(evidence.note)
    medal, *others = MEASURES_BY_INTEREST
    headings = ("runs of", "seeds", medal.words, "95 % (Wilson)", *(measure.words for measure in others))
    rows: list[tuple[str, ...]] = []
    known = [title for title, text in COSTS.items() if any(text(costs) for *_line, costs in lines)]
    headings += tuple(known)
    for name, covered, measures, costs in lines:
        cells = ["-"] * (len(headings) - len(known) - 1)
        if measures:
            interval = measures[medal].wilson()
            within = "-" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
            cells = [str(measures[medal].n), measures[medal].figures(), within]
            cells += [measures[measure].figures() for measure in others]
        rows.append((name, covered, *cells, *(COSTS[title](costs) for title in known)))
    say_texts((by, *headings), rows, right=headings)


def _aggregated(
    evidence: Evidence, split: list[str] | None, by: By, *, pad: bool, seeds: int
) -> list[tuple[str, str, Mapping[Measure, Cell], Costs | None]]:
    """Return the columns: names, numbers of runs, measures, and by competition the costs of model calls."""
    from mlebench_console.engine.scoreboard.aggregation import (
        aggregate,
        by_category,
        by_complexity,
        costs_of,
        measures_on,
        row_of,
    )

    if evidence.conflict:
        raise UsageProblem(
            f"{evidence.name} does not make a row", evidence.conflict, "Aggregate each part separately."
        )
    if by == "competition":
        wanted = None if split is None else {one for name in split for one in registry.read_split(name)}
        results = evidence.results()
        return [
            (
                name,
                str(len(trials := evidence.by_competition[name])),
                aggregate(results, [name]) if name in results else {},
                costs_of(trials, evidence.prices),
            )
            for names in by_complexity(evidence.competitions).values()
            for name in names
            if wanted is None or name in wanted
        ]
    if by == "category":
        standings = by_category(evidence, pad_missing=pad)
        return [(name, f"{one.covered}/{one.of}", one.measures, None) for name, one in standings.items()]
    if split is None and seeds < 0:
        standings = row_of(evidence, pad_missing=pad).columns
        return [(name, f"{one.covered}/{one.of}", one.measures, None) for name, one in standings.items()]
    have = set(evidence.competitions)
    found: list[tuple[str, str, Mapping[Measure, Cell], Costs | None]] = []
    for name in split or ("split75",):
        members = registry.read_split(name)
        measures = measures_on(evidence, members, pad_missing=pad, seeds=seeds)
        found.append((name, f"{len(have & set(members))}/{len(members)}", measures, None))
    return found


@app.command()
def compare(
    context: Context,
    first: Source,
    second: Source,
    measure: Annotated[
        str, Option(metavar="NAME", help="What to compare: any_medal, gold, above_median, valid, ...")
    ] = "any_medal",
    everything: Annotated[bool, Option(help="Also competitions without a difference.")] = False,
) -> None:
    """Compare two experiments by competition, with an exact permutation test and the competitions that decide."""
    from mlebench_console.console.nouns.comparison import DIFFERENCE, DUEL
    from mlebench_console.console.views import scoreboard as view
    from mlebench_console.engine.scoreboard.comparison import compare as compare_evidence
    from mlebench_console.engine.scoreboard.model import Measure

    if measure not in list(Measure):
        raise UsageProblem(f"there is no measure '{measure}'", "", f"Choose one of {', '.join(Measure)}.")
    chosen = evidence_for(context, [first]), evidence_for(context, [second])
    found = compare_evidence(*chosen, measure=Measure(measure))
    if context.json:
        say_json(asdict(found))
        return
    say(f"A {found.first} against B {found.second}, {found.measure.words}, paired by competition")
    for caveat in found.caveats:
        say(f"caution: {caveat}")
    say()
    say_rows(DIFFERENCE.fields, view.differences_of(found))
    say()
    say_wrapped(found.verdict)
    if found.worth_of_names:
        say(found.worth_of_names)
    for line in view.compared_costs(found):
        say(line)
    shown = found.duels if everything else found.deciding
    if shown:
        say()
        say_rows(DUEL.columns("competition split A B points A_scores B_scores A_usd B_usd"), shown)
    if found.left_out:
        say()
        say(f"only one has results of: {', '.join(found.left_out)}")


@app.command()
def insight(
    context: Context,
    sources: Sources,
    experiment_id: ExperimentId = None,
    run_hour: Annotated[
        float | None,
        Option(min=0, metavar="PRICE", help="What an hour of a run costs, instead of [prices] run_hour."),
    ] = None,
    gpu_hour: Annotated[
        float | None,
        Option(min=0, metavar="PRICE", help="What an hour of a GPU costs, instead of [prices] gpu_hour."),
    ] = None,
) -> None:
    """Show what an experiment says beyond its row: pass@k, shorter limits, endings, noise, effort, flags."""
    from mlebench_console.engine.scoreboard.insight import insight_of

    evidence = evidence_for(context, sources, experiment_id)
    known = read_table(context.places.config_file, Prices)
    prices = Prices(
        known.run_hour if run_hour is None else run_hour,
        known.gpu_hour if gpu_hour is None else gpu_hour,
        known.currency,
    )
    found = insight_of(evidence, prices)
    if context.json:
        say_json({"name": evidence.name, **found.document()})
        return
    for part in found.endings:
        counts = ", ".join(f"{count} {ending}" for ending, count in part.counts.items())
        say_wrapped(f"{part.split:<7} {part.runs:>4} runs: {counts}")
    say()
    for name, text in found.facts():
        say_wrapped(f"{name}: {text}")
    if found.flags:
        say()
        say_texts(
            ("competition", "flag", "what"),
            [(flag.competition_id, flag.kind, flag.text) for flag in found.flags],
        )


@import_app.command("reports")
def import_reports(
    context: Context,
    name: Annotated[str, Argument(metavar="NAME", help="Its name on the scoreboard.")],
    paths: Annotated[
        list[Path], Argument(metavar="PATH...", help="Grading reports, a runs folder, a bundle, or a table.")
    ],
    experiment_id: ExperimentId = None,
    agent: Annotated[str, Option(metavar="NAME", help="The agent.")] = "",
    llms: Annotated[str, Option(metavar="NAMES", help="The models that it used.")] = "",
    hours: Annotated[float | None, Option(min=0, help="The time limit of its runs.")] = None,
    hardware: Annotated[str, Option(metavar="TEXT", help="What its runs were given.")] = "",
    replace: Annotated[bool, Option(help="Replace an import of that name.")] = False,
) -> None:
    """Put an experiment on the scoreboard from its grading reports, which are copied."""
    from mlebench_console.engine.scoreboard import reports

    found, note = reports.report_files(paths, experiment_id)
    about = reports.About(name, agent, llms, hours, hardware)
    evidence = reports.import_reports(context.places.state_dir, found, about, replace=replace)
    count = len(evidence.competitions)
    for text in filter(None, (evidence.note, note)):
        say_on_stderr(text)
    told = {"name": name, "results": len(evidence.trials), "competitions": count, "files": len(found)}
    context.say_result(
        told | {"conflict": evidence.conflict},
        f"{name}: {len(evidence.trials)} results of {count} competitions from {len(found)} files",
        *([f"it does not make a row: {evidence.conflict}"] if evidence.conflict else []),
    )


@import_app.command("remove")
def remove_import(
    context: Context, name: Annotated[str, Argument(metavar="NAME", help="Which import.")]
) -> None:
    """Remove an imported experiment from the scoreboard; own runs are not changed."""
    from mlebench_console.engine.scoreboard import reports

    reports.remove_import(context.places.state_dir, name)
    context.say_result({"name": name}, f"{name} is no longer on the scoreboard")


@import_app.command("published")
def import_published(
    context: Context, path: Annotated[Path, Argument(metavar="CSV", help="A table like the built-in one.")]
) -> None:
    """Replace the built-in table of published rows by a newer one."""
    from mlebench_console.engine.scoreboard.published import update_published

    rows = update_published(context.places.state_dir, path)
    newest = max(row.date for row in rows)
    text = f"{len(rows)} published rows, the newest of {newest}"
    context.say_result({"rows": len(rows), "newest": newest}, text)
