"""`sweep`: launch an agent on competitions and seeds, and steer what was launched."""

from __future__ import annotations

import inspect
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mlebench_console.console import wording
from mlebench_console.console.actions import sweep as actions
from mlebench_console.console.actions.action import Action
from mlebench_console.console.cli.common import Context, EditionFlag, new_group
from mlebench_console.console.cli.output import (
    say,
    say_checks,
    say_json,
    say_on_stderr,
    say_rows,
    say_texts,
    say_wrapped,
)
from mlebench_console.console.cli.run import (
    IN_SWEEP,
    NoteText,
    RemoveNote,
    RemoveTags,
    Tags,
    Yes,
    annotate,
    changed_note,
    changed_tags,
    say_notes,
)
from mlebench_console.console.cli.status import ONE_SWEEP, SWEEPS, spec_text
from mlebench_console.engine.control import ask, status
from mlebench_console.engine.options.sweep import OPTIONS, SweepOptions
from mlebench_console.engine.options.sweep import Option as SweepOption
from mlebench_console.engine.requests import (
    AssignExperiment,
    ImportSweep,
    PauseSweep,
    ResumeSweep,
    SetBudget,
    SetConcurrency,
    SetPriority,
    StopSweep,
    SweepRequest,
)
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.fields import flat
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import experiments, runs, sweeps
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import Sweep
from mlebench_console.state.usage import budgets, model_calls
from mlebench_console.state.usage.budgets import BudgetScope

if TYPE_CHECKING:
    from mlebench_console.engine.requests import LaunchSweep
    from mlebench_console.engine.sweeps.forecast import Forecast

_RUNS_SHOWN = 12
_REMOVAL_PATIENCE = 30.0

app = new_group()

SweepId = Annotated[str, Argument(metavar="SWEEP", help="Its name, or an unambiguous beginning of it.")]


