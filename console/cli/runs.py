"""`runs`: list, follow, retry, stop and classify single runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console import wording
from console.cli.common import (
    Json,
    Network,
    new_group,
    places_of,
    reading_state,
    say,
    say_answer,
    say_json,
    say_table,
)
from console.cli.retrying import Yes, retry_runs
from console.cli.runs_text import find_run, run_facts, say_runs
from foundation.problems import DataProblem, UsageProblem
from state.lifecycle import FailureClass, RunState

if TYPE_CHECKING:
    from state.records import Run

app = new_group("List, follow, retry, stop and classify single runs.")

RunNames = Annotated[list[str], typer.Argument(metavar="RUN...", help="Numbers, or SWEEP/COMPETITION/SEED.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="Its number, or SWEEP/COMPETITION/SEED.")]


@app.command("list")
def list_(
    context: typer.Context,
    sweep: Annotated[str, typer.Option(metavar="SWEEP", help="Only of this sweep.")] = "",
    state: Annotated[RunState | None, typer.Option(help="Only in this state.")] = None,
    json: Json = False,
) -> None:
    """List the runs, of one sweep or all."""
    from state import runs, sweeps

    with reading_state(context) as database:
        found = (
            runs.of_sweep(database, sweeps.get(database, sweep).id) if sweep else runs.of_all_sweeps(database)
        )
    chosen = [run for run in found if state is None or run.state is state]
    if json:
        say_json([run_facts(run) for run in chosen])
    elif chosen:
        say_runs(chosen)
    else:
        say("no such runs")


@app.command()
def show(context: typer.Context, run: RunName, json: Json = False) -> None:
    """Show one run: its attempts, its submissions, what happened."""
    from state import events, runs, submissions

    with reading_state(context) as database:
        found = find_run(database, run)
        attempts = runs.attempts(database, found.id)
        handed_in = [one for attempt in attempts for one in submissions.of_attempt(database, attempt.id)]
        happened = events.newest(database, run_id=found.id)[::-1]
    state_dir = places_of(context).state_dir
    if json:
        say_json(
            run_facts(found)
            | {
                "attempts_made": [
                    asdict(attempt) | {"directory": str(state_dir / attempt.directory)}
                    for attempt in attempts
                ],
                "submissions_made": [asdict(one) for one in handed_in],
                "events": [asdict(event) for event in happened],
            }
        )
        return
    say_runs([found])
    for attempt in attempts:
        say(f"attempt {attempt.number}: {state_dir / attempt.directory}")
        if attempt.evidence:
            say(f"  evidence: {attempt.evidence.strip()}")
    if handed_in:
        say()
        say_table(
            ("attempt", "submission", "taken", "bytes", "score", "standing", "message"),
            [
                (
                    str(next(attempt.number for attempt in attempts if attempt.id == one.attempt_id)),
                    f"{one.sequence}{' final' if one.final else ''}",
                    wording.day_and_clock(one.taken_at),
                    f"{one.bytes:,}",
                    "-" if one.score is None else f"{one.score:.5f}",
                    (one.standing or "-").replace("_", " "),
                    one.message or "",
                )
                for one in handed_in
            ],
            right=("attempt", "bytes", "score"),
        )
    say()
    for event in happened:
        say(f"{wording.day_and_clock(event.at)}  {event.text}")


@app.command()
def logs(
    context: typer.Context,
    run: RunName,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many of the last lines.")] = 50,
    following: Annotated[bool, typer.Option("--follow", "-f", help="Go on as the log grows.")] = False,
) -> None:
    """Print the end of what a run's latest attempt has printed."""
    from console.cli.following import follow, print_last_lines
    from environment.container.run_log import log_parts
    from environment.runner import protocol
    from state import runs

    with reading_state(context) as database:
        found = find_run(database, run)
        latest = runs.latest_attempt(database, found.id)
    if latest is None:
        raise DataProblem(f"run {found.id} has no log", f"it is {found.state}")
    log = places_of(context).state_dir / latest.directory / protocol.LOG
    parts = log_parts(log)
    if not parts:
        raise DataProblem(f"run {found.id} has no log", f"there is no {log}")
    newest = parts[-1].path
    end = print_last_lines(newest, lines)
    if following:
        follow(newest, end)


@app.command()
def retry(context: typer.Context, run: RunNames, yes: Yes = False, json: Json = False) -> None:
    """Queue ended runs again; asks before it re-rolls a seed whose agent itself had failed."""
    retry_runs(context, _found(context, run), yes=yes, json=json)


@app.command()
def stop(context: typer.Context, run: RunNames, json: Json = False) -> None:
    """Stop runs: live ones are ended, queued ones never start."""
    _ask(context, "run.stop", {"run_ids": [one.id for one in _found(context, run)]}, json=json)


@app.command()
def classify(
    context: typer.Context,
    run: RunNames,
    failure_class: Annotated[FailureClass, typer.Option("--class", help="The class that is right.")],
    note: Annotated[str, typer.Option(help="Why; it is kept with the attempt.")] = "",
    json: Json = False,
) -> None:
    """Correct the failure class of failed runs by hand."""
    arguments = {
        "run_ids": [one.id for one in _found(context, run)],
        "class": failure_class.value,
        "note": note,
    }
    _ask(context, "run.classify", arguments, json=json)


@app.command()
def shell(
    context: typer.Context,
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="As this run: its competition, agent and network.")
    ] = "",
    competition: Annotated[
        str, typer.Option("--competition", "-c", metavar="ID", help="Without a run: on this competition.")
    ] = "",
    agent: Annotated[str, typer.Option(metavar="ID", help="Without a run: in this agent's image.")] = "dummy",
    agents_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="An agents folder in MLE-bench's format.")
    ] = None,
    network: Annotated[
        Network, typer.Option(help="Without a run: what it may reach, as for 'sweep launch'.")
    ] = Network.NONE,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="A host of the network 'models'; repeatable."),
    ] = None,
) -> None:
    """Open a shell in a container as an agent would find it; nothing of it is kept, secrets are not set."""
    from console.cli.shell import as_run, on_competition, run_shell

    if bool(run) == bool(competition):
        raise UsageProblem("name either a run or a --competition")
    if run:
        with reading_state(context) as database:
            wish = as_run(database, find_run(database, run))
    else:
        wish = on_competition(
            places_of(context).data_dir, competition, agent, agents_dir, network.value, tuple(allow or ())
        )
    raise typer.Exit(run_shell(places_of(context).state_dir, wish))


def _found(context: typer.Context, names: list[str]) -> list[Run]:
    with reading_state(context) as database:
        return [find_run(database, name) for name in names]


def _ask(context: typer.Context, kind: str, arguments: dict[str, Any], *, json: bool) -> None:
    from engine.control import ask

    answer = ask(places_of(context), kind, arguments)
    say_answer(answer, json=json)
