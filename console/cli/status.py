"""`status` and `watch`: engine, sweeps and what needs a person, once on one page or at intervals in plain lines."""

from __future__ import annotations

import json as jsonlib
import sys
import time
from collections.abc import Mapping, Set
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Context, new_app
from mlebench_console.console.cli.host.engine import engine_text
from mlebench_console.console.cli.output import say, say_json, say_rows, say_wrapped
from mlebench_console.engine.needs.causes import CauseKind
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural
from mlebench_console.state import database
from mlebench_console.state.records import IMPORTED, Sweep

if TYPE_CHECKING:
    from mlebench_console.console.nouns.costs import SweepCosts
    from mlebench_console.console.views.datasets import Totals
    from mlebench_console.engine.control import EngineStatus
    from mlebench_console.engine.needs.needs import NeedFacts, Needs
    from mlebench_console.engine.needs.standing import SweepStanding

# The fields of sweeps in a list, and of one whose medals stand below it.
_COUNTS, _ENDS = "total queued live finished failed retrying stopped", "ends created result notes"
SWEEPS, ONE_SWEEP = f"sweep agent state {_COUNTS} medals {_ENDS}", f"sweep agent state {_COUNTS} {_ENDS}"
app = new_app()


@dataclass(frozen=True)
class Summary:
    """One reading of the state; parts that could not be read are missing, and `problem` says why."""

    now: float
    engine: EngineStatus | None
    sweeps: tuple[SweepStanding, ...]
    costs: Mapping[str, SweepCosts]
    needs: Needs
    facts: NeedFacts
    datasets: Totals | None
    problem: Problem | None

    def document(self) -> dict[str, Any]:
        """Return the parts of it that all JSON documents of it have alike."""
        return {
            "engine": None if self.engine is None else asdict(self.engine),
            "kaggle": asdict(self.facts.kaggle),
            "provider_outages": [asdict(outage) | {"calls": outage.calls} for outage in self.facts.outages],
        }


def read_summary(places: Places) -> Summary:
    """Read the state once; one that can't be read is a problem of the summary."""
    from mlebench_console.console.views.datasets import totals_of
    from mlebench_console.console.views.overview import overview
    from mlebench_console.engine import control
    from mlebench_console.engine.needs.needs import NeedFacts, needs

    now = time.time()
    engine, problem = None, None
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
    except Problem as error:
        problem = error
    unread = "" if problem is None else " ".join(str(problem).splitlines())
    listed = needs(facts, engine, now, has_state=has_state, unread=unread)
    return Summary(now, engine, sweeps, costs, listed, facts, preparing, problem)


@app.command()
def status(context: Context) -> None:
    """Show the state of the engine, the sweeps and the disks."""
    from mlebench_console.console.nouns.need import CAUSE, MOST_IN_SUMMARIES, need_document, need_text
    from mlebench_console.console.nouns.sweep import SWEEP, SweepRow
    from mlebench_console.engine.needs.need import NeedKind

    places = context.places
    seen = read_summary(places)
    if seen.problem is not None:
        raise seen.problem
    assert seen.engine is not None  # read without a problem
    now, preparing = seen.now, seen.datasets
    rows = [SweepRow(one, seen.engine) for one in seen.sweeps]
    if context.json:
        groups = [need.group for need in seen.needs.every if need.group is not None]
        say_json(
            {
                "state_dir": str(places.state_dir),
                "data_dir": str(places.data_dir),
                **seen.document(),
                "datasets": None if preparing is None else asdict(preparing),
                "sweeps": [SWEEP.document(row, now) for row in rows],
                "ungradable": [
                    asdict(run) for one in groups if one.kind is CauseKind.UNGRADABLE for run in one.runs
                ],
                "causes": [CAUSE.document(one, now) for one in groups],
                "needs": [need_document(need, now) for need in seen.needs.every],
            }
        )
        return
    say(engine_text(seen.engine))
    say(f"state   {places.state_dir}")
    say(f"data    {places.data_dir}")
    if preparing is not None and preparing.busy:
        say(f"queue   {datasets_text(preparing)}")
    for one in seen.sweeps:
        if (wait := one.obstacle(seen.engine)) is not None:
            say(f"waits   {one.sweep.id}: {wait.text}")
    # The first line has said whether the engine runs.
    needed = [need for need in seen.needs.needed if need.kind is not NeedKind.ENGINE]
    for need in needed[:MOST_IN_SUMMARIES]:
        say(f"needs   {need_text(need, now)}")
    if len(needed) > MOST_IN_SUMMARIES:
        say(f"needs   {len(needed) - MOST_IN_SUMMARIES:,} more, see 'mlebench-console runs causes'")
    if rows:
        say()
        say_rows(SWEEP.columns(SWEEPS), rows)
    else:
        say("sweeps  none yet; 'mlebench-console sweep launch --help' shows how to launch one")


