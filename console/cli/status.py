"""`status`: engine, sweeps and disks on one page, or as one document."""

from __future__ import annotations

from dataclasses import asdict

import typer

from console.cli.common import Json, new_app, places_of, reading_state, say, say_json
from console.cli.engine import engine_text
from console.cli.sweeps_text import say_sweeps, sweep_facts

app = new_app()


@app.command()
def status(context: typer.Context, json: Json = False) -> None:
    """Tell how the engine, the sweeps and the disks are."""
    from engine.control import status
    from state import database, sweeps

    places = places_of(context)
    engine = status(places)
    known, counts = [], {}
    if database.exists(places.state_dir):
        with reading_state(context) as opened:
            known, counts = sweeps.all_sweeps(opened), sweeps.counts_of_all(opened)
    if json:
        say_json(
            {
                "state_dir": str(places.state_dir),
                "data_dir": str(places.data_dir),
                "engine": asdict(engine),
                "sweeps": [sweep_facts(sweep, counts.get(sweep.id)) for sweep in known],
            }
        )
        return
    say(engine_text(engine))
    say(f"state   {places.state_dir}")
    say(f"data    {places.data_dir}")
    if known:
        say()
        say_sweeps(known, counts)
    else:
        say("sweeps  none yet; 'mlebench-console sweep launch --help' tells how to launch one")
