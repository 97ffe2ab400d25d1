"""`dev`: what those need who keep the benchmark's own facts up to date."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from console.cli.common import CompetitionIds, Json, new_group
from console.cli.output import complain, say, say_json
from foundation.problems import DataProblem, Problem, UsageProblem

app = new_group("Keep the benchmark's own facts up to date.")


@app.command("download-leaderboard")
def download_leaderboard(
    competition_id: CompetitionIds = None,
    all_: Annotated[bool, typer.Option("--all", help="All competitions of the benchmark.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where a leaderboard has been downloaded before.")
    ] = False,
    json: Json = False,
) -> None:
    """Download leaderboards from Kaggle and take their medal cut-offs; a part of one is refused."""
    from competitions import registry
    from engine.datasets.facts import refresh_leaderboard

    if bool(competition_id) == all_:
        raise UsageProblem("which leaderboards is not clear", "", "Give one of -c ID, --all.")
    chosen = registry.splits()["split75"] if all_ else [registry.get(one).id for one in competition_id or []]
    outcomes: list[dict[str, Any]] = []
    for one in chosen:
        try:
            cut, is_new = refresh_leaderboard(one, force=force)
        except Problem as problem:
            outcomes.append({"competition_id": one, "state": "failed", "problem": str(problem)})
            complain(str(problem))
            continue
        state = "taken" if is_new else "was there"
        values = {"gold": cut.gold, "silver": cut.silver, "bronze": cut.bronze, "median": cut.median}
        outcomes.append({"competition_id": one, "state": state, "problem": "", **values})
        if not json:
            text = "  ".join(f"{name} {value:g}" for name, value in values.items())
            say(f"{one}: {state}: {text}")
    if json:
        say_json(outcomes)
    if any(outcome["state"] == "failed" for outcome in outcomes):
        raise typer.Exit(DataProblem.exit_code)
