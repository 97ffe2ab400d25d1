"""`status`: engine, sweeps and disks on one page, or as one document; and how commands print sweeps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from mlebench_console.console import wording
from mlebench_console.console.cli.common import Json, new_app, places_of, reading_state
from mlebench_console.console.cli.host.engine import engine_text
from mlebench_console.console.cli.output import say, say_json, say_rows
from mlebench_console.engine.needs.causes import CauseKind
from mlebench_console.foundation.text import plural
from mlebench_console.state import database
from mlebench_console.state.records import IMPORTED, Sweep

if TYPE_CHECKING:
    from mlebench_console.console.nouns.sweep import SweepRow
    from mlebench_console.console.views.datasets import Totals
    from mlebench_console.engine.needs.standing import SweepStanding

app = new_app()


@app.command()
def status(context: typer.Context, json: Json = False) -> None:
    """Show the state of the engine, the sweeps and the disks."""
    from mlebench_console.console.nouns.need import CAUSE, MOST_IN_SUMMARIES, need_document, need_text
    from mlebench_console.console.nouns.sweep import SWEEP, SweepRow
    from mlebench_console.console.views.datasets import totals_of
    from mlebench_console.console.views.sweep import listed_sweeps
    from mlebench_console.engine.control import status
    from mlebench_console.engine.needs.need import NeedKind
    from mlebench_console.engine.needs.needs import NeedFacts, needs, read_needs
    from mlebench_console.engine.needs.standing import read_standings

    places = places_of(context)
    engine = status(places)
    known: list[SweepStanding] = []
    found, now = NeedFacts(), time.time()
    preparing: Totals | None = None
    has_state = database.exists(places.state_dir)
    if has_state:
        with reading_state(context) as opened:
            known = read_standings(opened, listed_sweeps(opened), now)
            found = read_needs(opened)
            preparing = totals_of(opened, places, engine)
    rows = [SweepRow(one, engine) for one in known]
    listed = needs(found, engine, now, has_state=has_state)
    groups = [need.group for need in listed.every if need.group is not None]
    if json:
        say_json(
            {
                "state_dir": str(places.state_dir),
                "data_dir": str(places.data_dir),
                "engine": asdict(engine),
                "kaggle": asdict(found.kaggle),
                "provider_outages": [asdict(outage) | {"calls": outage.calls} for outage in found.outages],
                "datasets": None if preparing is None else asdict(preparing),
                "sweeps": [SWEEP.document(row, now) for row in rows],
                "ungradable": [
                    asdict(run) for one in groups if one.kind is CauseKind.UNGRADABLE for run in one.runs
                ],
                "causes": [CAUSE.document(one, now) for one in groups],
                "needs": [need_document(need, now) for need in listed.every],
            }
        )
        return
    say(engine_text(engine))
    say(f"state   {places.state_dir}")
    say(f"data    {places.data_dir}")
    if preparing is not None and preparing.busy:
        say(f"queue   {datasets_text(preparing)}")
    for one in known:
        if (wait := one.obstacle(engine)) is not None:
            say(f"waits   {one.sweep.id}: {wait.text}")
    # The first line has said whether the engine runs.
    needed = [need for need in listed.needed if need.kind is not NeedKind.ENGINE]
    for need in needed[:MOST_IN_SUMMARIES]:
        say(f"needs   {need_text(need, now)}")
    if len(needed) > MOST_IN_SUMMARIES:
        say(f"needs   {len(needed) - MOST_IN_SUMMARIES:,} more, see 'mlebench-console runs causes'")
    if rows:
        say()
        say_sweeps(rows)
    else:
        say("sweeps  none yet; 'mlebench-console sweep launch --help' shows how to launch one")


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


def say_sweeps(rows: Sequence[SweepRow], *, with_medals: bool = True) -> None:
    """Print one line for each sweep."""
    from mlebench_console.console.nouns.sweep import SWEEP

    medals = "medals " if with_medals else ""
    counts = "total queued live finished failed retrying stopped"
    say_rows(SWEEP.columns(f"sweep agent state {counts} {medals}ends created result notes"), rows)


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
