"""`datasets`: which datasets there are, whether Kaggle lets us have them, what they take, and what may go."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from console import wording
from console.cli.common import (
    DataDir,
    EditionFlag,
    EditionName,
    Json,
    data_dir_of,
    new_group,
    places_of,
    reading_state,
    say,
    say_json,
    say_table,
)
from console.cli.competitions import Split
from console.cli.datasets_chosen import Ids, chosen_ids
from console.cli.datasets_listing import known_datasets, list_datasets, show
from console.cli.datasets_verify import verify
from console.cli.pruning import confirmed, list_parts, needed, remove
from foundation.problems import DataProblem, UsageProblem

if TYPE_CHECKING:
    pass

app = new_group("List, check, verify, stop and prune datasets.")

_DAY = 86_400.0

app.command("list")(list_datasets)
app.command()(show)
app.command()(verify)


@app.command()
def rules(competition_id: Ids = None, split: Split = "", json: Json = False) -> None:
    """Ask Kaggle which competitions' data we may download, and show where to accept the rules of the others."""
    from competitions import registry
    from engine.datasets.access import AccessState, ask_access
    from engine.kaggle.client import Kaggle

    chosen = [
        registry.get(one) for one in chosen_ids(competition_id, split or ("" if competition_id else "all"))
    ]
    Kaggle()  # without credentials there is one thing to say, not one for every competition
    found = ask_access(chosen)
    if json:
        say_json([asdict(one) for one in found])
        return
    said = {
        AccessState.OPEN: "may be downloaded",
        AccessState.RULES: "accept the rules",
        AccessState.GONE: "no longer available",
    }
    say_table(
        ("competition", "access", "size", "where"),
        [
            (
                one.competition_id,
                said.get(one.state, one.problem),
                wording.size(one.bytes),
                one.url if one.state is AccessState.RULES else "",
            )
            for one in found
        ],
        right=("size",),
        limits={"access": 80},
    )
    say(f"{sum(one.state is AccessState.OPEN for one in found)} of {len(found)} may be downloaded")


@app.command()
def stop(
    context: typer.Context,
    competition_id: Ids = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Everything that is being prepared.")] = False,
    edition: EditionFlag = EditionName.V1,
) -> None:
    """Stop preparing datasets; what is downloaded stays and is gone on with another time."""
    from engine.control import ask
    from state.records import DatasetState

    if bool(competition_id) == all_:
        raise UsageProblem("what to stop is not clear", "", "Give one of -c ID, --all.")
    busy = (DatasetState.WAITING, DatasetState.WORKING)
    chosen = competition_id or [
        name for name, dataset in known_datasets(context, edition).items() if dataset.state in busy
    ]
    if not chosen:
        say("nothing is being prepared")
        return
    wanted = {"competition_ids": chosen, "edition": edition.value}
    say(ask(places_of(context), "dataset.stop", wanted).text)


@app.command()
def prune(
    context: typer.Context,
    competition_id: Ids = None,
    split: Split = "",
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", help="Only what is older.")
    ] = None,
    sweep: Annotated[str, typer.Option("--sweep", metavar="ID", help="Only a sweep's competitions.")] = "",
    everything: Annotated[
        bool, typer.Option("--everything", help="Also prepared data, not only zips, raw and leftovers.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Remove what need not be kept: lists it, asks, and removes; what sweeps still need stays."""
    from competitions import registry
    from engine.datasets import pruning

    base = data_dir_of(context, data_dir)
    chosen = _of_sweep(context, sweep) if sweep else chosen_ids(competition_id, split)
    names = pruning.PARTS if everything else (pruning.ZIP, pruning.RAW, pruning.PARTIAL)
    still_needed = needed(context, chosen) if everything else {}
    parts = [
        part
        for one in chosen
        for part in pruning.parts_of(registry.get(one), base)
        if part.name in names
        and not (part.name in (pruning.PREPARED, pruning.CORRECTED) and one in still_needed)
        and (older_than is None or time.time() - part.changed > older_than * _DAY)
    ]
    if not json:
        list_parts(parts, still_needed)
    if not parts or not (yes or confirmed(json)):
        if json:
            say_json({"removed": [], "bytes": 0})
        return
    problems = remove(parts, base)
    _tell_engine(context)
    if json:
        say_json({"removed": [(part.competition_id, part.name) for part in parts], "problems": problems})
    if problems:
        raise typer.Exit(DataProblem.exit_code)


def _tell_engine(context: typer.Context) -> None:
    """Let a running engine look again; one that starts later looks by itself."""
    from engine.control import ask, status

    places = places_of(context)
    if status(places).running:
        ask(places, "dataset.refresh", {})


def _of_sweep(context: typer.Context, sweep_id: str) -> tuple[str, ...]:
    from state import sweeps

    with reading_state(context) as opened:
        return sweeps.get(opened, sweep_id).spec.competitions
