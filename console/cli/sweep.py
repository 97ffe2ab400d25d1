"""`sweep`: launch an agent on competitions and seeds, and steer what was launched."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from console.cli.editions import EditionFlag, EditionName
from console.cli.invocation import Json, places_of, reading_state
from console.cli.lazy import new_group
from console.cli.output import duration_text, say, say_json
from console.cli.runs_text import run_facts, say_runs
from console.cli.sweeps_text import say_sweeps, sweep_facts
from foundation.problems import UsageProblem

app = new_group("Launch and steer sweeps: an agent on competitions and seeds.")

SweepId = Annotated[str, typer.Argument(metavar="SWEEP", help="Its name, or an unambiguous beginning of it.")]


class Runtime(StrEnum):
    """What `--runtime` takes."""

    PROCESS = "process"
    BUBBLEWRAP = "bubblewrap"
    PLAIN = "plain"
    DOCKER = "docker"


class Network(StrEnum):
    """What `--network` takes."""

    NONE = "none"
    MODELS = "models"
    OPEN = "open"


@app.command()
def launch(
    context: typer.Context,
    agent: Annotated[str, typer.Option(metavar="ID", help="The agent's id, such as aide or aide/dev.")],
    competition: Annotated[
        list[str] | None, typer.Option("--competition", "-c", metavar="ID", help="A competition; repeatable.")
    ] = None,
    split: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="low, medium, high, all ... or a file of ids.")
    ] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of every competition.")] = 3,
    hours: Annotated[float, typer.Option(min=0.0, help="The time limit of a run.")] = 24.0,
    minutes: Annotated[float, typer.Option(min=0.0, help="The same in minutes, for short trials.")] = 0.0,
    concurrency: Annotated[int, typer.Option(min=1, help="How many runs at once.")] = 1,
    priority: Annotated[int, typer.Option(help="Higher goes first.")] = 0,
    cpus: Annotated[
        float | None, typer.Option(min=0.0, help="Processors that a run counts as; 1 if not given.")
    ] = None,
    memory_gb: Annotated[
        float | None, typer.Option(min=0.0, help="Memory limit of a run; none if not given or 0.")
    ] = None,
    runtime: Annotated[
        Runtime,
        typer.Option(
            help="docker: containers; process: isolated by bubblewrap where that works; plain: never isolated."
        ),
    ] = Runtime.PROCESS,
    network: Annotated[
        Network, typer.Option(help="What agents may reach: nothing, the hosts of --allow, or everything.")
    ] = Network.NONE,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="A host of the network 'models'; repeatable."),
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=-1, help="GPUs of a container; -1 is all.")] = None,
    runs_per_gpu: Annotated[int, typer.Option(min=1, help="How many runs share a GPU.")] = 1,
    idle_minutes: Annotated[
        float, typer.Option(min=0.0, help="End a run in which nothing happens for so long; 0 is never.")
    ] = 0.0,
    disk_gb: Annotated[
        float, typer.Option(min=0.0, help="End a run that holds more than so much on disk; 0 is never.")
    ] = 0.0,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a run that failed for the infrastructure starts again.")
    ] = 2,
    container_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Limits of containers, as MLE-bench's JSON.")
    ] = None,
    keep_containers: Annotated[
        bool, typer.Option("--keep-containers", help="Leave agents' containers when runs have ended.")
    ] = False,
    edition: EditionFlag = EditionName.V1,
    agents_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="An agents folder in MLE-bench's format.")
    ] = None,
    experiment: Annotated[str, typer.Option(metavar="NAME", help="The leaderboard row it belongs to.")] = "",
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The sweep's name; made from the agent's if not given.")
    ] = "",
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Prepare datasets that are not prepared yet.")
    ] = False,
    json: Json = False,
) -> None:
    """Launch a sweep: an agent on competitions, some seeds each."""
    from engine.agents import own_agents_folder
    from engine.control import ask
    from engine.runs.container_config import ContainerConfig, read_container_config

    config = read_container_config(container_config) if container_config else ContainerConfig()
    memory_bytes = config.memory_bytes if memory_gb is None else round(memory_gb * 1e9) or None
    answer = ask(
        places_of(context),
        "sweep.launch",
        {
            "name": name,
            "agent_id": agent,
            "agents_dir": str((agents_dir or own_agents_folder()).expanduser().absolute()),
            "competitions": list(_chosen(competition or [], split)),
            "seeds": seeds,
            "time_limit_seconds": minutes * 60 if minutes else hours * 3600,
            "edition": edition.value,
            "runtime": runtime.value,
            "network": network.value,
            "allowed_hosts": allow or [],
            "cpus": cpus or config.cpus or 1.0,
            "memory_bytes": memory_bytes,
            "shm_bytes": config.shm_bytes,
            "gpus": (config.gpus or 0) if gpus is None else gpus,
            "runs_per_gpu": runs_per_gpu,
            "container_runtime": config.runtime or "",
            "keep_containers": keep_containers,
            "idle_limit_seconds": idle_minutes * 60 or None,
            "disk_limit_bytes": round(disk_gb * 1e9) or None,
            "retries": retries,
            "prepare_missing": prepare,
            "concurrency": concurrency,
            "priority": priority,
            "experiment": experiment,
        },
    )
    if json:
        say_json(asdict(answer))
    else:
        say(answer.text)


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
def show(context: typer.Context, sweep_id: SweepId, json: Json = False) -> None:
    """Show one sweep: what was asked for, and every run."""
    from state import runs, sweeps

    with reading_state(context) as database:
        sweep = sweeps.get(database, sweep_id)
        counts, members = sweeps.counts(database, sweep.id), runs.of_sweep(database, sweep.id)
    if json:
        say_json(sweep_facts(sweep, counts) | {"runs": [run_facts(run) for run in members]})
        return
    spec = sweep.spec
    say_sweeps([sweep], {sweep.id: counts})
    say(
        f"{len(spec.competitions)} competitions x {spec.seeds} seeds, {duration_text(spec.time_limit_seconds)}"
        f" each, edition {spec.edition}, {sweep.concurrency} at once, network {spec.network},"
        f" runtime {spec.runtime}"
    )
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
def concurrency(
    context: typer.Context,
    sweep_id: SweepId,
    runs: Annotated[int, typer.Argument(metavar="RUNS", min=1, help="How many runs at once.")],
    json: Json = False,
) -> None:
    """Change how many runs of a sweep are live at once."""
    _steer(context, "sweep.concurrency", sweep_id, json=json, value=runs)


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
    if json:
        say_json(asdict(answer))
    else:
        say(answer.text)


def _chosen(named: list[str], split: str) -> tuple[str, ...]:
    from competitions import registry

    members = registry.read_split(split) if split else ()
    chosen = tuple(dict.fromkeys([*members, *(registry.get(name).id for name in named)]))
    if not chosen:
        raise UsageProblem(
            "no competition was named", "", "Give --split low, or --competition ID once or more."
        )
    return chosen
