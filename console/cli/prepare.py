"""`prepare`: prepare datasets here and now, with MLE-bench's flags; one failure stops none of the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from console.cli.editions import EditionFlag, EditionName
from console.cli.invocation import DataDir, Json, data_dir_of
from console.cli.lazy import new_app
from console.cli.output import complain, say, say_json
from foundation.problems import DataProblem, Problem, UsageProblem

app = new_app()


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
        Path | None, typer.Option("--list", "-l", metavar="FILE", help="A file with one id a line.")
    ] = None,
    data_dir: DataDir = None,
    raw: Annotated[
        Path | None, typer.Option("--raw", metavar="DIR", help="An extracted Kaggle folder, left untouched.")
    ] = None,
    edition: EditionFlag = EditionName.V1,
    skip_verification: Annotated[
        bool, typer.Option("--skip-verification", help="Don't compare with the known checksums.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what is prepared already.")] = False,
    json: Json = False,
) -> None:
    """Prepare datasets from Kaggle's raw data that lie in the data directory or in --raw."""
    chosen = _chosen(competition_id or [], all_, lite, list_)
    if raw is not None and len(chosen) != 1:
        raise UsageProblem(
            "--raw is the data of one competition", f"{len(chosen)} were chosen", "Give one -c ID."
        )
    base = data_dir_of(context, data_dir)
    outcomes = [
        _prepare_one(
            one, base, raw, edition, verify=False if skip_verification else None, again=again, quiet=json
        )
        for one in chosen
    ]
    failed = [outcome for outcome in outcomes if outcome["state"] == "failed"]
    if json:
        say_json(outcomes)
    elif len(chosen) > 1:
        say(f"{len(chosen) - len(failed)} of {len(chosen)} prepared")
    if failed:
        raise typer.Exit(DataProblem.exit_code)


def _prepare_one(
    competition_id: str,
    base: Path,
    raw: Path | None,
    edition: EditionName,
    *,
    verify: bool | None,
    again: bool,
    quiet: bool,
) -> dict[str, Any]:
    from competitions import registry
    from engine import prepare_competition
    from engine.layout import dataset_folder, is_prepared

    competition = registry.get(competition_id)
    folder = dataset_folder(competition, base, edition.edition)
    state, problem = "prepared", ""
    if not again and is_prepared(competition, folder):
        state = "was prepared"
    else:
        try:
            prepare_competition(
                competition_id, data_dir=base, raw=raw, edition=edition.edition, verify=verify
            )
        except Problem as error:
            state, problem = "failed", str(error)
            complain(problem)
    if state != "failed" and not quiet:
        say(f"{competition_id}: {state} in {folder.prepared}")
    return {
        "competition_id": competition_id,
        "edition": edition.value,
        "state": state,
        "problem": problem,
        "folder": str(folder.prepared),
    }


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
