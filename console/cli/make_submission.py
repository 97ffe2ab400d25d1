"""`make-submission`: the JSONL of a run group's submissions, from its metadata.json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.common import Json, new_app, say, say_json

app = new_app()


@app.command()
def make_submission(
    metadata: Annotated[Path, typer.Option(metavar="FILE", help="The group's metadata.json, or its folder.")],
    output: Annotated[Path, typer.Option(metavar="JSONL", help="Where the list is written.")],
    rel_log_path: Annotated[
        str, typer.Option(metavar="PATH", help="Where a run's log lies in its folder.")
    ] = "logs/agent.log",
    rel_code_path: Annotated[
        str, typer.Option(metavar="PATH", help="Where a run's code lies in its folder.")
    ] = "code/train.py",
    json: Json = False,
) -> None:
    """List a run group's submissions in a JSONL file for 'grade'; what a run has not left is null."""
    from dataclasses import asdict

    from engine.rungroups import read_group, submissions_of, write_submissions

    lines = submissions_of(read_group(metadata), log=rel_log_path, code=rel_code_path)
    write_submissions(output, lines)
    if json:
        say_json([asdict(line) for line in lines])
    else:
        handed_in = sum(line.submission_path is not None for line in lines)
        say(f"{len(lines)} runs, {handed_in} with a submission, in {output}")
