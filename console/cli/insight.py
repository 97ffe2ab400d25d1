"""`insight`: what an experiment tells beyond its row."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.common import Json, new_app, places_of, reading_state, say, say_json, say_table
from console.cli.sources import ExperimentId, Sources, evidence_for

if TYPE_CHECKING:
    from engine.scoreboard import Evidence
    from engine.scoreboard.insight import Stability, TimePoint

app = new_app()


@app.command()
def insight(
    context: typer.Context,
    sources: Sources,
    experiment_id: ExperimentId = None,
    run_hour: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="PRICE", help="What an hour of a run costs, instead of [prices] run_hour."
        ),
    ] = None,
    gpu_hour: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="PRICE", help="What an hour of a GPU costs, instead of [prices] gpu_hour."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tell what lies behind a row: pass@k, shorter limits, endings, noise between seeds, effort, flags."""
    from engine.scoreboard import insight
    from engine.settings import Prices, read_table

    evidence = evidence_for(context, sources, experiment_id)
    passing = insight.pass_at_k(evidence)
    points = _points(context, evidence)
    endings = insight.endings_by_split(evidence)
    stability = insight.stability_of(evidence)
    effort = insight.effort_of(evidence)
    flags = insight.flags_of([evidence])
    prices = read_table(places_of(context).config_file, Prices)
    prices = Prices(
        prices.run_hour if run_hour is None else run_hour,
        prices.gpu_hour if gpu_hour is None else gpu_hour,
        prices.currency,
    )
    cost = insight.cost_of(effort, prices)
    if json:
        say_json(
            {
                "name": evidence.name,
                "pass_at_k": [asdict(one) for one in passing],
                "shorter_limits": [asdict(one) for one in points],
                "endings": [asdict(one) for one in endings],
                "stability": None if stability is None else asdict(stability),
                "effort": asdict(effort)
                | {
                    "run_hours_per_medal": effort.run_hours_per_medal,
                    "gpu_hours_per_medal": effort.gpu_hours_per_medal,
                },
                "cost": None if cost is None else asdict(cost),
                "flags": [asdict(one) for one in flags],
            }
        )
        return
    for part in endings:
        told = ", ".join(f"{count} {ending}" for ending, count in part.counts.items())
        say(f"{part.split:<7} {part.runs:>4} runs: {told}")
    if passing:
        say()
        say_table(
            ("k", "pass@k, any medal", "competitions"),
            [(str(one.k), f"{one.percent:.2f}", str(one.competitions)) for one in passing],
            right=("k", "pass@k, any medal", "competitions"),
        )
    if points:
        say()
        say_table(
            ("limit, h", "any medal"),
            [(f"{one.hours:.3g}{' (real)' if one.full else ''}", str(one.cell)) for one in points],
            right=("any medal",),
        )
    if stability is not None:
        _say_stability(stability)
    if effort.runs:
        say()
        each = [
            f"{hours:.2f} {name} for a medal"
            for name, hours in (
                ("run-hours", effort.run_hours_per_medal),
                ("GPU-hours", effort.gpu_hours_per_medal),
            )
            if hours
        ]
        say(", ".join([f"effort: {effort.run_hours:.2f} hours in {effort.runs} runs", *each]))
    if cost is not None:
        say(f"cost: {cost}")
    if flags:
        say()
        say_table(
            ("competition", "flag", ""),
            [(flag.competition_id, flag.kind, flag.text) for flag in flags],
            limits={"": 100},
        )


def _points(context: typer.Context, evidence: Evidence) -> tuple[TimePoint, ...]:
    from engine.scoreboard.insight import shorter_limits
    from engine.scoreboard.own_runs import curves_of

    if evidence.table != "own" or evidence.conflict:
        return ()
    with reading_state(context) as database:
        return shorter_limits(curves_of(database, evidence), evidence.limit_hours)


def _say_stability(stability: Stability) -> None:
    say()
    say(f"{len(stability.flipping)} of {stability.competitions} competitions flip between seeds")
    if stability.flipping:
        say(f"  {', '.join(stability.flipping)}")
    rates = ", ".join(f"{rate:.2f}" for rate in stability.seed_rates)
    say(f"complete seeds: {rates or 'none'}; one seed's standard deviation {stability.seed_deviation:.2f}")
    say("difference between two agents that would be noticed (5 % significance, 80 % power):")
    say("  " + ", ".join(f"{one.points:.1f} points with {one.seeds} seeds" for one in stability.detectable))
