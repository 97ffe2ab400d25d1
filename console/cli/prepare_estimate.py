"""`prepare --dry-run`: what would be done, how much space it takes, and whether that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from console import wording
from console.cli.common import EditionName, say, say_json, say_table
from engine.datasets.estimates import Throughput, ToDo, estimate, measured, peak_bytes
from engine.space import free_bytes

if TYPE_CHECKING:
    from engine.places import Places


def tell_estimate(
    places: Places,
    chosen: Sequence[str],
    base: Path,
    edition: EditionName,
    *,
    raw: Path | None,
    again: bool,
    json: bool,
) -> None:
    """Tell what preparing would take; Kaggle is asked where there are credentials."""
    found = sorted(
        estimate(chosen, base, edition.edition, raw_given=raw is not None, again=again),
        key=lambda one: (one.bytes is None, one.bytes or 0),
    )
    free, peak = free_bytes(base), peak_bytes(found)
    to_download = sum(one.bytes or 0 for one in found if one.to_do is ToDo.DOWNLOAD)
    to_prepare = sum(one.bytes or 0 for one in found if one.to_do in (ToDo.DOWNLOAD, ToDo.PREPARE))
    seconds = _measured(places).seconds(to_download, to_prepare)
    if json:
        say_json(
            {
                "datasets": [asdict(one) for one in found],
                "free_bytes": free,
                "needed_bytes": peak,
                "download_bytes": to_download,
                "seconds": seconds,
            }
        )
        return
    say_table(
        ("competition", "to do", "size", "basis", "problem"),
        [
            (
                one.competition_id,
                one.to_do,
                wording.size(one.bytes),
                one.basis,
                one.problem.removeprefix(f"{one.competition_id}: "),
            )
            for one in found
        ],
        right=("size",),
        limits={"problem": 100},
    )
    unknown = sum(one.peak is None and one.to_do in (ToDo.DOWNLOAD, ToDo.PREPARE) for one in found)
    left_out = f" ({unknown} of unknown size left out)" if unknown else ""
    say(
        f"about {wording.size(peak)} needed in {base}, {wording.size(free)} free: "
        + ("it fits" if peak <= free else "it does not fit")
        + left_out
    )
    if seconds is not None and seconds >= 1:
        say(f"about {wording.duration(seconds)} at the rates measured here{left_out}")


def _measured(places: Places) -> Throughput:
    """How fast it has gone here so far, as far as there is a state that knows."""
    from state import database, datasets

    if not database.exists(places.state_dir):
        return Throughput()
    opened = database.open_for_reading(places.state_dir)
    try:
        steps = groupby(datasets.all_steps(opened), key=lambda step: (step.competition_id, step.edition))
        return measured(list(own) for _key, own in steps)
    finally:
        opened.close()
