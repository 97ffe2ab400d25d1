"""`watch`: a plain summary at intervals, for logs, pipes and screen readers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Set
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Json, new_app, places_of
from mlebench_console.console.cli.output import say, say_wrapped
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural
from mlebench_console.state import database

if TYPE_CHECKING:
    from mlebench_console.console.nouns.costs import SweepCosts
    from mlebench_console.console.views.datasets import Totals
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.engine.needs.needs import NeedFacts, Needs
    from mlebench_console.engine.needs.standing import SweepStanding

app = new_app()


@dataclass(frozen=True)
class WatchReport:
    """One reading of the state; parts that could not be read are missing, and `problem` says why."""

    now: float
    engine: EngineStatus | None
    sweeps: tuple[SweepStanding, ...]
    costs: Mapping[str, SweepCosts]
    needs: Needs
    problem: str
    facts: NeedFacts
    datasets: Totals | None


@app.command()
def watch(
    context: typer.Context,
    every: Annotated[
        float, Option(min=1, metavar="SECONDS", help="How long to wait between two summaries.")
    ] = 60.0,
    times: Annotated[
        int, Option(min=0, metavar="N", help="How many summaries; 0 continues until interrupted.")
    ] = 0,
    json: Json = False,
) -> None:
    """Print a summary at intervals, in plain lines, or as one JSON document per line."""
    places = places_of(context)
    count = 0
    told: set[str] = set()
    while True:
        seen = _look(places)
        if json:
            _say_json(seen)
        else:
            _say(seen, told)
            # What is over is told once: a sweep that a relaunch has brought back is news again.
            told = {line.sweep.id for line in seen.sweeps if line.is_over}
        # A pipe is read as it is written.
        sys.stdout.flush()
        count += 1
        if count == times:
            return
        time.sleep(every)


def _look(places: Places) -> WatchReport:
    """Read the state once; a state that can't be read is reported, and read again the next time."""
    from mlebench_console.console.views.datasets import totals_of
    from mlebench_console.console.views.overview import overview
    from mlebench_console.engine import control
    from mlebench_console.engine.needs.needs import NeedFacts, needs

    now = time.time()
    engine, problem = None, ""
    sweeps: tuple[SweepStanding, ...] = ()
    costs: Mapping[str, SweepCosts] = {}
    facts, has_state = NeedFacts(), False
    preparing: Totals | None = None
    try:
        engine = control.status(places)
        has_state = database.exists(places.state_dir)
        if has_state:
            with closing(database.open_for_reading(places.state_dir)) as opened:
                found = overview(opened, places.config_file, now)
                preparing = totals_of(opened, places, engine)
            sweeps, costs, facts = found.sweeps, found.costs, found.needs
    except Problem as told:
        problem = " ".join(str(told).splitlines())
    listed = needs(facts, engine, now, has_state=has_state, unread=problem)
    return WatchReport(now, engine, sweeps, costs, listed, problem, facts, preparing)


def _say(seen: WatchReport, told: Set[str]) -> None:
    """Print a summary; ended sweeps that were `told` before are only counted."""
    from mlebench_console.console.cli.status import datasets_text
    from mlebench_console.console.nouns.need import MOST_IN_SUMMARIES, need_text
    from mlebench_console.engine.needs.need import NeedKind

    say(f"{wording.date_and_time(seen.now)}  {_engine(seen.engine)}")
    if seen.datasets is not None and seen.datasets.busy:
        say_wrapped(f"datasets: {datasets_text(seen.datasets)}", indent="  ")
    repeated = [line for line in seen.sweeps if line.is_over and line.sweep.id in told]
    for line in (line for line in seen.sweeps if line not in repeated):
        say_wrapped(_sweep(line, seen), indent="  ")
    if repeated:
        verb = "is" if len(repeated) == 1 else "are"
        say_wrapped(f"{plural(len(repeated), 'sweep')} {verb} over as before", indent="  ")
    # The first line has said whether the engine runs, and its own problems.
    said_above = (NeedKind.ENGINE, NeedKind.HOST)
    listed = [need for need in (*seen.needs.needed, *seen.needs.own) if need.kind not in said_above]
    for need in listed[:MOST_IN_SUMMARIES]:
        who = "the agent failed" if need.is_own else "needs you"
        say_wrapped(f"{who}: {need_text(need, seen.now)}", indent="  ")
    if len(listed) > MOST_IN_SUMMARIES:
        more = len(listed) - MOST_IN_SUMMARIES
        say_wrapped(f"needs you: {more:,} more, see 'mlebench-console runs causes'", indent="  ")


def _engine(engine: EngineStatus | None) -> str:
    if engine is None or not engine.running:
        return "engine not running"
    parts = [f"engine running, {engine.live} live, {engine.queued} queued"]
    if engine.retrying:
        parts.append(f"{engine.retrying} to be retried")
    if engine.state_disk_free is not None:
        parts.append(f"disk {wording.size(engine.state_disk_free)} free")
    if engine.problem:
        parts.append(f"problem: {engine.problem}")
    return ", ".join(parts)


def _sweep(line: SweepStanding, seen: WatchReport) -> str:
    from mlebench_console.console.nouns.costs import money, short_cost
    from mlebench_console.engine.needs.needs import budget_text

    counts, costs = line.counts, seen.costs.get(line.sweep.id)
    parts = [
        f"sweep {line.sweep.id}: {line.ended} of {counts.total} ended",
        *([f"{counts.live} running"] if counts.live else []),
        *([f"{counts.queued} queued"] if counts.queued else []),
        *([f"{counts.failed} failed{wording.retrying(counts.retrying)}"] if counts.failed else []),
    ]
    if counts.demo:
        parts.append("demo data, not a result")
    parts.append(wording.medals(line.interim, line.any_medal, "±")[0])
    if (wait := line.obstacle(seen.engine)) is not None:
        parts.append(f"waits: {wait.text}")
    elif end := wording.sweep_end(line.end(seen.engine), seen.now):
        parts.append(end)
    if costs is not None and costs.spending.models:
        parts.append(f"models {short_cost(costs.spending)}")
        if costs.projected is not None:
            parts.append(f"about {money(costs.projected)} projected {costs.basis}")
    for standing in () if costs is None else costs.budgets:
        parts.append(budget_text(standing))
    return ", ".join(parts)


def _say_json(seen: WatchReport) -> None:

    from mlebench_console.console.nouns.need import need_document

    document = {
        "at": seen.now,
        "engine": None if seen.engine is None else asdict(seen.engine),
        "problem": seen.problem,
        "kaggle": asdict(seen.facts.kaggle),
        "provider_outages": [asdict(outage) | {"calls": outage.calls} for outage in seen.facts.outages],
        "sweeps": [_document(line, seen) for line in seen.sweeps],
        "needs_you": [need_document(need, seen.now) for need in (*seen.needs.needed, *seen.needs.own)],
    }
    sys.stdout.write(json.dumps(document) + "\n")


def _document(line: SweepStanding, seen: WatchReport) -> dict[str, Any]:
    from mlebench_console.console.nouns.sweep import standing_document

    costs, end = seen.costs.get(line.sweep.id), line.planned_end
    return {
        "id": line.sweep.id,
        "state": line.sweep.state,
        **standing_document(line, seen.engine),
        "seconds_left": None if isinstance(end, str) else max(0.0, end.at - seen.now),
        "costs": None if costs is None else costs.document(),
        "budgets": [] if costs is None else [one.document() for one in costs.budgets],
    }