def _with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each option of a sweep, which it takes as `**given`."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    flags = [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_flag(option))
        for option in OPTIONS
        if option.has_flag
    ]
    *first, dry_run = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD]
    parameters = [*first, *flags, dry_run.replace(kind=dry_run.KEYWORD_ONLY)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what Typer reads
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _flag(option: SweepOption) -> Any:
    kind: Any = Path if option.is_path else list[str] if option.type is tuple else option.type
    if option.choices:
        make_enum: Any = StrEnum
        kind = make_enum(option.name, {choice.upper(): choice for choice in option.choices})
    least = -math.inf if option.bounds is None else max(option.bounds.least, option.bounds.above)
    flag = Option(
        f"--{option.name.replace('_', '-')}",
        *(["-c"] if option.name == "competitions" else []),
        help=option.help if option.default is None else f"{option.help} [default: {_default(option)}]",
        metavar=option.metavar,
        min=least if math.isfinite(least) else None,
        show_default=False,
    )
    return Annotated[kind | None, flag]


def _default(option: SweepOption) -> str:
    return str(option.default).removesuffix(".0")


def _given(flags: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the values of the given flags, by option."""
    for name, value in flags.items():
        if name == "competitions":
            value = [piece.strip() for text in value or () for piece in text.split(",") if piece.strip()]
        if isinstance(value, list):
            value = tuple(value) or None
        if isinstance(value, Path):
            value = str(value)
        if value is not None:
            yield name, value


@app.command()
@_with_flags
def launch(
    context: Context,
    file: Annotated[
        Path | None,
        Argument(metavar="[FILE]", help="A sweep as TOML, keys named as these flags are; flags win over it."),
    ] = None,
    dry_run: Annotated[
        bool, Option(help="Only show what would start, what is missing and how long it takes.")
    ] = False,
    **flags: Any,
) -> None:
    """Launch a sweep: an agent on competitions, with several seeds each."""
    from mlebench_console.engine.options.sweep import read_toml, resolve

    options = SweepOptions(**dict(_given(flags)))
    launch = resolve(options if file is None else options.over(read_toml(file)), context.places)
    if dry_run:
        _dry_run(context, launch)
    else:
        context.perform(Action((launch,)), starting=True)


def _dry_run(context: Context, launch: LaunchSweep) -> None:
    from mlebench_console.engine.sweeps.forecast import forecast

    found = forecast(launch, context.places, starts_engine=True)
    if context.json:
        checks = [one.document() for one in found.checks]
        say_json(
            {
                "launch": flat(launch),
                "can_launch": found.can_launch,
                **asdict(found),
                "checks": checks,
                "jobs": None if found.jobs is None else found.jobs.document(),
            }
        )
    else:
        _say_forecast(launch, found)
    if not found.can_launch:
        raise typer.Exit(EnvironmentProblem.exit_code)


def _say_forecast(launch: LaunchSweep, found: Forecast) -> None:
    """Print what would start, what is missing with its next steps, and how long it takes."""
    spec = launch.spec
    say(
        f"{spec.agent_id} on {spec.extent},"
        f" at most {wording.duration(spec.conditions.time_limit_seconds)} each: {plural(launch.run_count, 'run')}"
    )
    say(_time_text(found))
    if room := wording.room_left(found):
        say(f"WARNING  {room}")
        say(f"         --concurrency {found.fit_at_once} uses it.")
    say(wording.launch_cost(found, launch))
    say()
    if found.jobs is not None:
        for line in wording.jobs_forecast(found.jobs, time.time()):
            say(line)
        say()
    say_checks(found.checks)
    if found.planned:
        say()
        shown = found.planned[:_RUNS_SHOWN]
        say_texts(
            ("starts after", "competition", "seed", "takes"),
            [
                (
                    wording.duration(run.starts_after),
                    run.competition_id,
                    str(run.seed),
                    f"{'about' if run.measured else 'at most'} {wording.duration(run.seconds)}",
                )
                for run in shown
            ],
            right=("starts after", "seed"),
        )
        more = len(found.planned) - len(shown)
        if more:
            say(f"and {more} more")
    say()
    say("nothing was launched" if found.can_launch else "this can't be launched yet")


def _time_text(found: Forecast) -> str:
    """Return how long the sweep takes, and what limits the runs at once."""
    if not found.planned:
        return f"no run can ever start: there are too few {found.bound_by}"
    at_once = f"{found.at_once} at once, limited by {found.bound_by}"
    at_most = f"at most {wording.duration(found.seconds_at_most)} in all"
    if not found.measured:
        return f"{at_once}; {at_most}; how long this agent takes is not known yet"
    source = "earlier runs" if found.measured == len(found.planned) else f"earlier runs of {found.measured}"
    return f"{at_once}; about {wording.duration(found.seconds)} in all, judging by {source}; {at_most}"


@app.command("import")
def import_groups(
    context: Context,
    folder: Annotated[Path, Argument(metavar="DIR", help="A run group, or a runs folder that holds some.")],
    name: Annotated[str, Option(metavar="NAME", help="The sweep's name.")],
    agent: Annotated[
        str | None, Option(metavar="NAME", help="The agent; the group's name if not given.")
    ] = None,
    hours: Annotated[
        float | None, Option(min=0.0, help="The time limit that its runs had, if you know it.")
    ] = None,
    edition: EditionFlag = "v1",
    experiment: Annotated[str, Option(metavar="NAME", help="The leaderboard row it belongs to.")] = "",
) -> None:
    """Import run groups of MLE-bench as a sweep: the agents' files are copied and graded again."""
    from mlebench_console.engine.rungroups import METADATA, folders_without_metadata
    from mlebench_console.engine.sweeps.imports import agent_of_group, staged

    places = context.places
    left_out = () if (folder / METADATA).is_file() else folders_without_metadata(folder)
    with staged(places, folder) as (place, found):
        request = ImportSweep(
            place=place,
            name=name,
            agent_id=agent or agent_of_group(folder) or "unknown",
            edition=edition,
            time_limit_seconds=None if hours is None else hours * 3600,
            experiment=experiment,
        )
        answer = ask(places, request)
    if left_out:
        say_on_stderr(f"left out, there is no {METADATA} in them: {', '.join(left_out)}")
    context.say_answer(answer, runs=[asdict(run) for run in found], left_out=list(left_out))


@app.command("list")
def list_(context: Context) -> None:
    """List the sweeps, newest first."""
    from mlebench_console.console.nouns.sweep import SWEEP, SweepRow
    from mlebench_console.console.views.sweep import listed_sweeps
    from mlebench_console.engine.needs.standing import read_standings

    now = time.time()
    with context.reading_state() as database:
        known = read_standings(database, listed_sweeps(database), now)
    engine = status(context.places)
    rows = [SweepRow(one, engine) for one in known]
    context.say_list(SWEEP, rows, SWEEPS, nothing="no sweeps yet")


@app.command()
def show(
    context: Context,
    sweep_id: SweepId,
    toml: Annotated[bool, Option(help="Print it as the file that 'sweep launch' takes.")] = False,
) -> None:
    """Show one sweep: what was asked for, and every run."""
    from mlebench_console.console.nouns.costs import KnownPrices, sweep_costs
    from mlebench_console.console.nouns.run import RUN, run_rows
    from mlebench_console.console.nouns.sweep import SWEEP, SweepRow
    from mlebench_console.engine.needs.needs import budget_text
    from mlebench_console.engine.needs.standing import read_standings

    with context.reading_state() as database:
        sweep, now = sweeps.get(database, sweep_id), time.time()
        members = runs.of_sweep(database, sweep.id)
        (line,) = read_standings(database, [sweep], now, {sweep.id: members})
        elsewhere = runs.placed_elsewhere(database, sweep.id)
        rows = experiments.of_sweep(database, sweep.id)
        uses = model_calls.by_run(database, sweep.id)
        shared = budgets.all_budgets(database, sweep.id)
        own = budgets.of_group(database, budgets.BudgetScope.SWEEP, sweep.id)
    if toml:
        from mlebench_console.engine.options.sweep import options_of, write_toml
        from mlebench_console.engine.sweeps.launch import launch_of

        say(write_toml(options_of(launch_of(sweep, rows, own))).rstrip("\n"))
        return
    rows_of_runs = run_rows(members, {sweep.id: sweep.conditions.time_limit_seconds}, elsewhere)
    costs = sweep_costs(sweep, members, uses, KnownPrices(context.prices), line.counts.medals)
    listed = SweepRow(line, status(context.places))
    if context.json:
        say_json(
            SWEEP.document(listed, now)
            | {
                "runs": [RUN.document(row, now) for row in rows_of_runs],
                "model_use": [asdict(use) for found in uses.values() for use in found],
                "costs": None if costs is None else costs.document(),
                "budgets": [one.document() for one in shared],
            }
        )
        return
    say_rows(SWEEP.columns(ONE_SWEEP), [listed])
    say(wording.medals(line.interim, line.any_medal, "±")[0])
    say_notes(sweep)
    for one in shared:
        say(budget_text(one))
    say_wrapped(spec_text(sweep))
    if costs is not None and costs.spending.models:
        from mlebench_console.console.nouns.costs import costs_in_words

        say(costs_in_words(costs))
    say()
    say_rows(RUN.columns(IN_SWEEP), rows_of_runs)


@app.command()
def timeline(
    context: Context,
    sweep_id: Annotated[
        str, Argument(metavar="[SWEEP]", help="Its name, or a beginning of it; all sweeps if not given.")
    ] = "",
    width: Annotated[
        int | None, Option(min=40, metavar="COLUMNS", help="How wide to draw; the terminal's if not given.")
    ] = None,
) -> None:
    """Draw attempts as bars over time, slot by slot, with lost GPUs, restarts, medals and the expected end."""
    from mlebench_console.console.views import timeline as view

    now = time.time()
    with context.reading_state() as database:
        found = view.timeline(database, sweep_id or None, now)
    if context.json:
        say_json(None if found is None else found.document())
        return
    if found is None or not found.lanes:
        say("nothing has been launched yet")
        return
    from mlebench_console.console.roles import ASCII, UNICODE, Drawing
    from mlebench_console.console.tui.widgets.gantt import Gantt, legend, summary

    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    signs = ASCII if context.invocation.appearance.ascii or not is_unicode else UNICODE
    columns = width or shutil.get_terminal_size((100, 24)).columns
    rows = len(found.lanes) + 8
    window = view.whole_window(found, now)
    lines = [
        summary(found, found.sweep_ids[0] if sweep_id else "all sweeps", now, signs)[0],
        *([legend(found, signs)] if found.marks else []),
        (),
        *Gantt(found, window, columns, rows, Drawing(now, signs)).lines(),
    ]
    for line in lines:
        say("".join(text for text, _role in line).rstrip())


@app.command()
def pause(context: Context, sweep_id: SweepId) -> None:
    """Start no more runs of a sweep; live ones continue."""
    _change(context, PauseSweep, sweep_id)


@app.command()
def resume(context: Context, sweep_id: SweepId) -> None:
    """Resume a paused sweep."""
    _change(context, ResumeSweep, sweep_id, starting=True)


@app.command()
def stop(context: Context, sweep_id: SweepId) -> None:
    """Stop a sweep for good: its live runs are ended, its queued ones never start."""
    _change(context, StopSweep, sweep_id)


@app.command()
def retry(
    context: Context,
    sweep_id: SweepId,
    failure_class: Annotated[
        list[FailureClass] | None,
        Option("--class", help="Runs that failed of this; repeatable. Infrastructure if not given."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Queue failed runs of a sweep again; ask before re-rolling a seed whose agent itself failed."""
    from mlebench_console.console.actions.run import relaunch

    wanted = failure_class or [FailureClass.INFRASTRUCTURE]
    with context.reading_state() as database:
        sweep = sweeps.get(database, sweep_id)
        failed = [run for kind in wanted for run in runs.failed(database, sweep.id, kind)]
    if failed:
        context.perform(relaunch(failed, all_or_none=True), yes=yes, starting=True)
    else:
        raise UsageProblem(
            f"sweep {sweep.id} has no failed run to retry",
            f"none failed of {' or '.join(wanted)}",
            "Name another class: --class crash",
        )


@app.command()
def concurrency(
    context: Context,
    sweep_id: SweepId,
    runs: Annotated[int, Argument(metavar="RUNS", min=1, help="How many runs at once.")],
) -> None:
    """Change how many runs of a sweep are live at once."""
    _change(context, partial(SetConcurrency, value=runs), sweep_id)


@app.command()
def priority(
    context: Context,
    sweep_id: SweepId,
    value: Annotated[int, Argument(metavar="PRIORITY", help="Higher goes first; the default is 0.")],
) -> None:
    """Change which sweep's runs start first when slots come free."""
    _change(context, partial(SetPriority, value=value), sweep_id)


@app.command()
def budget(
    context: Context,
    name: Annotated[str, Argument(metavar="SWEEP", help="The sweep, or with --experiment that.")],
    calls: Annotated[int | None, Option(min=0, help="Model calls of all runs together.")] = None,
    tokens: Annotated[int | None, Option(min=0, help="Tokens of all of them together.")] = None,
    usd: Annotated[float | None, Option(min=0, help="US dollars for all of them together.")] = None,
    of_experiment: Annotated[
        bool, Option("--experiment", help="All sweeps of an experiment share it.")
    ] = False,
) -> None:
    """Show or change the budget of model calls that runs share; 0 removes a limit, others stay."""
    from mlebench_console.engine.needs.needs import budget_text

    scope = BudgetScope.EXPERIMENT if of_experiment else BudgetScope.SWEEP
    with context.reading_state() as database:
        known = name if of_experiment else sweeps.get(database, name).id
        found = [one for one in budgets.all_budgets(database) if (one.scope, one.name) == (scope, known)]
    limits = Budget(calls, tokens, usd)
    if limits.is_limited:
        request = SetBudget(scope=scope, name=known, limits=limits)
        context.perform(Action((request,)))
    elif context.json:
        say_json([one.document() for one in found])
    else:
        say(budget_text(found[0]) if found else f"{scope} {known} has no budget of model calls")


@app.command()
def note(context: Context, sweep_id: SweepId, text: NoteText = "", remove: RemoveNote = False) -> None:
    """Write a note on a sweep, in place of an earlier one; without a text, show it."""
    sweep = _known(context, sweep_id)
    annotate(context, [sweep], partial(actions.annotate, sweep.id), changed_note(text, remove=remove))


@app.command()
def tag(context: Context, sweep_id: SweepId, tags: Tags = None, remove: RemoveTags = False) -> None:
    """Put tags on a sweep; without a tag, show them."""
    sweep = _known(context, sweep_id)
    annotate(
        context, [sweep], partial(actions.annotate, sweep.id), changed_tags([sweep], tags, remove=remove)
    )


def _known(context: Context, sweep_id: str) -> Sweep:
    with context.reading_state() as database:
        return sweeps.get(database, sweep_id)


@app.command()
def assign(
    context: Context,
    sweep_id: SweepId,
    experiment: Annotated[str, Argument(metavar="EXPERIMENT", help="The leaderboard row's name.")],
) -> None:
    """Assign a sweep to an experiment, whose sweeps together make one leaderboard row."""
    _change(context, partial(AssignExperiment, experiment_id=experiment), sweep_id)


@app.command("rm")
def remove(
    context: Context,
    sweep_id: Annotated[str, Argument(metavar="SWEEP", help="Its whole name.")],
    with_results: Annotated[bool, Option(help="Also if it holds results or is part of a row.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a sweep: its runs, attempts, logs, code and submissions; results are kept unless you say so."""
    from mlebench_console.engine.sweeps.removal import loss_of, refuse_removal, wait_for_removal

    with context.reading_state() as database:
        known = sweeps.find(database, sweep_id)
        if known is None:
            close = sweeps.get(database, sweep_id).id
            raise UsageProblem(f"there is no sweep '{sweep_id}'", "", f"Give the whole name: {close}")
        loss = loss_of(database, known.id)
    refuse_removal(loss, with_results=with_results)
    action = actions.remove(loss, with_results=with_results)
    context.perform(action, yes=yes, lost=asdict(loss))
    with context.reading_state() as database:
        if not wait_for_removal(database, known.id, seconds=_REMOVAL_PATIENCE):
            say_on_stderr(
                "the engine is still removing its files; an event will say so if some can't be removed"
            )


def _change(
    context: Context, request: Callable[..., SweepRequest], sweep_id: str, *, starting: bool = False
) -> None:
    """Ask the engine to change a sweep, named in full or by a beginning."""
    with context.reading_state() as database:
        known = sweeps.get(database, sweep_id).id
    context.perform(Action((request(sweep_id=known),)), starting=starting)
