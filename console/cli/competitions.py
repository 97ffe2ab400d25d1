"""`competitions`: what the benchmark consists of, its cut-offs and its known defects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.cli.invocation import Json
from console.cli.lazy import new_group
from console.cli.output import say, say_json, say_table

if TYPE_CHECKING:
    from competitions.model import Competition

app = new_group("Show the benchmark's competitions and defects.")

Split = Annotated[
    str,
    typer.Option("--split", metavar="NAME|FILE", help="low, medium, high, all, dev ... or a file of ids."),
]


@app.command("list")
def list_(split: Split = "", json: Json = False) -> None:
    """List the competitions, of one split or all."""
    members = _members(split)
    if json:
        say_json([_facts(competition) for competition in members])
        return
    say_table(
        ("competition", "split", "category", "metric", "size", "here"),
        [
            (
                competition.id,
                competition.complexity,
                competition.category,
                competition.metric.name,
                _size(competition),
                "yes" if competition.available else "no",
            )
            for competition in members
        ],
        right=("size",),
    )


@app.command()
def show(
    competition_id: Annotated[str, typer.Argument(metavar="ID", help="Which competition.")],
    json: Json = False,
) -> None:
    """Show one competition: metric, cut-offs, checksums known, defects."""
    from competitions import registry

    competition = registry.get(competition_id)
    if json:
        say_json(_facts(competition))
        return
    cut = competition.thresholds
    teams = "unknown" if cut.num_teams is None else f"{cut.num_teams:,}"
    say(f"{competition.id}: {competition.name}")
    say(f"split       {competition.complexity}")
    say(f"category    {competition.category}")
    say(f"metric      {competition.metric.name}, {competition.metric.direction} is better")
    say(f"medals      gold {cut.gold:g}  silver {cut.silver:g}  bronze {cut.bronze:g}  median {cut.median:g}")
    say(f"teams       {teams}")
    say(f"size        {_size(competition)}")
    say(f"rules       {competition.rules_url}")
    if competition.excluded:
        say(f"corrected   left out of edition corrected: {competition.excluded}")
    for defect in competition.defects:
        say(f"defect      {defect.severity}, {defect.treatment} in edition corrected: {defect.text}")


@app.command()
def defects(split: Split = "", json: Json = False) -> None:
    """List the known defects of edition v1, and which of them edition corrected mends."""
    found = [(competition, defect) for competition in _members(split) for defect in competition.defects]
    if json:
        say_json(
            [
                {
                    "competition_id": competition.id,
                    "severity": defect.severity,
                    "treatment": defect.treatment,
                    "text": defect.text,
                    "remedy": defect.remedy,
                    "known": defect.known,
                }
                for competition, defect in found
            ]
        )
        return
    say_table(
        ("competition", "severity", "corrected", "defect"),
        [(competition.id, defect.severity, defect.treatment, defect.text) for competition, defect in found],
    )


def _members(split: str) -> list[Competition]:
    from competitions import registry

    ids = registry.read_split(split) if split else registry.all_ids()
    return [registry.get(competition_id) for competition_id in ids]


def _size(competition: Competition) -> str:
    return "-" if competition.size_gb is None else f"{competition.size_gb:,.2f} GB"


def _facts(competition: Competition) -> dict[str, Any]:
    cut = competition.thresholds
    return {
        "id": competition.id,
        "name": competition.name,
        "split": competition.complexity,
        "category": competition.category,
        "available": competition.available,
        "metric": competition.metric.name,
        "direction": competition.metric.direction,
        "gold": cut.gold,
        "silver": cut.silver,
        "bronze": cut.bronze,
        "median": cut.median,
        "teams": cut.num_teams,
        "size_gb": competition.size_gb,
        "rules_url": competition.rules_url,
        "excluded_from_corrected": competition.excluded,
        "defects": [defect.text for defect in competition.defects],
    }
