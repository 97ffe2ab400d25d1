"""`placements`: where runs can be placed, how much room is there, and what their jobs lack."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Context, new_group
from mlebench_console.console.cli.output import say, say_checks, say_json

app = new_group()


@app.command("list")
def list_(context: Context) -> None:
    """List this host and every profile of config.toml, with our runs there; asks Slurm once."""
    from mlebench_console.engine.placements.checks import known_placements

    found = known_placements(context.places)

    def number(value: int | None) -> str:
        return wording.UNKNOWN if value is None else f"{value:,}"

    context.say_records(
        ("placement", "partition", "account", "qos", "running", "waiting", "room", "of", "runtime", "usable"),
        found,
        lambda one: (
            one.placement,
            *(name or wording.UNKNOWN for name in (one.partition, one.account, one.qos)),
            *map(str, (one.running, one.waiting)),
            *map(number, (one.room, one.most)),
            one.runtime,
            "yes" if one.answers else f"no: {one.problem}",
        ),
        right=("running", "waiting", "room", "of"),
    )
    steps = (
        ()
        if context.json
        else dict.fromkeys(one.next_step for one in found if not one.answers and one.next_step)
    )
    for step in steps:
        say(step)


@app.command()
def check(
    context: Context,
    placement: Annotated[
        str, Argument(metavar="[NAME]", help="here, slurm, or slurm:PROFILE for another profile.")
    ] = "slurm",
) -> None:
    """Check everything that jobs of a placement need, without submitting one; exit code 1 if something is missing."""
    from mlebench_console.engine.placements.checks import check_placement

    found = tuple(check_placement(context.places, placement))
    is_good = all(one.allows_work for one in found)
    if context.json:
        say_json({"placement": placement, "good": is_good, "checks": [one.document() for one in found]})
    else:
        say_checks(found)
        say()
        say(f"jobs can be placed on {placement}" if is_good else f"jobs can't be placed on {placement} yet")
    if not is_good:
        raise typer.Exit(1)
