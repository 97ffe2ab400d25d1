"""What is done with chosen datasets from any screen: which of them it applies to, and what is asked first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from competitions.model import edition_named
from console import wording
from console.screens.confirm import ConfirmScreen
from console.tui.painting import Pieces, foreign
from console.views.dataset_board import DatasetRow
from console.views.splits import competition
from engine.datasets.access import AccessState
from engine.datasets.pruning import CORRECTED, PARTIAL, PREPARED, RAW, ZIP, Part, parts_of
from state.records import DatasetState

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

LEFTOVERS = (ZIP, RAW, PARTIAL)
_NOT_TO_BE_HAD = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
_MOST_LISTED = 10


def prepare(app: ConsoleApp, chosen: Sequence[DatasetRow]) -> None:
    """Ask for those that are not there and not in hand."""
    found = [row for row in chosen if not row.is_busy and row.state is not DatasetState.PREPARED]
    _ask(app, "dataset.prepare", found, "all of that is prepared or being prepared")


def retry(app: ConsoleApp, chosen: Sequence[DatasetRow]) -> None:
    """Ask again for those that failed, were refused, or were not available."""
    found = [row for row in chosen if row.state in _NOT_TO_BE_HAD]
    _ask(app, "dataset.prepare", found, "nothing of that has failed")


def check(app: ConsoleApp, chosen: Sequence[DatasetRow]) -> None:
    """Ask Kaggle again for those that it refused."""
    found = [row for row in chosen if row.access in (AccessState.RULES, AccessState.GONE)]
    _ask(app, "dataset.prepare", found, "Kaggle has refused nothing of that")


def stop(app: ConsoleApp, chosen: Sequence[DatasetRow]) -> None:
    """Stop those that are in hand; what is downloaded stays."""
    found = [row for row in chosen if row.is_busy or row.is_verifying]
    _ask(app, "dataset.stop", found, "nothing of that is being prepared or verified")


def verify(app: ConsoleApp, chosen: Sequence[DatasetRow]) -> None:
    """Compare those that are prepared with what is known of them."""
    found = [row for row in chosen if row.state is DatasetState.PREPARED]
    _ask(app, "dataset.verify", found, "nothing of that is prepared")


def prune(app: ConsoleApp, chosen: Sequence[DatasetRow], *, everything: bool) -> None:
    """List what lies there and ask whether it may go; what is in hand stays."""
    idle = [row for row in chosen if not row.is_busy]
    names = (*LEFTOVERS, PREPARED, CORRECTED) if everything else LEFTOVERS
    app.errands.in_thread(
        partial(_parts, app.places.data_dir, idle, names), partial(_ask_to_prune, app, idle, everything)
    )


def copy_urls(app: ConsoleApp, chosen: Sequence[DatasetRow]) -> None:
    """Copy where the rules are accepted; of the marked, those that Kaggle refused if there are such."""
    refused = [row for row in chosen if row.access is AccessState.RULES]
    ids = dict.fromkeys(row.competition_id for row in refused or chosen)
    urls = [found.rules_url for name in ids if (found := competition(name)) is not None]
    if urls:
        app.copy_to_clipboard("\n".join(urls))
        app.say(f"copied {urls[0]}" if len(urls) == 1 else f"copied {len(urls)} addresses, one a line")


def _parts(data_dir: Path, rows: Sequence[DatasetRow], names: Sequence[str]) -> list[Part]:
    known = (competition(name) for name in dict.fromkeys(row.competition_id for row in rows))
    return [
        part
        for found in known
        if found is not None
        for part in parts_of(found, data_dir)
        if part.name in names
    ]


def _ask_to_prune(app: ConsoleApp, rows: Sequence[DatasetRow], everything: bool, parts: list[Part]) -> None:
    if not parts:
        app.say("there is nothing to remove")
        return
    there = {part.competition_id for part in parts}
    names = list(dict.fromkeys(part.name for part in parts))
    total = wording.size(sum(part.bytes for part in parts))
    lines: list[Pieces] = [
        (
            (foreign(part.competition_id, 46) + " ", "text"),
            (f"{part.name:<20}", "dim"),
            (f"{wording.size(part.bytes):>8}", "text"),
        )
        for part in sorted(parts, key=lambda part: -part.bytes)[:_MOST_LISTED]
    ]
    if len(parts) > _MOST_LISTED:
        lines.append(((f"and {len(parts) - _MOST_LISTED} more", "dim"),))
    kept = (
        "Runs on prepared data that are gone have to wait for them."
        if everything
        else "What is prepared stays."
    )
    lines += [((f"{total} in all. {kept}", "warn" if everything else "dim"),)]
    chosen = [row for row in rows if row.competition_id in there]
    then = partial(_ask, app, "dataset.prune", chosen, "", parts=names)
    app.confirm(
        ConfirmScreen(f"Remove {wording.plural(len(parts), 'part')}?", tuple(lines), "yes, remove"), then
    )


def _ask(app: ConsoleApp, kind: str, rows: Sequence[DatasetRow], otherwise: str, **more: object) -> None:
    """Ask the engine, once for each edition, about those of the chosen that it makes sense for."""
    if not rows:
        app.say(otherwise)
        return
    for edition in dict.fromkeys(row.edition for row in rows):
        ids = [row.competition_id for row in rows if row.edition == edition]
        app.errands.ask(kind, {"competition_ids": ids, "edition": edition_named(edition), **more})


Acts = Callable[["ConsoleApp", Sequence[DatasetRow]], None]

ACTIONS: dict[str, Acts] = {
    "prepare": prepare,
    "retry": retry,
    "check": check,
    "stop": stop,
    "verify": verify,
    "prune": partial(prune, everything=False),
    "prune_all": partial(prune, everything=True),
    "copy_urls": copy_urls,
}
