"""Queueing runs again, one way for all commands: what changes the statistics is asked about first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.common import confirm, places_of, say_answer
from foundation.problems import UsageProblem

if TYPE_CHECKING:
    from state.records import Run

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Re-roll agents' own failures without asking.")]


def retry_runs(context: typer.Context, found: Sequence[Run], *, yes: bool, json: bool) -> None:
    """Ask for confirmation where it is needed, then let the engine queue the runs again."""
    from engine.control import ask
    from state.transitions import is_reroll

    rerolled = [one for one in found if is_reroll(one)]
    if rerolled and not yes:
        _confirm(rerolled)
    answer = ask(places_of(context), "run.relaunch", {"run_ids": [one.id for one in found]})
    say_answer(answer, json=json)


def _confirm(rerolled: Sequence[Run]) -> None:
    named = ", ".join(
        f"{run.competition_id} seed {run.seed} ({run.failure_class or run.state})" for run in rerolled
    )
    unasked = UsageProblem(
        f"{len(rerolled)} of these runs did not fail for the infrastructure",
        f"{named}; retrying them re-rolls their seeds, which changes the statistics",
        "Give --yes to do it all the same.",
    )
    confirm("Retry?", f"Retrying re-rolls {named}: the row's export will say so.", unasked)
