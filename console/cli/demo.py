"""`demo`: start or resume a demo sweep with synthetic data, and open the console on it."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from mlebench_console.console.cli.common import Context, TextCommand, new_app, open_console, require_terminal
from mlebench_console.console.cli.output import say

app = new_app()


@app.command(cls=TextCommand)
def demo(
    context: Context,
    reset: Annotated[bool, Option(help="Stop and remove the demo first, and start again.")] = False,
    no_console: Annotated[bool, Option(help="Only start it; watch it with 'status' or the console.")] = False,
) -> None:
    """Open the console on a demo sweep with synthetic data; a second call resumes it."""
    if not no_console:
        require_terminal()
    from mlebench_console.engine.demo import demo_places, ensure_demo, reset_demo

    invocation = context.invocation
    if reset:
        reset_demo(invocation.own_places)
    ensure_demo(invocation.own_places)
    if no_console:
        say("the demo is running; look: mlebench-console --demo status, or without 'status' for the console")
    else:
        open_console(demo_places(invocation.own_places), invocation.appearance, demo=True)
