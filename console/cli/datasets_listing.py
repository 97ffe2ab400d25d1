"""`datasets list` and `datasets show`: what lies on the disk, and what the engine is doing about the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console import wording
from console.cli.common import (
    DataDir,
    EditionFlag,
    EditionName,
    Json,
    data_dir_of,
    places_of,
    reading_state,
    say,
    say_json,
    say_table,
)
from console.cli.competitions import Split

if TYPE_CHECKING:
    from engine.datasets.access import AccessState
    from state.records import Dataset


def list_datasets(
    context: typer.Context,
    split: Split = "",
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """List the datasets: what lies in the data directory, and what the engine is doing about the rest."""
    from competitions import registry
    from engine.datasets.access import AccessState
    from engine.layout import dataset_folder, is_prepared

    base = data_dir_of(context, data_dir)
    known = known_datasets(context, edition) if base == places_of(context).data_dir else {}
    access = _access(context, known.values())
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
                "state": _state(prepared, engine),
                "access": access.get(competition_id, AccessState.UNKNOWN).value,
                "problem": engine.problem if engine else "",
                "raw": folder.raw.is_dir() or bool(folder.zips()),
                "size_gb": competition.size_gb,
                "bytes_on_disk": engine.bytes_on_disk if engine and prepared else None,
                "folder": str(folder.root),
            }
        )
    if json:
        say_json(found)
        return
    say_table(
        ("competition", "state", "access", "raw data", "on disk", "of Kaggle's", "problem"),
        [
            (
                one["competition_id"],
                one["state"],
                "-" if one["access"] == AccessState.UNKNOWN else one["access"],
                "yes" if one["raw"] else "no",
                wording.size(one["bytes_on_disk"]),
                "-" if one["size_gb"] is None else wording.size(int(one["size_gb"] * 1e9)),
                one["problem"],
            )
            for one in found
        ],
        right=("on disk", "of Kaggle's"),
        limits={"problem": 120},
    )
    say(f"{sum(one['state'] == 'prepared' for one in found)} of {len(found)} prepared in {base}")


def show(
    context: typer.Context,
    competition_id: Annotated[str, typer.Argument(metavar="ID", help="Which competition.")],
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """Show one dataset: its steps, what it takes on the disk part by part, and where."""
    from competitions import registry
    from engine.datasets.pruning import parts_of
    from engine.layout import dataset_folder, is_prepared, prepared_with

    competition = registry.get(competition_id)
    base = data_dir_of(context, data_dir)
    folder = dataset_folder(competition, base, edition.edition)
    parts = parts_of(competition, base)
    known = (
        known_datasets(context, edition).get(competition_id) if base == places_of(context).data_dir else None
    )
    steps = _steps(context, competition_id, edition) if known else []
    prepared = is_prepared(competition, folder)
    state = _state(prepared, known)
    if json:
        say_json(
            {
                "competition_id": competition_id,
                "edition": edition.value,
                "state": state,
                "problem": known.problem if known else "",
                "folder": str(folder.root),
                "rules_url": competition.rules_url,
                "marker": prepared_with(folder),
                "steps": [asdict(step) for step in steps],
                "parts": [{"name": part.name, "bytes": part.bytes} for part in parts],
            }
        )
        return
    say(f"{competition_id}: {state}, edition {edition.value}")
    if known and known.problem:
        say(known.problem)
    say(f"folder      {folder.root}")
    say(f"rules       {competition.rules_url}")
    marker = prepared_with(folder)
    if prepared:
        verified = "by MLE-bench" if marker is None else str(marker.get("prepared_at"))
        checked = "" if marker is None else ", verified" if marker.get("verified") else ", not verified"
        say(f"prepared    {verified}{checked}")
    for part in parts:
        say(f"{part.name:<18}  {wording.size(part.bytes)}")
    for step in steps:
        amount = f"  {wording.size(step.done)}" if step.unit == "bytes" and step.done else ""
        say(f"step        {step.name}: {step.state}{amount}{f'  {step.note}' if step.note else ''}")


def known_datasets(context: typer.Context, edition: EditionName) -> dict[str, Dataset]:
    """What the state knows of the datasets of an edition."""
    from state import database, datasets

    if not database.exists(places_of(context).state_dir):
        return {}
    with reading_state(context) as opened:
        return {
            one.competition_id: one for one in datasets.all_datasets(opened) if one.edition == edition.value
        }


def _access(context: typer.Context, known: Iterable[Dataset]) -> dict[str, AccessState]:
    """What Kaggle said of each dataset the last time that the engine asked."""
    from engine.datasets.access import access_of
    from state import datasets

    wanted = list(known)
    if not wanted:
        return {}
    with reading_state(context) as opened:
        steps = {one: datasets.steps(opened, one.competition_id, one.edition) for one in wanted}
    return {one.competition_id: access_of(one.state, found) for one, found in steps.items()}


def _state(prepared: bool, known: Dataset | None) -> str:
    """How far a dataset is: the disk knows better than the state whether it is prepared."""
    from state.records import DatasetState

    if prepared:
        return DatasetState.PREPARED.value
    if known is None or known.state is DatasetState.PREPARED:
        return DatasetState.ABSENT.value
    return known.state.value


def _steps(context: typer.Context, competition_id: str, edition: EditionName) -> list[Any]:
    from state import datasets

    with reading_state(context) as opened:
        return list(datasets.steps(opened, competition_id, edition.value))
