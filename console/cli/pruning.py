"""What `datasets prune` lists, asks and removes; what may go at all is the engine's business."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from console import wording
from console.cli.common import complain, places_of, reading_state, say, say_table
from foundation.problems import Problem, UsageProblem

if TYPE_CHECKING:
    from engine.datasets.pruning import Part


def remove(parts: Sequence[Part], base: Path) -> list[str]:
    """Remove parts, and return what went wrong with those that stayed."""
    from competitions import registry
    from engine.datasets import pruning

    problems = []
    given_back = 0
    for competition_id in dict.fromkeys(part.competition_id for part in parts):
        names = [part.name for part in parts if part.competition_id == competition_id]
        try:
            given_back += pruning.prune(registry.get(competition_id), base, names)
        except Problem as problem:
            problems.append(str(problem))
            complain(str(problem))
    complain(f"{wording.size(given_back)} given back")
    return problems


def list_parts(parts: Sequence[Part], needed: dict[str, str]) -> None:
    """List what would go, and what stays because a sweep needs it."""
    for competition_id, name in needed.items():
        say(f"{competition_id}: its prepared data stay, sweep {name} has runs of it that have not ended")
    if not parts:
        say("there is nothing to remove")
        return
    say_table(
        ("competition", "part", "size", "changed"),
        [
            (part.competition_id, part.name, wording.size(part.bytes), wording.day_and_clock(part.changed))
            for part in parts
        ],
        right=("size",),
    )
    say(f"{len(parts)} parts, {wording.size(sum(part.bytes for part in parts))}")


def confirmed(json: bool) -> bool:
    """Ask whether it may go; no is the default."""
    if json:
        raise UsageProblem("--json can't ask", "", "Add --yes.")
    return typer.confirm("Remove them?", default=False)


def needed(context: typer.Context, chosen: Sequence[str]) -> dict[str, str]:
    """Which competitions sweeps still need, and which sweep."""
    from engine.datasets.requests import sweep_in_need_of
    from state import database

    if not database.exists(places_of(context).state_dir):
        return {}
    with reading_state(context) as opened:
        found = ((one, sweep_in_need_of(opened, one)) for one in chosen)
        return {one: name for one, name in found if name is not None}
