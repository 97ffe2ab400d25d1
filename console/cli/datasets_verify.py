"""`datasets verify`: whether prepared datasets are as they should be, with a bar while they are read."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import typer

from console.cli.common import DataDir, EditionFlag, EditionName, Json, complain, data_dir_of, say, say_json
from console.cli.competitions import Split
from console.cli.datasets_chosen import Ids, chosen_ids
from console.cli.progress_rows import Progress, ProgressRows
from foundation.problems import DataProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from competitions.model import Competition
    from engine.datasets.checksums import Verification
    from engine.layout import DatasetFolder

_STEP = "verify"


def verify(
    context: typer.Context,
    competition_id: Ids = None,
    split: Split = "",
    data_dir: DataDir = None,
    edition: EditionFlag = EditionName.V1,
    json: Json = False,
) -> None:
    """Compare prepared datasets with the known checksums and with what they were; nothing is changed."""
    from competitions import registry
    from engine.layout import dataset_folder, is_prepared

    base = data_dir_of(context, data_dir)
    chosen = []
    for competition in map(registry.get, chosen_ids(competition_id, split)):
        folder = dataset_folder(competition, base, edition.edition)
        if competition_id or is_prepared(competition, folder):
            chosen.append((competition, folder))
    found = _verified(chosen, json=json)
    if json:
        say_json(
            [
                {
                    "competition_id": name,
                    "differs": one.differs,
                    "known": _known(one),
                    "sums": [asdict(each) for each in one.sums],
                }
                for name, one in found.items()
            ]
        )
    if any(one.differs for one in found.values()):
        raise typer.Exit(DataProblem.exit_code)


def _verified(chosen: Sequence[tuple[Competition, DatasetFolder]], *, json: bool) -> dict[str, Verification]:
    """Read them one after the other, and tell of each as soon as it is read."""
    from engine.datasets.checksums import verify as verify_one
    from engine.datasets.steps import throttled

    found: dict[str, Verification] = {}
    with ExitStack() as stack:
        rows = None
        if not json and sys.stdout.isatty():
            rows = stack.enter_context(ProgressRows())
        for competition, folder in chosen:
            report = None
            if rows is not None:
                count = f"{len(found)} of {len(chosen)} verified"
                report = partial(throttled(partial(_draw, rows, competition.id, count)), _STEP)
            one = found[competition.id] = verify_one(competition, folder, report)
            if not json:
                told = (
                    one.differs or f"as it should be: {len(one.sums)} tables, {_known(one)} with known sums"
                )
                (complain if one.differs else say)(f"{competition.id}: {told}")
    return found


def _known(found: Verification) -> int:
    return sum(one.known is not None for one in found.sums)


def _draw(rows: ProgressRows, name: str, count: str, step: str, file: str, done: int, total: int) -> None:
    rows.draw([rows.row(Progress(name, step, done, total, note=file)), (count,)])
