"""`aggregate`: percentages with their errors over seeds, from runs, reports or tables, by MLE-bench's rules."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console.cli.common import Json, new_app, say, say_json, say_table
from console.cli.sources import ExperimentId, Pad, Sources, evidence_for

if TYPE_CHECKING:
    from engine.scoreboard import Cell, Evidence, Measure

app = new_app()

Lines = list[tuple[str, str, "Mapping[Measure, Cell]"]]


class By(StrEnum):
    """What `--by` takes."""

    SPLIT = "split"
    CATEGORY = "category"
    COMPETITION = "competition"


@app.command()
def aggregate(
    context: typer.Context,
    sources: Sources,
    experiment_id: ExperimentId = None,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE", help="Only this split; repeatable. Low, medium, high, all."),
    ] = None,
    pad: Pad = False,
    num_seeds: Annotated[
        int, typer.Option(metavar="N", help="How many seeds to take; -1 for all.", min=-1)
    ] = -1,
    by: Annotated[By, typer.Option(help="What to take apart by.")] = By.SPLIT,
    json: Json = False,
) -> None:
    """Aggregate runs, grading reports or a table of outcomes: percentages as mean ± SEM over seeds."""
    evidence = evidence_for(context, sources, experiment_id)
    lines = _lines(evidence, split, by, pad=pad, seeds=num_seeds)
    if json:
        say_json(
            {
                "name": evidence.name,
                "edition": evidence.conditions.edition,
                "padded": pad,
                "lines": [_document(name, covered, measures) for name, covered, measures in lines],
            }
        )
        return
    say(
        f"{evidence.name}, edition {evidence.conditions.edition}, mean ± SEM over seeds{', padded' if pad else ''}"
    )
    headings = (
        "any medal",
        "95 % interval",
        "gold",
        "silver",
        "bronze",
        "above median",
        "valid",
        "submission",
    )
    say_table(
        (by.value, "runs of", "seeds", *headings),
        [(name, covered, *_cells(measures)) for name, covered, measures in lines],
        right=("runs of", "seeds", *headings),
    )


def _lines(evidence: Evidence, split: list[str] | None, by: By, *, pad: bool, seeds: int) -> Lines:
    from competitions import registry
    from engine.scoreboard.aggregation import by_category, by_competition, measures_on, row_of
    from foundation.problems import UsageProblem

    if evidence.conflict:
        raise UsageProblem(
            f"{evidence.name} makes no row", evidence.conflict, "Aggregate its parts by themselves."
        )
    if by is By.COMPETITION:
        wanted = None if split is None else {one for name in split for one in registry.read_split(name)}
        return [
            (line.competition_id, str(len(line.trials)), line.measures)
            for line in by_competition(evidence)
            if wanted is None or line.competition_id in wanted
        ]
    if by is By.CATEGORY or (split is None and seeds < 0):
        standings = (
            by_category(evidence, pad_missing=pad)
            if by is By.CATEGORY
            else row_of(evidence, pad_missing=pad).columns
        )
        return [(name, f"{one.covered}/{one.of}", one.measures) for name, one in standings.items()]
    have = set(evidence.competitions)
    found: Lines = []
    for name in split or ("split75",):
        members = registry.read_split(name)
        measures = measures_on(evidence, members, pad_missing=pad, seeds=seeds)
        found.append((name, f"{sum(member in have for member in members)}/{len(members)}", measures))
    return found


def _cells(measures: Mapping[Measure, Cell]) -> tuple[str, ...]:
    from engine.scoreboard import MEASURES_BY_INTEREST, Measure

    if not measures:
        return ("-",) * 9
    medal = measures[Measure.ANY_MEDAL]
    low, high = medal.interval()
    others = (str(measures[one]) for one in MEASURES_BY_INTEREST if one is not Measure.ANY_MEDAL)
    return (str(medal.n), str(medal), f"{low:.2f} to {high:.2f}", *others)


def _document(name: str, covered: str, measures: Mapping[Measure, Cell]) -> dict[str, Any]:
    from engine.scoreboard.export import measures_document

    return {"name": name, "runs_of": covered, "measures": measures_document(measures)}
