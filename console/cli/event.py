"""`events`: what happened, filtered as on the Events screen."""

from __future__ import annotations

import time
from typing import Annotated

from typer import Argument, Option

from mlebench_console.console.cli.common import Context, Lines, new_app
from mlebench_console.console.cli.output import say, say_json, say_rows
from mlebench_console.foundation.problems import UsageProblem

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
    from mlebench_console.console.nouns.event import EVENT, FILTER_FIELDS, listed_events

    chosen = EVENT.filter(" ".join(words or ()))
    if chosen.unknown:
        fields = ", ".join(f"{name}:" for name in FILTER_FIELDS)
        raise UsageProblem(f"events have no field '{chosen.unknown[0]}:'", f"expected {fields} or a word")
    with context.reading_state() as database:
        found = (
            listed_events(database, chosen, limit=lines, whole=everything or context.json) if lines else ()
        )
    rows = [(one,) for one in reversed(found)]
    if context.json:
        say_json([EVENT.document(row, time.time()) for row in rows])
    elif rows:
        say_rows(EVENT.columns("time severity sweep competition seed what kind"), rows)
    else:
        say("no event matches this filter" if chosen else "nothing has happened yet")
