"""`prepare`: have the engine prepare datasets, with MLE-bench's flags; one failure stops none of the others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from console import wording
from console.cli.common import (
    DataDir,
    EditionFlag,
    EditionName,
    Json,
    complain,
    data_dir_of,
    new_app,
    places_of,
    say,
    say_json,
    say_table,
)
from foundation.problems import DataProblem, UsageProblem

if TYPE_CHECKING:
    from console.cli.dataset_work import DatasetProgress
    from engine.datasets.estimates import Throughput
    from engine.places import Places

app = new_app()

_OURS = "ours"


@dataclass(frozen=True)
class PreparationResult:
    """What became of one dataset."""

    competition_id: str
    state: str
    problem: str
    folder: Path

    def to_document(self, edition: EditionName) -> dict[str, Any]:
        """Write it for JSON."""
        return {
            "competition_id": self.competition_id,
            "edition": edition.value,
            "state": self.state,
            "problem": self.problem,
            "folder": str(self.folder),
        }


@app.command()
def prepare(
    context: typer.Context,
    competition_id: Annotated[
        list[str] | None,
        typer.Option("--competition-id", "-c", metavar="ID", help="A competition; repeatable."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="All competitions of the benchmark.")] = False,
    lite: Annotated[bool, typer.Option("--lite", help="The split low, which is Lite.")] = False,
    list_: Annotated[
        Path | None, typer.Option("--list", "-l", metavar="FILE", help="A file with one id per line.")
    ] = None,
    data_dir: DataDir = None,
    raw: Annotated[
        Path | None,
        typer.Option(
            "--raw",
            metavar="DIR",
            help="An extracted Kaggle folder, or one that holds them by id; it is not changed.",
        ),
    ] = None,
    edition: EditionFlag = EditionName.V1,
    keep_raw: Annotated[bool, typer.Option("--keep-raw", help="Keep what was extracted in raw/.")] = False,
    discard_zip: Annotated[
        bool,
        typer.Option("--discard-zip", help="Free the zip's space while it is read, or at the end."),
    ] = False,
    skip_verification: Annotated[
        bool, typer.Option("--skip-verification", help="Don't compare with the known checksums.")
    ] = False,
    overwrite_checksums: Annotated[
        bool, typer.Option("--overwrite-checksums", help="Record what is found as the known checksums.")
    ] = False,
    overwrite_leaderboard: Annotated[
        bool, typer.Option("--overwrite-leaderboard", help="Refresh the medal cut-offs from Kaggle first.")
    ] = False,
    descriptions: Annotated[
        str,
        typer.Option(
            "--descriptions",
            metavar="ours|obfuscated|kaggle|DIR",
            help="Which description to put beside the data; DIR holds ID/description.md.",
        ),
    ] = _OURS,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="How many at once; the default is in config.toml."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Also prepare what is prepared already.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done and what it needs, without doing it.")
    ] = False,
    json: Json = False,
) -> None:
    """Prepare datasets: download, verify, extract, split.

    Small ones come first; what is there already or in --raw is not downloaded.

    The engine does the work and continues when the command is interrupted; the same command again shows its progress.
    """
    chosen = _chosen(competition_id or [], all_, lite, list_)
    base = data_dir_of(context, data_dir)
    _check_raw(raw, chosen)
    if dry_run:
        _say_estimate(places_of(context), chosen, base, edition, raw=raw, again=again, json=json)
        return
    if overwrite_leaderboard:
        from engine.datasets.facts import refresh_leaderboard

        for one in chosen:
            refresh_leaderboard(one, force=True)
    wanted = {
        "raw_dir": "" if raw is None else str(raw.absolute()),
        "again": again or overwrite_checksums,
        "skip_verification": skip_verification or overwrite_checksums,
        "keep_raw": keep_raw,
        "discard_zip": discard_zip,
        "descriptions": _descriptions(descriptions),
        "jobs": jobs,
    }
    outcomes = _prepare(places_of(context), base, chosen, edition, wanted, json)
    if overwrite_checksums:
        _take_checksums(outcomes, base)
    failed = [outcome for outcome in outcomes if not outcome.state.endswith("prepared")]
    if json:
        say_json([outcome.to_document(edition) for outcome in outcomes])
    elif len(outcomes) > 1:
        say(f"{len(outcomes) - len(failed)} of {len(outcomes)} prepared in {base}")
    if failed:
        raise typer.Exit(DataProblem.exit_code)


def _say_estimate(
    places: Places,
    chosen: Sequence[str],
    base: Path,
    edition: EditionName,
    *,
    raw: Path | None,
    again: bool,
    json: bool,
) -> None:
    """Say what preparing would take; Kaggle is asked where there are credentials."""
    from engine.datasets.estimates import ToDo, estimate, peak_bytes
    from engine.space import free_bytes

    found = sorted(
        estimate(chosen, base, edition.edition, raw_given=raw is not None, again=again),
        key=lambda one: (one.bytes is None, one.bytes or 0),
    )
    free, peak = free_bytes(base), peak_bytes(found)
    to_download = sum(one.bytes or 0 for one in found if one.to_do is ToDo.DOWNLOAD)
    to_prepare = sum(one.bytes or 0 for one in found if one.to_do in (ToDo.DOWNLOAD, ToDo.PREPARE))
    seconds = _measured_rates(places).seconds(to_download, to_prepare)
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


def _measured_rates(places: Places) -> Throughput:
    """How fast it has gone here so far, as far as there is a state that knows."""
    from engine.datasets.estimates import Throughput, measured
    from state import database, datasets

    if not database.exists(places.state_dir):
        return Throughput()
    opened = database.open_for_reading(places.state_dir)
    try:
        steps = groupby(datasets.all_steps(opened), key=lambda step: (step.competition_id, step.edition))
        return measured(list(own) for _key, own in steps)
    finally:
        opened.close()


def _prepare(
    places: Places,
    base: Path,
    chosen: Sequence[str],
    edition: EditionName,
    wanted: dict[str, Any],
    json: bool,
) -> list[PreparationResult]:
    from competitions import registry
    from engine.layout import dataset_folder, is_prepared

    folders = {one: dataset_folder(registry.get(one), base, edition.edition) for one in chosen}
    there = {one for one in chosen if not wanted["again"] and is_prepared(registry.get(one), folders[one])}
    missing = sorted((one for one in chosen if one not in there), key=_size)
    seen = _with_engine(places, base, missing, edition, wanted, json) if missing else ()
    found = {one.dataset.competition_id: one.dataset for one in seen}
    outcomes = []
    for one in chosen:
        state = "was prepared" if one in there else found[one].state.value
        problem = "" if one in there else found[one].problem
        outcomes.append(PreparationResult(one, state, problem, folders[one].prepared))
        if one in there and not json:
            say(f"{one}: was prepared in {folders[one].prepared}")
    return outcomes


def _with_engine(
    places: Places,
    base: Path,
    missing: Sequence[str],
    edition: EditionName,
    wanted: dict[str, Any],
    json: bool,
) -> tuple[DatasetProgress, ...]:
    from console.cli.dataset_work import (
        Bars,
        Display,
        PlainLines,
        ProgressRows,
        Silent,
        prepare_and_watch,
    )
    from console.cli.engine import engine_for

    with ExitStack() as stack:
        used = stack.enter_context(engine_for(places, base))
        display: Display = Silent() if json else PlainLines()
        if not json and sys.stdout.isatty():
            display = Bars(stack.enter_context(ProgressRows()))
        try:
            return prepare_and_watch(used, missing, edition.value, wanted, display)
        except KeyboardInterrupt:
            if used is places:
                complain("The engine continues; 'mlebench-console datasets stop --all' stops it.")
            raise


def _take_checksums(outcomes: Sequence[PreparationResult], base: Path) -> None:
    from engine.datasets.facts import take_checksums

    for outcome in outcomes:
        if outcome.state == "prepared":
            take_checksums(outcome.competition_id, base)


def _size(competition_id: str) -> tuple[float, str]:
    from competitions import registry

    size = registry.get(competition_id).size_gb
    return (float("inf") if size is None else size, competition_id)


def _descriptions(choice: str) -> str:
    if choice == _OURS:
        return choice  # nothing to look up, and a second run stays quick
    from engine.datasets.descriptions import check_choice

    return check_choice(choice)  # a folder is named from here, which the engine does not know


def _check_raw(raw: Path | None, chosen: Sequence[str]) -> None:
    if raw is None or len(chosen) == 1:
        return
    missing = [one for one in chosen if not (raw / one).is_dir()]
    if missing:
        raise UsageProblem(
            f"--raw {raw} holds no folder {missing[0]}",
            f"{len(chosen)} competitions were chosen",
            "Give a folder that holds one folder per competition id, or a single -c ID.",
        )


def _chosen(named: Sequence[str], all_: bool, lite: bool, list_: Path | None) -> tuple[str, ...]:
    from competitions import registry

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
