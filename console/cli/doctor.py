"""`doctor`: what this machine has and lacks, with the next step for each."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from console.cli.common import Json, new_app, places_of, say, say_json
from foundation.problems import EnvironmentProblem

app = new_app()


@app.command()
def doctor(context: typer.Context, json: Json = False) -> None:
    """Check what this machine has and lacks, with next steps; exit code 5 when something stops the work."""
    from console.cli.checks import Health, all_checks

    found = []
    for check in all_checks(places_of(context)):
        found.append(check)
        if not json:
            say(f"{check.health:<4}  {check.name:<10}  {check.found}")
            if check.next_step:
                say(f"{'':18}{check.next_step}")
            sys.stdout.flush()
    if json:
        say_json([asdict(check) for check in found])
    if any(check.health is Health.FAIL for check in found):
        raise typer.Exit(EnvironmentProblem.exit_code)
