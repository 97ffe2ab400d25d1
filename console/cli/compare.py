"""`compare`: two experiments beside each other, and which competitions decide between them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.common import Json, new_app, say, say_json, say_table
from console.cli.sources import Source, evidence_for
from foundation.problems import UsageProblem

if TYPE_CHECKING:
    from engine.scoreboard import Comparison, Difference, Side

app = new_app()


@app.command()
def compare(
    context: typer.Context,
    first: Source,
    second: Source,
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="What to compare: any_medal, gold, above_median, valid, ...")
    ] = "any_medal",
    everything: Annotated[
        bool, typer.Option("--everything", help="Also the competitions that come out even.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two experiments by competition, with an exact permutation test and what decides."""
    from engine import scoreboard

    if measure not in list(scoreboard.Measure):
        raise UsageProblem(
            f"there is no measure '{measure}'", "", f"Take one of {', '.join(scoreboard.Measure)}."
        )
    found = scoreboard.compare(
        evidence_for(context, [first]), evidence_for(context, [second]), measure=scoreboard.Measure(measure)
    )
    if json:
        say_json(asdict(found))
    else:
        _say(found, everything=everything)


def _say(found: Comparison, *, everything: bool) -> None:
    say(f"{found.first} against {found.second}, {found.measure.replace('_', ' ')}, paired by competition")
    for caveat in found.caveats:
        say(f"beware: {caveat}")
    say()
    say_table(
        ("split", "competitions", "first", "second", "difference", "p", "decided by"),
        [
            *(_difference_line(name, part) for name, part in found.by_column.items()),
            _difference_line("in common", found.overall),
        ],
        right=("competitions", "first", "second", "difference", "p", "decided by"),
    )
    shown = found.duels if everything else found.deciding
    if shown:
        say()
        say_table(
            ("competition", "split", "first", "second", "difference", "first scores", "second scores"),
            [
                (
                    duel.competition_id,
                    duel.complexity,
                    f"{duel.first.earned}/{duel.first.seeds}",
                    f"{duel.second.earned}/{duel.second.seeds}",
                    f"{duel.difference:+.1f}",
                    _scores(duel.first),
                    _scores(duel.second),
                )
                for duel in shown
            ],
            right=("first", "second", "difference"),
        )
    if found.left_out:
        say()
        say(f"left out, as only one has results: {', '.join(found.left_out)}")


def _difference_line(name: str, part: Difference) -> tuple[str, ...]:
    return (
        name,
        str(part.competitions),
        f"{part.first:.2f}",
        f"{part.second:.2f}",
        f"{part.points:+.2f}",
        f"{part.p_value:.3f}",
        str(part.deciding),
    )


def _scores(side: Side) -> str:
    return " ".join(f"{score:g}" for score in side.scores) or "-"
