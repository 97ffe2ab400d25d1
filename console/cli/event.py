"""`events`: what happened, filtered as on the Events screen."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from mlebench_console.console.cli.common import Context, Lines, new_app

app = new_app()


@app.command(
    epilog="Words of the filter: any text, sweep:aide, kind:run.failed, sev:error (warning, good, note), comp:leaf,"
    " seed:2, run:17; ! before one negates it."
)
def events(
    context: Context,
    words: Annotated[
        list[str] | None, Argument(metavar="[WORD...]", help="A filter, such as sweep:aide sev:error.")
    ] = None,
    lines: Lines = 50,
    everything: Annotated[
        bool, Option("--all", help="Also every step of a run's beginning and end; --json always has them.")
    ] = False,
) -> None:
    """List what happened, newest last, filtered as on the Events screen."""
    from mlebench_console.console.nouns.event import EVENT, listed_events

    chosen = EVENT.checked_filter(" ".join(words or ()))
    with context.reading_state() as database:
        found = (
            listed_events(database, chosen, limit=lines, whole=everything or context.json) if lines else ()
        )
    rows = [(one,) for one in reversed(found)]
    nothing = "no event matches this filter" if chosen else "nothing has happened yet"
    context.say_list(EVENT, rows, "time severity sweep competition seed what kind", nothing=nothing)
