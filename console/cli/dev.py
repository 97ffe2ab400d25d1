"""`dev`: update the benchmark's own facts; for maintainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from mlebench_console.competitions import registry
from mlebench_console.console.cli.common import CompetitionIds, Context, new_group
from mlebench_console.console.cli.output import say, say_json, say_on_stderr
from mlebench_console.foundation.problems import DataProblem, Problem, UsageProblem

if TYPE_CHECKING:
    from mlebench_console.engine.datasets.facts import KnownLeaderboard

app = new_group()


@app.command("download-leaderboard")
def download_leaderboard(
    context: Context,
    competition_id: CompetitionIds = None,
    all_: Annotated[bool, Option("--all", help="All competitions of the benchmark.")] = False,
    force: Annotated[bool, Option(help="Download it; without this flag, show the present one.")] = False,
) -> None:
    """Download leaderboards from Kaggle, with every team's score, and take their medal cut-offs."""
    from mlebench_console.engine.datasets.facts import refresh_leaderboard

    if bool(competition_id) == all_:
        raise UsageProblem("which leaderboards is not clear", "", "Give one of -c ID, --all.")
    chosen = registry.splits()["split75"] if all_ else [registry.get(one).id for one in competition_id or []]
    _take_all(context, {one: partial(refresh_leaderboard, one, force=force) for one in chosen})


@app.command("import-leaderboards")
def import_leaderboards(
    context: Context,
    path: Annotated[
        Path, Argument(metavar="PATH", help="A leaderboard's CSV (with -c ID), or a checkout of MLE-bench.")
    ],
    competition_id: CompetitionIds = None,
) -> None:
    """Import whole leaderboards, as MLE-bench keeps them, and take their medal cut-offs."""
    from mlebench_console.engine.datasets.facts import import_leaderboard

    chosen = [registry.get(one).id for one in competition_id or []]
    if path.is_dir():
        inner = path / "mlebench" / "competitions"
        folder = inner if inner.is_dir() else path
        files = {file.parent.name: file for file in sorted(folder.glob("*/leaderboard.csv"))}
        known = chosen or [one for one in files if one in registry.all_ids()]
        missing = [one for one in known if one not in files]
        if missing or not known:
            why = (
                f"it has no {missing[0]}/leaderboard.csv" if missing else "no folder in it is a competition's"
            )
            raise DataProblem(f"there are no leaderboards in {folder}", why, "Give a checkout of MLE-bench.")
        _take_all(context, {one: partial(import_leaderboard, one, files[one]) for one in known})
    elif len(chosen) == 1:
        _take_all(context, {chosen[0]: partial(import_leaderboard, chosen[0], path)})
    else:
        raise UsageProblem("whose leaderboard it is is not clear", "", "Give one -c ID.")


def _take_all(context: Context, taking: Mapping[str, Callable[[], KnownLeaderboard]]) -> None:
    """Import leaderboards one by one and print each result; a failure does not stop the others."""
    outcomes: list[dict[str, Any]] = []
    for one, take in taking.items():
        try:
            known = take()
        except Problem as problem:
            outcomes.append({"competition_id": one, "state": "failed", "problem": str(problem)})
            say_on_stderr(str(problem))
            continue
        state = "taken" if known.is_new else "was there"
        cut = known.cut_offs
        values = {"gold": cut.gold, "silver": cut.silver, "bronze": cut.bronze, "median": cut.median}
        facts = {"competition_id": one, "state": state, "problem": "", "teams": known.teams}
        outcomes.append(facts | values)
        if not context.json:
            text = "  ".join(f"{name} {value:g}" for name, value in values.items())
            extent = "its cut-offs alone" if known.teams is None else f"{known.teams:,} teams"
            say(f"{one}: {state}, {extent}: {text}")
    if context.json:
        say_json(outcomes)
    if any(outcome["state"] == "failed" for outcome in outcomes):
        raise typer.Exit(DataProblem.exit_code)
