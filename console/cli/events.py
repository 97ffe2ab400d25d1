"""`events`: what happened, filtered as on the Events screen."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Json, Lines, new_app, reading_state
from mlebench_console.console.cli.output import say, say_json, say_texts
from mlebench_console.foundation.problems import UsageProblem

if TYPE_CHECKING:
    from mlebench_console.console.views.events import ListedEvent

_X = 56
app = new_app()


@app.command(
    epilog="Words of the filter: any text, sweep:aide, kind:run.failed, sev:error (warning, good, note), comp:leaf,"
    " seed:2, run:17; ! before one negates it."
)
def events(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD...]", help="A filter, such as sweep:aide sev:error.")
    ] = None,
    lines: Lines = 50,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also every step of a run's beginning and end; --json always has them."),
    ] = False,
    json: Json = False,
) -> None:
    """List what happened, newest last, filtered as on the Events screen."""
    from mlebench_console.console.views.events import FILTER_FIELDS, listed_events, parse_event_filter

    chosen = parse_event_filter(" ".join(words or ()))
    if chosen.unknown:
        fields = ", ".join(f"{name}:" for name in FILTER_FIELDS)
        raise UsageProblem(f"events have no field '{chosen.unknown[0]}:'", f"expected {fields} or a word")
    with reading_state(context) as database:
        found = listed_events(database, chosen, limit=lines, whole=everything or json)[::-1] if lines else ()
    if json:
        say_json([asdict(one.event) | {"seed": one.seed, "severity": one.event.severity} for one in found])
    elif found:
        _say_events(found)
    else:
        say("no event matches this filter" if chosen else "nothing has happened yet")


def _say_events(found: tuple[ListedEvent, ...]) -> None:
    say_texts(
        ("time", "severity", "sweep", "competition", "seed", "what happened", "kind"),
        [
            (
                f"{wording.day(one.event.at)} {wording.clock_seconds(one.event.at)}",
                one.event.severity,
                one.event.sweep_id or "",
                one.event.competition_id or "",
                "" if one.seed is None else str(one.seed),
                ", ".join(filter(None, (one.words, one.ended))),
                one.event.kind,
            )
            for one in found
        ],
        right=("seed",),
    )
