"""`prepare --dry-run`: what would be done, how much space it takes, and whether that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from console.cli.editions import EditionName
from console.cli.output import bytes_text, say, say_json, say_table
from engine.datasets.estimating import Estimate, estimate, peak_bytes
from engine.space import free_bytes


def tell_estimate(
    chosen: Sequence[str], base: Path, edition: EditionName, *, raw: Path | None, again: bool, json: bool
) -> None:
    """Tell what preparing would take; Kaggle is asked where there are credentials."""
    found = sorted(
        estimate(chosen, base, edition.edition, raw_given=raw is not None, again=again),
        key=lambda one: (one.bytes is None, one.bytes or 0),
    )
    free, peak = free_bytes(base), peak_bytes(found)
    if json:
        document = [asdict(one) for one in found]
        say_json({"datasets": document, "free_bytes": free, "needed_bytes": peak})
        return
    say_table(
        ("competition", "to do", "size", "basis", "problem"),
        [(one.competition_id, one.to_do, bytes_text(one.bytes), one.basis, one.problem) for one in found],
        right=("size",),
        limits={"problem": 100},
    )
    unknown = sum(one.bytes is None and one.to_do != Estimate.NOTHING for one in found)
    say(
        f"about {bytes_text(peak)} needed in {base}, {bytes_text(free)} free: "
        + ("it fits" if peak <= free else "it does not fit")
        + (f" ({unknown} of unknown size left out)" if unknown else "")
    )