@app.command()
def watch(
    context: Context,
    every: Annotated[
        float, Option(min=1, metavar="SECONDS", help="How long to wait between two summaries.")
    ] = 60.0,
    times: Annotated[
        int, Option(min=0, metavar="N", help="How many summaries; 0 continues until interrupted.")
    ] = 0,
) -> None:
    """Print a summary at intervals, in plain lines, or as one JSON document per line."""
    places = context.places
    count = 0
    told: set[str] = set()
    while True:
        seen = read_summary(places)
        if context.json:
            _say_document(seen)
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


def _say(seen: Summary, told: Set[str]) -> None:
    """Print a summary; ended sweeps that were `told` before are only counted."""
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


def _sweep(line: SweepStanding, seen: Summary) -> str:
    from mlebench_console.console.nouns.costs import money, short_cost
    from mlebench_console.engine.needs.needs import budget_text

    counts, costs = line.counts, seen.costs.get(line.sweep.id)
    retried = f" ({counts.retrying} to be retried)" if counts.retrying else ""
    parts = [
        f"sweep {line.sweep.id}: {line.ended} of {counts.total} ended",
        *([f"{counts.live} running"] if counts.live else []),
        *([f"{counts.queued} queued"] if counts.queued else []),
        *([f"{counts.failed} failed{retried}"] if counts.failed else []),
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


def _say_document(seen: Summary) -> None:
    from mlebench_console.console.nouns.need import need_document

    document = {
        "at": seen.now,
        **seen.document(),
        "problem": "" if seen.problem is None else " ".join(str(seen.problem).splitlines()),
        "sweeps": [_document(line, seen) for line in seen.sweeps],
        "needs_you": [need_document(need, seen.now) for need in (*seen.needs.needed, *seen.needs.own)],
    }
    sys.stdout.write(jsonlib.dumps(document) + "\n")


def _document(line: SweepStanding, seen: Summary) -> dict[str, Any]:
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


def datasets_text(found: Totals) -> str:
    """Return the progress of all requested datasets in one line; empty without any."""
    if not found.busy:
        return ""
    whole = found.downloaded + found.to_download
    parts = [plural(found.busy, "dataset")]
    if whole:
        parts.append(f"{wording.size(found.downloaded)} of {wording.size(whole)} downloaded")
    if found.download_rate:
        parts.append(f"{wording.size(found.download_rate)}/s")
    if found.eta is not None:
        parts.append(f"{'at least ' if found.of_unknown_size else ''}{wording.duration(found.eta)} left")
    if found.of_unknown_size:
        parts.append(f"{found.of_unknown_size} of unknown size")
    return ", ".join(parts)


def spec_text(sweep: Sweep) -> str:
    """Return what was asked for, in one line; of imported runs only what is known."""
    spec, conditions = sweep.spec, sweep.conditions
    what, seconds = spec.extent, conditions.time_limit_seconds
    limit = f", {wording.duration(seconds)} each" if seconds else ""
    if conditions.runtime == IMPORTED:
        return f"{what}{limit}, imported from run groups, graded by edition {conditions.edition}"
    ramp = f", started {wording.duration(spec.start_ramp_seconds)} apart" if spec.start_ramp_seconds else ""
    return (
        f"{what}{limit}, edition {conditions.edition}, {sweep.concurrency} at once{ramp},"
        f" priority {sweep.priority}, network {conditions.network}, runtime {conditions.runtime}"
    )
