"""`competitions`: list and show competitions and their defects, and create and check your own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition, Defect, Parameter
from mlebench_console.competitions.registry import source_of
from mlebench_console.console import wording
from mlebench_console.console.cli.common import CompetitionId, Context, new_group
from mlebench_console.console.cli.output import say, say_json, say_on_stderr
from mlebench_console.foundation.problems import DataProblem, UsageProblem

if TYPE_CHECKING:
    from mlebench_console.competitions.authoring.drafts import CutOffs

app = new_group()

Split = Annotated[
    str, Option("--split", metavar="NAME|FILE", help="low, medium, high, all, dev ... or a file of ids.")
]
RawFolder = Annotated[
    Path,
    Option("--raw", metavar="DIR", help="Its raw data, or a small sample of the same form; not changed."),
]
Parameters = Annotated[
    list[str] | None,
    Option("--parameter", metavar="NAME=VALUE", help="Replace a parameter of its facts; repeatable."),
]


@app.command("list")
def list_(context: Context, split: Split = "") -> None:
    """List the competitions, of one split or all, and where each comes from."""
    members, problems = _members(split)
    context.say_records(
        ("competition", "split", "category", "metric", "size", "here", "from"),
        members,
        lambda one: (
            one.id,
            one.complexity,
            one.category,
            one.metric.name,
            _size(one),
            "yes" if one.available else "no",
            source_of(one),
        ),
        document=_facts,
        right=("size",),
    )
    _end(problems)


@app.command()
def show(context: Context, competition_id: CompetitionId) -> None:
    """Show one competition: metric, cut-offs, files, checksums, and known defects in each edition."""
    competition = registry.get(competition_id)
    if context.json:
        say_json(_facts(competition))
        return
    cut = competition.thresholds
    teams = "unknown" if cut.num_teams is None else f"{cut.num_teams:,}"
    facts = {
        "split": competition.complexity,
        "category": competition.category,
        "kind": f"{competition.kaggle_type}, {_prizes(competition)}",
        "metric": f"{competition.metric.name}, {competition.metric.direction} is better",
        "formula": competition.metric.formula,
        "medals": f"gold {cut.gold:g}  silver {cut.silver:g}  bronze {cut.bronze:g}  median {cut.median:g}",
        "teams": f"{teams}; confidence in the cut-offs {cut.confidence}",
        "size": _size(competition),
        "answers": competition.answers,
        "sample": competition.sample_submission,
        "numbers": ", ".join(f"{name} = {value}" for name, value in competition.parameters.items())
        or "no numbers fixed",
        "checksums": _checksums(competition),
        "from": registry.source_of(competition),
    }
    if page := registry.rules_url(competition):
        facts["rules"] = page
    if competition.excluded:
        facts["corrected"] = f"left out of edition corrected: {competition.excluded}"
    say(f"{competition.id}: {competition.name}")
    for name, text in facts.items():
        say(f"{name:<11} {text}")
    for defect in competition.defects:
        say(f"defect      {defect.id}: {defect.severity}, {_treatment(defect)}: {defect.text}")
        if defect.remedy:
            say(f"            remedy: {defect.remedy}")
        if defect.known:
            say(f"            known to MLE-bench: {defect.known}")


@app.command()
def defects(context: Context, split: Split = "") -> None:
    """List the known defects of edition v1, and which of them edition corrected fixes."""
    members, problems = _members(split)
    context.say_records(
        ("competition", "defect", "severity", "corrected", "what"),
        [(competition, defect) for competition in members for defect in competition.defects],
        lambda one: (one[0].id, one[1].id, one[1].severity, one[1].treatment, one[1].text),
        document=lambda one: {"competition_id": one[0].id, "excluded": one[0].excluded, **asdict(one[1])},
    )
    _end(problems)


@app.command()
def new(
    context: Context,
    competition_id: CompetitionId,
    to: Annotated[
        Path | None,
        Option(
            metavar="DIR", help="The folder of competitions; by default the first of MLEBENCH_COMPETITIONS."
        ),
    ] = None,
    name: Annotated[str, Option(help="Its title; by default made from its id.")] = "",
    table: Annotated[
        str, Option(metavar="FILE", help="The labelled table among its raw files.")
    ] = "train.csv",
    id_column: Annotated[
        str, Option(metavar="COLUMN", help="The column that identifies the rows of that table.")
    ] = "id",
    target: Annotated[str, Option(metavar="COLUMN", help="The column to predict.")] = "target",
    group: Annotated[
        str,
        Option(
            metavar="COLUMN", help="Keep rows with the same value of this column in one part of the split."
        ),
    ] = "",
    images: Annotated[
        str, Option(metavar="DIR", help="The raw folder with an image for each row, named by its id.")
    ] = "",
    metric: Annotated[
        Literal["accuracy", "auc", "rmse", "mae"], Option(help="How submissions are scored.")
    ] = "accuracy",
    cut_offs: Annotated[
        str, Option(metavar="GOLD,SILVER,BRONZE,MEDIAN", help="The scores that earn medals, and the median.")
    ] = "",
) -> None:
    """Create the folder of a new competition: facts, task and description, with notes on what is left to write."""
    from mlebench_console.competitions.authoring.drafts import TODO, Draft, write_draft

    own = os.environ.get(registry.OWN_VARIABLE, "").split(os.pathsep)[0]
    if to is None and not own:
        raise UsageProblem(f"neither --to nor {registry.OWN_VARIABLE} names a folder of competitions")
    home = to or Path(own).expanduser()
    if competition_id in registry.all_ids():
        raise UsageProblem(f"there is a competition '{competition_id}' already", "", "Choose another id.")
    draft = Draft(
        competition_id,
        name or competition_id.replace("-", " ").title(),
        table,
        id_column,
        target,
        group,
        images,
        metric,
        _cut_offs(cut_offs),
    )
    folder = write_draft(draft, home)
    registry.clear_caches()
    is_found = competition_id in registry.all_ids()
    context.say_result(
        {"competition_id": competition_id, "folder": str(folder), "is_found": is_found},
        f"{folder} holds competition.toml, task.py and description.md; complete what is marked {TODO}.",
        *([] if is_found else [f"then: export {registry.OWN_VARIABLE}={home.absolute()}"]),
        f"then: mlebench-console competitions check {competition_id} --raw DIR",
    )


def _cut_offs(text: str) -> CutOffs | None:
    """Return the cut-offs given by a flag.

    Raises:
        UsageProblem: they are not four numbers.
    """
    if not text:
        return None
    try:
        gold, silver, bronze, median = map(float, text.split(","))
    except ValueError as error:
        raise UsageProblem(f"'{text}' is not four numbers with commas: GOLD,SILVER,BRONZE,MEDIAN") from error
    return gold, silver, bronze, median


@app.command()
def check(
    context: Context, competition_id: CompetitionId, raw: RawFolder, parameter: Parameters = None
) -> None:
    """Check a competition with its raw data: facts, preparation, grading, validation, secrecy, description.

    Exit code 1 when something is wrong.
    """
    from mlebench_console.engine.authoring import check as run_checks
    from mlebench_console.engine.checks import Health

    found = []
    for one in run_checks(competition_id, raw, _parameters(parameter)):
        found.append(one)
        if not context.json:
            say(f"{one.health:<5} {one.name}: {one.text}")
            if one.next_step and one.health is not Health.OK:
                say("".join(f"      {line}\n" for line in one.next_step.splitlines()).rstrip())
    if context.json:
        say_json(
            [
                {"what": one.name, "health": one.health, "found": one.text, "detail": one.next_step}
                for one in found
            ]
        )
    if not all(one.allows_work for one in found):
        raise typer.Exit(1)


@app.command()
def vectors(
    context: Context,
    competition_id: CompetitionId,
    raw: RawFolder,
    to: Annotated[Path, Option(metavar="DIR", help="Where to write the folder ID with the vectors.")],
    parameter: Parameters = None,
) -> None:
    """Write conformance vectors: small raw data, the prepared files, submissions and their scores."""
    from mlebench_console.engine.authoring import write_vectors

    folder = write_vectors(competition_id, raw, to, _parameters(parameter))
    document = {"competition_id": competition_id, "folder": str(folder)}
    context.say_result(document, f"{folder} holds what prepare and grade do now.")


def _parameters(given: list[str] | None) -> Mapping[str, Parameter]:
    """Return the parameters given by flags, each a TOML value.

    Raises:
        UsageProblem: one is not NAME=VALUE.
    """
    import tomllib

    try:
        return tomllib.loads("\n".join(given or []))
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(
            f"{', '.join(given or [])} can't be used as parameters",
            str(error),
            "Write NAME=VALUE as in TOML.",
        ) from error


def _members(split: str) -> tuple[list[Competition], list[DataProblem]]:
    """Return the competitions of a split, and the problems of those whose facts can't be read."""
    members, problems = registry.readable(registry.read_split(split) if split else registry.all_ids())
    return members, list(problems.values())


