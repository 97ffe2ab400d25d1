"""`sweep launch`: what the flags and a TOML file say becomes one launch, which is asked for or only looked at."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.cli.common import EditionName, Json, Network, places_of, say_answer, say_json
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from engine.options.sweep import LaunchForm


class Runtime(StrEnum):
    """What `--runtime` takes."""

    PROCESS = "process"
    BUBBLEWRAP = "bubblewrap"
    PLAIN = "plain"
    DOCKER = "docker"


def launch(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="A sweep as TOML, keys named as these flags are; flags win over it."
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="The agent's id, such as aide or aide/dev.")
    ] = None,
    competitions: Annotated[
        list[str] | None,
        typer.Option("--competitions", "-c", metavar="ID,...", help="Ids, commas between; repeatable."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="low, medium, high, all ... or a file of ids.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, show_default="3", help="Seeds of every competition.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.0, show_default="24", help="The time limit of a run.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="The same in minutes, for short trials.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, show_default="1", help="How many runs at once.")
    ] = None,
    priority: Annotated[int | None, typer.Option(show_default="0", help="Higher goes first.")] = None,
    start_ramp: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.0, show_default="0", help="Time between two starts."),
    ] = None,
    retries: Annotated[
        int | None,
        typer.Option(
            min=0, help="How often a run that failed for the infrastructure starts again.", show_default="2"
        ),
    ] = None,
    cpus: Annotated[
        float | None, typer.Option(min=0.0, show_default="1", help="Processors that a run counts as.")
    ] = None,
    memory_gb: Annotated[
        float | None, typer.Option(min=0.0, help="Memory limit of a run; none if not given or 0.")
    ] = None,
    runtime: Annotated[
        Runtime | None,
        typer.Option(
            show_default="process",
            help="docker: containers; process: isolated by bubblewrap where that works; plain: never isolated.",
        ),
    ] = None,
    network: Annotated[
        Network | None,
        typer.Option(
            show_default="none", help="What agents may reach: nothing, the hosts of --allow, or everything."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST[:PORT]", help="A host of the network 'models'; repeatable."),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=-1, show_default="0", help="GPUs of a container; -1 is all.")
    ] = None,
    runs_per_gpu: Annotated[
        int | None, typer.Option(min=1, show_default="1", help="How many runs share a GPU.")
    ] = None,
    idle_minutes: Annotated[
        float | None,
        typer.Option(min=0.0, help="End a run in which nothing happens for so long; 0 is never."),
    ] = None,
    disk_gb: Annotated[
        float | None,
        typer.Option(min=0.0, help="End a run that holds more than so much on disk; 0 is never."),
    ] = None,
    container_config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Limits of containers, as MLE-bench's JSON.")
    ] = None,
    keep_containers: Annotated[
        bool | None,
        typer.Option("--keep-containers", help="Leave agents' containers when runs have ended."),
    ] = None,
    edition: Annotated[
        EditionName | None,
        typer.Option(show_default="v1", help="v1 is MLE-bench bit for bit; corrected mends its defects."),
    ] = None,
    obfuscated: Annotated[
        bool | None,
        typer.Option(
            "--obfuscated",
            help="Tell agents the task without the competition's name, as OBFUSCATE=true does.",
        ),
    ] = None,
    agents_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="An agents folder in MLE-bench's format.")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(metavar="NAME", help="The leaderboard row it belongs to.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The sweep's name; made from the agent's if not given. Again is harmless."
        ),
    ] = None,
    prepare: Annotated[
        bool | None, typer.Option("--prepare", help="Prepare datasets that are not prepared yet.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only tell what would start, what is missing, how long it takes."),
    ] = False,
    json: Json = False,
) -> None:
    """Launch a sweep: an agent on competitions, some seeds each."""
    from engine.control import ask
    from engine.options.sweep import LaunchForm, resolve
    from engine.sweeps.toml_file import read_toml

    said = LaunchForm(
        agent=agent,
        agents_dir=None if agents_dir is None else str(agents_dir),
        competitions=_ids(competitions),
        split=split,
        seeds=seeds,
        hours=hours,
        minutes=minutes or None,
        concurrency=concurrency,
        priority=priority,
        start_ramp=start_ramp,
        retries=retries,
        runtime=None if runtime is None else runtime.value,
        network=None if network is None else network.value,
        allow=tuple(allow) if allow else None,
        cpus=cpus,
        memory_gb=memory_gb,
        gpus=gpus,
        runs_per_gpu=runs_per_gpu,
        idle_minutes=idle_minutes,
        disk_gb=disk_gb,
        container_config=None if container_config is None else str(container_config),
        keep_containers=keep_containers,
        edition=None if edition is None else edition.value,
        obfuscated=obfuscated,
        prepare=prepare,
        name=name,
        experiment=experiment,
    )
    form = said if file is None else said.over(read_toml(file))
    if dry_run:
        _dry_run(context, form, json=json)
        return
    answer = ask(places_of(context), "sweep.launch", resolve(form, places_of(context)).to_arguments())
    say_answer(answer, json=json)


def _ids(given: list[str] | None) -> tuple[str, ...] | None:
    ids = [piece.strip() for text in given or () for piece in text.split(",")]
    return tuple(one for one in ids if one) or None


def _dry_run(context: typer.Context, form: LaunchForm, *, json: bool) -> None:
    from console.cli.forecast_text import say_forecast
    from engine.options.sweep import resolve
    from engine.sweeps.forecast import forecast

    launch = resolve(form, places_of(context))
    found = forecast(launch, places_of(context))
    if json:
        document: dict[str, Any] = {"launch": launch.to_arguments(), "can_launch": found.can_launch}
        say_json(document | asdict(found))
    else:
        say_forecast(launch, found)
    if not found.can_launch:
        raise typer.Exit(EnvironmentProblem.exit_code)
