"""`prepare`: have the engine prepare datasets, with MLE-bench's flags; a failure does not stop the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.console import wording
from mlebench_console.console.cli.common import CompetitionIds, Context, DataDir, EditionFlag, new_app
from mlebench_console.console.cli.output import say, say_json, say_on_stderr, say_texts, show_count
from mlebench_console.engine.layout import DatasetFolder, dataset_folder, is_prepared
from mlebench_console.engine.places import Places
from mlebench_console.engine.requests import PrepareDatasets
from mlebench_console.engine.space import free_bytes
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.state import database
from mlebench_console.state.records import PreparationOptions

if TYPE_CHECKING:
    from mlebench_console.engine.datasets.estimates import Throughput

app = new_app()

_MUCH = 10_000_000_000
_WAS_PREPARED = "was prepared"


@dataclass(frozen=True)
class PreparationResult:
    """The result for one dataset."""

    competition_id: str
    edition: str
    state: str
    problem: str
    folder: str


@app.command()
def prepare(
    context: Context,
    competition_id: CompetitionIds = None,
    all_: Annotated[bool, Option("--all", "-a", help="All competitions of the benchmark.")] = False,
    lite: Annotated[bool, Option(help="The split low, MLE-bench Lite.")] = False,
    list_: Annotated[
        Path | None, Option("--list", "-l", metavar="FILE", help="A file with one id per line.")
    ] = None,
    data_dir: DataDir = None,
    raw: Annotated[
        Path | None,
        Option(
            metavar="DIR|ZIP",
            help="An extracted Kaggle folder or its zip, or a folder of such by id; it is not changed.",
        ),
    ] = None,
    edition: EditionFlag = "v1",
    keep_raw: Annotated[bool, Option(help="Keep the extracted files in raw/.")] = False,
    discard_zip: Annotated[bool, Option(help="Delete the zip when the dataset is prepared.")] = False,
    skip_verification: Annotated[bool, Option(help="Don't compare with the known checksums.")] = False,
    overwrite_checksums: Annotated[
        bool, Option(help="Record the found checksums as the known ones.")
    ] = False,
    overwrite_leaderboard: Annotated[
        bool, Option(help="Refresh the medal cut-offs from Kaggle first.")
    ] = False,
    verify: Annotated[
        bool, Option(help="Read and compare every file of datasets that are already prepared.")
    ] = False,
    descriptions: Annotated[
        str | None,
        Option(
            metavar="ours|obfuscated|kaggle|DIR",
            help="Which description to put beside the data, ours by default; DIR holds ID/description.md.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, Option("--jobs", "-j", min=1, help="How many at once; the default is in config.toml.")
    ] = None,
    priority: Annotated[
        int, Option(metavar="NUMBER", help="Datasets with a higher number are prepared first.")
    ] = 0,
    again: Annotated[
        bool, Option(help="Also prepare datasets that are already prepared; refused while runs need them.")
    ] = False,
    dry_run: Annotated[bool, Option(help="Show what would be done and what it needs, and stop.")] = False,
) -> None:
    """Prepare datasets: download, verify, extract, split.

    Small ones come first; what is there already or in --raw is not downloaded. What is prepared already is compared
    with its manifest and with the flags, and told of where it differs; --again prepares it anew.

    The engine does the work and continues when the command is interrupted; the same command again shows its progress.
    """
    chosen = _chosen(competition_id or [], all_, lite, list_)
    base = context.data_dir(data_dir)
    from mlebench_console.engine.datasets.facts import refresh_leaderboard, take_checksums
    from mlebench_console.engine.datasets.plans import require_raw
    from mlebench_console.engine.datasets.prepared.descriptions import check_choice

    if raw is not None and len(chosen) > 1:
        require_raw(raw, chosen)
    if overwrite_leaderboard and not dry_run:
        for one in chosen:
            refresh_leaderboard(one, force=True)
    request = PrepareDatasets(
        competition_ids=tuple(chosen),
        edition=edition,
        options=PreparationOptions(
            source="" if raw is None else str(raw.absolute()),
            verify=False if skip_verification or overwrite_checksums else None,
            keep_raw=keep_raw,
            discard_zip=discard_zip,
            # A folder is named from here, which the engine does not know.
            descriptions="" if descriptions is None else check_choice(descriptions),
        ),
        again=again or overwrite_checksums,
        jobs=jobs,
        priority=priority,
        keep_going=True,
    )
    if dry_run:
        _say_estimate(context, base, request)
        return
    outcomes = _prepare(context, base, request, verify=verify)
    if overwrite_checksums:
        for outcome in outcomes:
            if outcome.state == "prepared":
                take_checksums(outcome.competition_id, base)
    failed = [one for one in outcomes if one.problem or one.state not in ("prepared", _WAS_PREPARED)]
    if context.json:
        say_json([asdict(outcome) for outcome in outcomes])
    elif len(outcomes) > 1:
        say(f"{len(outcomes) - len(failed)} of {len(outcomes)} prepared in {base}")
    if failed:
        raise typer.Exit(DataProblem.exit_code)


def _say_estimate(context: Context, base: Path, request: PrepareDatasets) -> None:
    """Print what preparing would need; Kaggle is asked if there are credentials."""
    from mlebench_console.engine.datasets.estimates import ToDo, estimate, known_sizes, peak_bytes, usual_peak

    keep_raw = request.options.keep_raw
    found = sorted(
        estimate(
            request.competition_ids,
            base,
            request.edition,
            raw_given=bool(request.options.source),
            again=request.again,
            keep_raw=keep_raw,
            report=None if context.json else show_count("asking Kaggle"),
        ),
        key=lambda one: (one.bytes is None, one.bytes or 0),
    )
    # Of some only the sum is documented.
    rest, unknown = known_sizes(
        [
            registry.get(one.competition_id)
            for one in found
            if one.bytes is None and one.to_do is ToDo.DOWNLOAD
        ]
    )
    unknown += sum(one.peak is None and one.to_do is ToDo.PREPARE for one in found)
    free, peak = free_bytes(base), peak_bytes(found) + usual_peak(rest, keep_raw=keep_raw)
    to_download = sum(one.bytes or 0 for one in found if one.to_do is ToDo.DOWNLOAD) + rest
    to_prepare = sum(one.bytes or 0 for one in found if one.to_do in (ToDo.DOWNLOAD, ToDo.PREPARE)) + rest
    seconds = _measured_rates(context.places).seconds(to_download, to_prepare)
    if context.json:
        say_json(
            {
                "datasets": [asdict(one) for one in found],
                "free_bytes": free,
                "needed_bytes": peak,
                "download_bytes": to_download,
                "unknown_sizes": unknown,
                "seconds": seconds,
            }
        )
        return
    say_texts(
        ("competition", "to do", "size", "basis", "problem"),
        [(one.competition_id, one.to_do, wording.size(one.bytes), one.basis, one.problem) for one in found],
        right=("size",),
    )
    left_out = f" ({unknown} of unknown size left out)" if unknown else ""
    say(
        f"about {wording.size(peak)} needed in {base}, {wording.size(free)} free: "
        + ("it fits" if peak <= free else "it does not fit")
        + left_out
    )
    if seconds is not None and seconds >= 1:
        say(f"about {wording.duration(seconds)} at the rates measured here{left_out}")


def _measured_rates(places: Places) -> Throughput:
    """Return the rates of earlier preparations, if the state has any."""
    from mlebench_console.console.views.datasets import DatasetBoard, dataset_board

    if not database.exists(places.state_dir):
        return DatasetBoard().throughput
    with closing(database.open_for_reading(places.state_dir)) as opened:
        return dataset_board(opened, places.data_dir).throughput


def _prepare(
    context: Context, base: Path, request: PrepareDatasets, *, verify: bool
) -> list[PreparationResult]:
    from mlebench_console.console.cli.dataset.requests import prepare_by_engine

    chosen, edition = request.competition_ids, request.edition
    folders = {one: dataset_folder(registry.get(one), base, edition) for one in chosen}
    there = {one for one in chosen if not request.again and is_prepared(registry.get(one), folders[one])}
    found = {
        one: (_WAS_PREPARED, _how_it_differs(context, folders[one], one, request, verify)) for one in there
    }
    missing = tuple(one for one in chosen if one not in there)
    if missing:
        _say_other_edition(missing, base, edition)
        if not (context.json or request.options.source):
            _say_sizes(missing, base, edition)
        rows = prepare_by_engine(context, base, [replace(request, competition_ids=missing)])
        found |= {row.competition_id: (row.state.value, row.problem) for row in rows}
    outcomes = []
    for one in chosen:
        folder = str(folders[one].prepared)
        outcomes.append(PreparationResult(one, edition, *found[one], folder))
        if one in there and not context.json:
            say(f"{one}: was prepared in {folder}")
            if found[one][1]:
                say_on_stderr(f"{one}: {found[one][1]}. --again prepares it anew.")
    return outcomes


def _how_it_differs(
    context: Context, folder: DatasetFolder, competition_id: str, request: PrepareDatasets, verify: bool
) -> str:
    """Compare prepared datasets with their manifests and with the request."""
    from mlebench_console.engine.datasets.prepared.verification import check

    show = show_count(f"reading {competition_id}", wording.size)

    def report(_: str, done: int, total: int) -> None:
        if not context.json:
            show(done, total)

    try:
        return check(
            registry.get(competition_id),
            folder,
            deep=verify,
            report=report if verify else None,
            options=request.options,
        )
    except DataProblem as problem:
        return problem.record.without_subject().cause


def _say_other_edition(missing: Sequence[str], base: Path, edition: Edition) -> None:
    """Print which of the datasets are already prepared in the other edition."""
    for one in map(registry.get, missing):
        for other in EDITIONS:
            if other != edition and is_prepared(one, dataset_folder(one, base, other)):
                say_on_stderr(
                    f"{one.id}: edition {other} is prepared here; edition {edition} is prepared beside it"
                )


def _say_sizes(missing: Sequence[str], base: Path, edition: Edition) -> None:
    """Print the documented size of the downloads, if it is large."""
    from mlebench_console.engine.datasets.estimates import known_sizes, usual_peak

    competitions = map(registry.get, missing)
    to_load = [one for one in competitions if not dataset_folder(one, base, edition).has_raw_data]
    size, unknown = known_sizes(to_load)
    peak, free = usual_peak(size), free_bytes(base)
    if size < _MUCH and peak <= free:
        return
    others = f", {unknown} more are of unknown size" if unknown else ""
    say_on_stderr(
        f"about {wording.size(size)} to download, {wording.size(peak)} on the disk with what is prepared"
        f"{others}; {wording.size(free)} are free{'' if peak <= free else ': it does not fit'}"
    )


def _chosen(named: Sequence[str], all_: bool, lite: bool, list_: Path | None) -> tuple[str, ...]:
    ways = [bool(named), all_, lite, list_ is not None]
    if sum(ways) != 1:
        raise UsageProblem(
            "which competitions to prepare is not clear" if any(ways) else "no competition was chosen",
            "",
            "Give one of -c ID, --all, --lite, --list FILE.",
        )
    if list_ is not None:
        return registry.read_split(list_)
    if named:
        return tuple(registry.get(name).id for name in dict.fromkeys(named))
    return registry.splits()["split75" if all_ else "low"]