def _end(problems: Sequence[DataProblem]) -> None:
    """Print the problems and exit with their code; without problems, return."""
    for problem in problems:
        say_on_stderr(str(problem))
    if problems:
        raise typer.Exit(DataProblem.exit_code)


def _size(competition: Competition) -> str:
    return wording.size(None if competition.size_gb is None else competition.size_gb * 1e9)


def _prizes(competition: Competition) -> str:
    if not competition.prizes:
        return "medals on Kaggle" if competition.awards_medals else "no medals on Kaggle"
    places = ", ".join(f"{prize.position} {prize.value:,.0f} $" for prize in competition.prizes)
    return f"prizes {places}"


def _checksums(competition: Competition) -> str:
    sums = competition.checksums
    tables = len(sums.public) + len(sums.private)
    return f"Kaggle's zip {'known' if sums.zip else 'unknown'}, {tables} prepared tables known"


def _treatment(defect: Defect) -> str:
    return {
        "mended": "mended in edition corrected",
        "told": "documented only",
        "open": "open in edition corrected too",
    }[defect.treatment]


def _facts(competition: Competition) -> dict[str, Any]:
    cut = competition.thresholds
    return {
        "id": competition.id,
        "source": registry.source_of(competition),
        "name": competition.name,
        "split": competition.complexity,
        "category": competition.category,
        "available": competition.available,
        "kaggle_type": competition.kaggle_type,
        "metric": competition.metric.name,
        "direction": competition.metric.direction,
        "formula": competition.metric.formula,
        "grader": competition.grader_name,
        "gold": cut.gold,
        "silver": cut.silver,
        "bronze": cut.bronze,
        "median": cut.median,
        "teams": cut.num_teams,
        "confidence": cut.confidence,
        "answers": competition.answers,
        "sample_submission": competition.sample_submission,
        "gold_submission": competition.files.gold_submission,
        "parameters": dict(competition.parameters),
        "zip_checksum": competition.checksums.zip,
        "size_gb": competition.size_gb,
        "rules_url": registry.rules_url(competition),
        "excluded_from_corrected": competition.excluded,
        "defects": [asdict(defect) for defect in competition.defects],
    }
