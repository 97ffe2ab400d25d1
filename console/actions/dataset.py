"""Preparing, checking, stopping, verifying and pruning datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import edition_named
from mlebench_console.console import wording
from mlebench_console.console.actions.action import Action, Affected, NotApplicable, Question
from mlebench_console.console.nouns.competition import competition
from mlebench_console.console.nouns.dataset import DatasetRow
from mlebench_console.engine.datasets.prepared.pruning import PARTIAL, PARTS, RAW, ZIP, Part, parts_of
from mlebench_console.engine.datasets.sources.access import AccessState
from mlebench_console.engine.requests import (
    DatasetsRequest,
    PrepareDatasets,
    PrioritizeDatasets,
    PruneDatasets,
    StopDatasets,
    VerifyDatasets,
)
from mlebench_console.foundation.text import plural
from mlebench_console.state.records import DatasetState, PreparationOptions, VerificationKind

_NONE_PREPARED = "none of these is prepared"
_CANNOT_BE_HAD = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)


def prepare(chosen: Sequence[DatasetRow]) -> Action:
    """Prepare the datasets that are neither prepared nor being prepared."""
    found = [row for row in chosen if not row.is_busy and row.state is not DatasetState.PREPARED]
    return _ask(PrepareDatasets, found, "all of these are prepared or being prepared")


def prepare_raw(competition_ids: Sequence[str], raw: Path, edition: str = "v1") -> Action:
    """Prepare datasets from local raw data: an extracted Kaggle folder, its zip, or a folder of such.

    Waits for the disk, so call it in a thread. Prepared datasets are prepared again, unless runs use them.

    Raises:
        Problem: the raw data are missing.
    """
    from mlebench_console.engine.datasets.plans import require_raw

    place = raw.expanduser().absolute()
    require_raw(place, competition_ids)
    request = PrepareDatasets(
        competition_ids=tuple(competition_ids),
        edition=edition_named(edition),
        options=PreparationOptions(source=str(place)),
    )
    return Action((request,))


def prepare_named(competition_ids: Sequence[str]) -> Action:
    """Prepare datasets by the names of their competitions."""
    return Action((PrepareDatasets(competition_ids=tuple(competition_ids)),))


def retry(chosen: Sequence[DatasetRow]) -> Action:
    """Prepare again the datasets that failed, were refused, or were not available."""
    found = [row for row in chosen if row.state in _CANNOT_BE_HAD]
    return _ask(PrepareDatasets, found, "none of these has failed")


def check(chosen: Sequence[DatasetRow]) -> Action:
    """Ask Kaggle again for the datasets that it refused."""
    found = [row for row in chosen if row.access in (AccessState.RULES, AccessState.GONE)]
    return _ask(PrepareDatasets, found, "Kaggle has refused none of these")


def stop(chosen: Sequence[DatasetRow]) -> Action:
    """Stop preparing or verifying datasets; downloaded data are kept."""
    found = [row for row in chosen if row.is_busy or row.is_verifying]
    return _ask(StopDatasets, found, "none of them is being prepared or verified")


def verify(chosen: Sequence[DatasetRow]) -> Action:
    """Compare prepared datasets with the names and sizes in their manifests, and with the known checksums."""
    found = [row for row in chosen if row.state is DatasetState.PREPARED]
    return _ask(VerifyDatasets, found, _NONE_PREPARED)


def verify_deep(chosen: Sequence[DatasetRow]) -> Action:
    """Compare every file of prepared datasets with their manifests."""
    found = [row for row in chosen if row.state is DatasetState.PREPARED]
    return _ask(VerifyDatasets, found, _NONE_PREPARED, verification=VerificationKind.DEEP)


def first(chosen: Sequence[DatasetRow], everything: Sequence[DatasetRow]) -> Action:
    """Prepare the chosen waiting datasets before all other ones."""
    highest = max((row.priority for row in everything if row.is_busy and row not in chosen), default=0)
    return prioritize(chosen, highest + 1)


def prioritize(chosen: Sequence[DatasetRow], value: int) -> Action:
    """Set the priority of the datasets that are being prepared or wait to be."""
    found = [row for row in chosen if row.is_busy]
    return _ask(PrioritizeDatasets, found, "none of these waits to be prepared", value=value)


def prune(chosen: Sequence[DatasetRow], data_dir: Path, *, everything: bool) -> Action:
    """Remove files of idle datasets: leftovers, or with `everything` prepared data too.

    Waits for the disk, so call it in a thread.
    """
    idle = [row for row in chosen if not row.is_busy]
    parts = parts_to_prune((row.competition_id for row in idle), data_dir, everything=everything)
    if not parts:
        raise NotApplicable("there is nothing to remove")
    kept = (
        "Runs whose prepared data is removed wait until it is prepared again."
        if everything
        else "Prepared data is kept."
    )
    affected = Affected(
        items=tuple(
            (part.competition_id, f"{part.name:<20}{wording.size(part.bytes):>8}")
            for part in sorted(parts, key=lambda part: -part.bytes)
        ),
        note=f"{wording.size(sum(part.bytes for part in parts))} in all. {kept}",
        is_warning=everything,
    )
    there = {part.competition_id for part in parts}
    rows = [row for row in idle if row.competition_id in there]
    asked = _ask(PruneDatasets, rows, "", parts=tuple(dict.fromkeys(part.name for part in parts)))
    title = f"Remove {plural(len(parts), 'part')}?"
    return Action(asked.requests, Question(title, "yes, remove", (affected,)))


def parts_to_prune(competition_ids: Iterable[str], data_dir: Path, *, everything: bool) -> list[Part]:
    """Return the removable parts of datasets on the disk: leftovers, or with `everything` prepared data too."""
    names = PARTS if everything else (ZIP, RAW, PARTIAL)
    known = (competition(competition_id) for competition_id in dict.fromkeys(competition_ids))
    found = (part for each in known if each is not None for part in parts_of(each, data_dir))
    return [part for part in found if part.name in names]


def rules_urls(chosen: Sequence[DatasetRow]) -> tuple[str, ...]:
    """Return the addresses of the rules of the datasets that Kaggle refused, or if it refused none, of all chosen."""
    refused = [row for row in chosen if row.access is AccessState.RULES]
    ids = dict.fromkeys(row.competition_id for row in refused or chosen)
    found = (known for name in ids if (known := competition(name)) is not None)
    return tuple(page for each in found if (page := registry.rules_url(each)))


def _ask(
    request: Callable[..., DatasetsRequest], rows: Sequence[DatasetRow], otherwise: str, **more: object
) -> Action:
    """Return an action with one request for each edition.

    Raises:
        NotApplicable: there are no rows; `otherwise` is its text.
    """
    if not rows:
        raise NotApplicable(otherwise)
    ids: dict[str, list[str]] = {}
    for row in rows:
        ids.setdefault(row.edition, []).append(row.competition_id)
    return Action(
        tuple(
            request(competition_ids=tuple(names), edition=edition_named(edition), **more)
            for edition, names in ids.items()
        )
    )
