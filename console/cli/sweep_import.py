"""`sweep import`: run groups that MLE-bench made become a sweep, whose submissions are graded here."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from console.cli.common import EditionFlag, EditionName, Json, places_of, say_answer


def import_groups(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A run group, or a runs folder that holds some.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The sweep's name.")],
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="The agent; as the group is named if not given.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0.0, help="The time limit that its runs had, if you know it.")
    ] = None,
    edition: EditionFlag = EditionName.V1,
    experiment: Annotated[str, typer.Option(metavar="NAME", help="The leaderboard row it belongs to.")] = "",
    json: Json = False,
) -> None:
    """Import run groups of MLE-bench as a sweep: what agents left is copied, and graded anew."""
    from engine.control import ask
    from engine.sweeps.importing import agent_of_group, staged

    places = places_of(context)
    with staged(places, folder) as (place, found):
        answer = ask(
            places,
            "sweep.import",
            {
                "place": place,
                "name": name,
                "agent_id": agent or agent_of_group(folder) or "unknown",
                "edition": edition.value,
                "time_limit_seconds": None if hours is None else hours * 3600,
                "experiment": experiment,
            },
        )
    say_answer(answer, json=json, runs=[asdict(run) for run in found])
