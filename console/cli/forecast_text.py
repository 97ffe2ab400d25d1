"""How a dry run is told on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import wording
from console.cli.common import say, say_table

if TYPE_CHECKING:
    from engine.options.sweep import Launch
    from engine.sweeps.forecast import Forecast

_RUNS_SHOWN = 12


def say_forecast(launch: Launch, found: Forecast) -> None:
    """Print what would start, what is missing with its next steps, and how long it takes."""
    spec = launch.spec
    say(
        f"{spec.agent_id} on {len(spec.competitions)} competitions x {spec.seeds} seeds,"
        f" at most {wording.duration(spec.time_limit_seconds)} each: {launch.run_count} runs"
    )
    say(time_text(found))
    say()
    for check in found.checks:
        say(f"{'ok     ' if check.good else 'MISSING'}  {check.text}")
        if not check.good and check.next_step:
            say(f"         {check.next_step}")
    if found.planned:
        say()
        shown = found.planned[:_RUNS_SHOWN]
        say_table(
            ("starts after", "competition", "seed", "takes"),
            [
                (
                    wording.duration(run.starts_after),
                    run.competition_id,
                    str(run.seed),
                    f"{'about' if run.measured else 'at most'} {wording.duration(run.seconds)}",
                )
                for run in shown
            ],
            right=("starts after", "seed"),
        )
        more = len(found.planned) - len(shown)
        if more:
            say(f"and {more} more")
    say()
    say("nothing was launched" if found.can_launch else "this can't be launched yet")


def time_text(found: Forecast) -> str:
    """How long it all takes, and what bounds that."""
    if not found.planned:
        return f"none of them ever starts: there are too few {found.bound_by}"
    at_once = f"{found.at_once} at once, bound by {found.bound_by}"
    at_most = f"at most {wording.duration(found.seconds_at_most)} in all"
    if not found.measured:
        return f"{at_once}; {at_most}; how long this agent works is not known yet"
    told = "earlier runs" if found.measured == len(found.planned) else f"earlier runs of {found.measured}"
    return f"{at_once}; about {wording.duration(found.seconds)} in all, by {told}; {at_most}"
