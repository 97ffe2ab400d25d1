"""`sweep rm`: removing a sweep with everything of its runs, after saying what is lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from console.cli.common import Json, confirm, places_of, reading_state, say_answer
from foundation.problems import UsageProblem


def remove(
    context: typer.Context,
    sweep_id: Annotated[str, typer.Argument(metavar="SWEEP", help="Its whole name.")],
    with_results: Annotated[
        bool, typer.Option("--with-results", help="Also if it holds results or is part of a row.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Remove a sweep: its runs, attempts, logs, code and submissions; results are kept unless you say so."""
    from engine.control import ask
    from engine.sweeps.removing import loss_of, refuse_removal
    from state import sweeps

    with reading_state(context) as database:
        known = sweeps.find(database, sweep_id)
        if known is None:
            close = sweeps.get(database, sweep_id).id
            raise UsageProblem(f"there is no sweep '{sweep_id}'", "", f"Give the whole name: {close}")
        loss = loss_of(database, known.id)
    refuse_removal(loss, with_results=with_results)
    if not yes:
        unasked = UsageProblem(
            f"sweep {known.id} is not removed unasked",
            f"what would be lost: {loss.in_words()}",
            "Give --yes to do it.",
        )
        confirm(f"Remove sweep {known.id}?", f"What is lost: {loss.in_words()}.", unasked)
    asked = {"sweep_id": known.id, "with_results": with_results}
    answer = ask(places_of(context), "sweep.remove", asked)
    say_answer(answer, json=json, lost=asdict(loss))
