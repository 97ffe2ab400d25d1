"""`datasets`: which datasets there are and how far they are."""

from __future__ import annotations

from typing import Any

import typer

from console.cli.competitions import Split
from console.cli.editions import EditionFlag, EditionName
from console.cli.invocation import DataDir, Json, data_dir_of, places_of, reading_state
from console.cli.lazy import new_group
from console.cli.output import say, say_json, say_table

app = new_group("List the datasets and how far they are.")


@app.command("list")
def list_(
    context: typer.Context,
    split: Split = "",
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """List the datasets: what lies in the data directory, and what the engine is doing about the rest."""
    from competitions import registry
    from engine.layout import dataset_folder, is_prepared
    from state import database, datasets

    places, base = places_of(context), data_dir_of(context, data_dir)
    known = {}
    if database.exists(places.state_dir):
        with reading_state(context) as opened:
            known = {
                one.competition_id: one
                for one in datasets.all_datasets(opened)
                if one.edition == edition.value
            }
    found: list[dict[str, Any]] = []
    for competition_id in registry.read_split(split) if split else registry.all_ids():
        competition = registry.get(competition_id)
        folder = dataset_folder(competition, base, edition.edition)
        engine = known.get(competition_id)
        prepared = is_prepared(competition, folder)
        found.append(
            {
                "competition_id": competition_id,
                "edition": edition.value,
                "state": "prepared" if prepared else engine.state.value if engine else "absent",
                "problem": engine.problem if engine and not prepared else "",
                "raw": folder.raw.is_dir() or bool(folder.zips()),
                "folder": str(folder.root),
            }
        )
    if json:
        say_json(found)
        return
    say_table(
        ("competition", "state", "raw data", "problem"),
        [
            (one["competition_id"], one["state"], "yes" if one["raw"] else "no", one["problem"])
            for one in found
        ],
    )
    say(f"{sum(one['state'] == 'prepared' for one in found)} of {len(found)} prepared in {base}")
