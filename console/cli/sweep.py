"""`sweep`: launch an agent on competitions and seeds, and steer what was launched."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from console.cli.common import Json, new_group, places_of, reading_state, say, say_answer, say_json
from console.cli.retrying import Yes, retry_runs
from console.cli.runs_text import run_facts, say_runs
from console.cli.sweep_import import import_groups
from console.cli.sweep_launch import launch
from console.cli.sweep_remove import remove
from console.cli.sweeps_text import say_sweeps, spec_text, sweep_facts
from foundation.problems import UsageProblem
from state.lifecycle import FailureClass

app = new_group("Launch and steer sweeps: an agent on competitions and seeds.")

SweepId = Annotated[str, typer.Argument(metavar="SWEEP", help="Its name, or an unambiguous beginning of it.")]


app.command()(launch)
app.command("import")(import_groups)
app.command("rm")(remove)


@app.command("list")
def list_(context: typer.Context, json: Json = False) -> None:
    """List the sweeps, oldest first."""
    from state import sweeps

    with reading_state(context) as database:
        known, counts = sweeps.all_sweeps(database), sweeps.counts_of_all(database)
    if json:
        say_json([sweep_facts(sweep, counts.get(sweep.id)) for sweep in known])
    elif known:
        say_sweeps(known, counts)
    else:
        say("no sweeps yet")


@app.command()
def show(
    context: typer.Context,
    sweep_id: SweepId,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print it as the file that 'sweep launch' takes.")
    ] = False,
    json: Json = False,
) -> None:
    """Show one sweep: what was asked for, and every run."""
    from state import experiments, runs, sweeps

    with reading_state(context) as database:
        sweep = sweeps.get(database, sweep_id)
        counts, members = sweeps.counts(database, sweep.id), runs.of_sweep(database, sweep.id)
        rows = experiments.of_sweep(database, sweep.id)
    if toml:
        from engine.options.sweep import form_of
        from engine.sweeps.creating import launch_of
        from engine.sweeps.toml_file import write_toml

        say(write_toml(form_of(launch_of(sweep, rows))).rstrip("\n"))
        return
    if json:
        say_json(sweep_facts(sweep, counts) | {"runs": [run_facts(run) for run in members]})
        return
    say_sweeps([sweep], {sweep.id: counts})
    say(spec_text(sweep))
    say()
    say_runs(members)


@app.command()
def pause(context: typer.Context, sweep_id: SweepId, json: Json = False) -> None:
    """Start no more runs of a sweep; live ones go on."""
    _steer(context, "sweep.pause", sweep_id, json=json)


@app.command()
def resume(context: typer.Context, sweep_id: SweepId, json: Json = False) -> None:
    """Let a paused sweep go on."""
    _steer(context, "sweep.resume", sweep_id, json=json)


@app.command()
def stop(context: typer.Context, sweep_id: SweepId, json: Json = False) -> None:
    """Stop a sweep for good: its live runs are ended, its queued ones never start."""
    _steer(context, "sweep.stop", sweep_id, json=json)


@app.command()
def retry(
    context: typer.Context,
    sweep_id: SweepId,
    failure_class: Annotated[
        list[FailureClass] | None,
        typer.Option("--class", help="Runs that failed of this; repeatable. Infrastructure if not given."),
    ] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Queue failed runs of a sweep again; asks before it re-rolls a seed whose agent itself had failed."""
    from state import runs, sweeps

    wanted = failure_class or [FailureClass.INFRASTRUCTURE]
    with reading_state(context) as database:
        sweep = sweeps.get(database, sweep_id)
        failed = [run for kind in wanted for run in runs.failed(database, sweep.id, kind)]
    if failed:
        retry_runs(context, failed, yes=yes, json=json)
    else:
        raise UsageProblem(
            f"sweep {sweep.id} has no failed run to retry",
            f"none failed of {' or '.join(wanted)}",
            "Name another class: --class crash",
        )


@app.command()
def concurrency(
    context: typer.Context,
    sweep_id: SweepId,
    runs: Annotated[int, typer.Argument(metavar="RUNS", min=1, help="How many runs at once.")],
    json: Json = False,
) -> None:
    """Change how many runs of a sweep are live at once."""
    _steer(context, "sweep.concurrency", sweep_id, json=json, value=runs)


@app.command()
def priority(
    context: typer.Context,
    sweep_id: SweepId,
    value: Annotated[int, typer.Argument(metavar="PRIORITY", help="Higher goes first; usual is 0.")],
    json: Json = False,
) -> None:
    """Change which sweep's runs start first when slots come free."""
    _steer(context, "sweep.priority", sweep_id, json=json, value=value)


@app.command()
def assign(
    context: typer.Context,
    sweep_id: SweepId,
    experiment: Annotated[str, typer.Argument(metavar="EXPERIMENT", help="The leaderboard row's name.")],
    json: Json = False,
) -> None:
    """Let a sweep belong to an experiment, whose sweeps make one leaderboard row."""
    _steer(context, "experiment.assign", sweep_id, json=json, experiment_id=experiment)


def _steer(context: typer.Context, kind: str, sweep_id: str, *, json: bool, **arguments: Any) -> None:
    from engine.control import ask
    from state import sweeps

    with reading_state(context) as database:
        known = sweeps.get(database, sweep_id).id
    answer = ask(places_of(context), kind, {"sweep_id": known, **arguments})
    say_answer(answer, json=json)
