"""What the commands around the scoreboard have in common: naming evidence, and what a person adds to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from console.cli.common import places_of, reading_state, say
from foundation.problems import DataProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.scoreboard import Disclosure, Evidence, Row

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="An experiment, sweep or import, or a path to reports, a runs folder or a table.",
    ),
]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...", help="An experiment, sweep or import, or reports, a runs folder or a table."
    ),
]
ExperimentId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Which experiment of a runs folder's run_group_experiments.csv."),
]
Pad = Annotated[bool, typer.Option("--pad-missing", "--pad", help="Count missing and lost runs as no medal.")]


def evidence_for(
    context: typer.Context, sources: Sequence[str], experiment_id: str | None = None
) -> Evidence:
    """Find what a person means."""
    from engine.scoreboard.reports import load_evidence

    return load_evidence(sources, state_dir=places_of(context).state_dir, experiment_id=experiment_id)


def disclosure_for(context: typer.Context, evidence: Evidence, row: Row) -> Disclosure:
    """What must be told with a row; of our own runs also what their attempts had."""
    from engine.scoreboard import disclose
    from engine.scoreboard.own_runs import disclosed

    if evidence.table != "own":
        return disclose(evidence, row)
    with reading_state(context) as database:
        return disclosed(database, evidence, row)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that a person asked for, and say so.

    Raises:
        DataProblem: it can't be written.
    """
    from foundation.files import write_bytes

    try:
        write_bytes(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise DataProblem(f"{path} can't be written", error.strerror or str(error)) from error
    say(f"written to {path}")
