"""`datasets`: list, verify, copy and prune datasets, and check access to them on Kaggle."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.console import wording
from mlebench_console.console.cli.common import (
    CompetitionId,
    CompetitionIds,
    Context,
    DataDir,
    EditionFlag,
    new_group,
)
from mlebench_console.console.cli.competition import Split
from mlebench_console.console.cli.output import say, say_json, say_on_stderr, say_texts, show_count
from mlebench_console.engine.layout import (
    dataset_folder,
    is_demo,
    is_prepared,
    prepared_with,
    require_prepared,
)
from mlebench_console.engine.requests import PrepareDatasets
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import database, sweeps
from mlebench_console.state.event_records import DatasetVerified
from mlebench_console.state.records import PreparationOptions, VerificationKind

if TYPE_CHECKING:
    from mlebench_console.console.nouns.dataset import DatasetRow
    from mlebench_console.engine.agreement import Agreement
    from mlebench_console.engine.datasets.prepared.mirrors import Mirrored
    from mlebench_console.engine.datasets.prepared.pruning import Part

app = new_group()

_DAY = 86_400.0
_MOST_NAMED = 5


@app.command("list")
def list_datasets(
    context: Context, split: Split = "", data_dir: DataDir = None, edition: EditionFlag = "v1"
) -> None:
    """List the datasets: those in the data directory, and those that the engine is preparing."""
    from mlebench_console.console.nouns.dataset import DATASET

    base = context.data_dir(data_dir)
    rows = _rows(context, _chosen_ids(None, split), base, edition)
    context.say_list(DATASET, rows, "competition state access raw disk zip problem")
    if not context.json:
        say(f"{sum(row.state == 'prepared' for row in rows)} of {len(rows)} prepared in {base}")


@app.command()
def show(
    context: Context, competition_id: CompetitionId, data_dir: DataDir = None, edition: EditionFlag = "v1"
) -> None:
    """Show one dataset: its steps, its size on the disk by part, and its folder."""
    from mlebench_console.engine.datasets.prepared.pruning import parts_of

    competition = registry.get(competition_id)
    base = context.data_dir(data_dir)
    folder = dataset_folder(competition, base, edition)
    parts = parts_of(competition, base)
    (row,) = _rows(context, [competition_id], base, edition)
    prepared, state = is_prepared(competition, folder), row.state.value
    if context.json:
        say_json(
            {
                "competition_id": competition_id,
                "edition": edition,
                "state": state,
                "problem": row.problem,
                "problem_code": row.problem_code,
                "folder": str(folder.root),
                "rules_url": registry.rules_url(competition),
                "demo": prepared and is_demo(folder),
                "marker": prepared_with(folder),
                "steps": [asdict(step) for step in row.steps],
                "parts": [{"name": part.name, "bytes": part.bytes} for part in parts],
            }
        )
        return
    say(f"{competition_id}: {state}, edition {edition}")
    if row.problem:
        say(row.problem)
    say(f"folder      {folder.root}")
    if page := registry.rules_url(competition):
        say(f"rules       {page}")
    marker = prepared_with(folder)
    if prepared:
        verified = "by MLE-bench" if marker is None else str(marker.get("prepared_at"))
        checked = "" if marker is None else ", verified" if marker.get("verified") else ", not verified"
        say(f"prepared    {verified}{checked}")
        if is_demo(folder):
            say("data        of the demo, made up: what is scored on it is no result")
    for part in parts:
        say(f"{part.name:<18}  {wording.size(part.bytes)}")
    for step in row.steps:
        amount = f"  {wording.size(step.done)}" if step.unit == "bytes" and step.done else ""
        say(f"step        {step.name}: {step.state}{amount}{f'  {step.note}' if step.note else ''}")


@app.command()
def verify(
    context: Context,
    competition_id: CompetitionIds = None,
    split: Split = "",
    data_dir: DataDir = None,
    deep: Annotated[bool, Option(help="Read every file and compare it with the manifest.")] = False,
    record: Annotated[bool, Option(help="First write missing manifests; implies --deep.")] = False,
    edition: EditionFlag = "v1",
) -> None:
    """Compare prepared datasets with their manifests and the known checksums; nothing is repaired.

    Files are compared by name and size, tables and the description by content; with --deep every file is. What
    MLE-bench prepared has no manifest until --record writes one.
    """
    from mlebench_console.console.cli.dataset.requests import progress_display, show_nothing, verify_and_watch

    kind = VerificationKind.DEEP if deep else VerificationKind.QUICK
    if record:
        kind = VerificationKind.RECORD
    base = context.data_dir(data_dir)
    chosen = []
    for competition in map(registry.get, _chosen_ids(competition_id, split)):
        folder = dataset_folder(competition, base, edition)
        if competition_id:
            require_prepared(competition, folder)
        if is_prepared(competition, folder):
            chosen.append(competition.id)
    found: dict[str, DatasetVerified] = {}
    if chosen:
        with (
            progress_display(lambda row: row.is_verifying, show_nothing, json=context.json) as show,
            context.engine(base) as used,
        ):
            for name, one in verify_and_watch(used, chosen, edition, kind, show):
                found[name] = one
                if not context.json:
                    _say_verified(name, one)
    if context.json:
        say_json([_verified_document(name, found[name]) for name in chosen])
    if any(one.differs or one.problem for one in found.values()):
        raise typer.Exit(DataProblem.exit_code)


@app.command()
def doctor(
    context: Context,
    competition_ids: Annotated[
        list[str], Argument(metavar="ID...", help="Competitions, or names of splits.")
    ],
    real: Annotated[bool, Option(help="First prepare missing datasets from Kaggle's data.")] = False,
    output: Annotated[
        Path | None, Option(metavar="FILE", help="Also write the report to share: JSON without any data.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare datasets of edition v1 with all that MLE-bench publishes: checksums, and the score of perfect answers.

    Exit code 3 when something differs or can't be had; docs/verification.md tells where to share the report.
    """
    from mlebench_console.console.cli.dataset.requests import prepare_by_engine
    from mlebench_console.engine.agreement import examine, report_of

    base = context.data_dir(data_dir)
    chosen = [registry.get(one) for one in registry.choose(competition_ids)]
    missing = [one.id for one in chosen if not is_prepared(one, dataset_folder(one, base))]
    if real and missing:
        # even if a checksum differs, as the differences are reported
        request = PrepareDatasets(
            competition_ids=tuple(missing), options=PreparationOptions(verify=False), keep_going=True
        )
        prepare_by_engine(context, base, [request])
    found = []
    for competition in chosen:
        found.append(examine(competition, base))
        if not context.json:
            _say_agreement(found[-1])
    report = asdict(report_of(found))
    if output is not None:
        write_json(output, report)
    if context.json:
        say_json(report)
    if not all(one.agrees for one in found):
        raise typer.Exit(DataProblem.exit_code)


def _say_agreement(one: Agreement) -> None:
    if one.problem:
        say(f"{one.competition_id}: {one.problem}")
        return
    same = one.compared - len(one.differing)
    say(f"{one.competition_id}: {'agrees' if one.agrees else 'differs'}")
    differing = f"; other than published: {', '.join(one.differing)}" if one.differing else ""
    say(f"  checksums  {same} of {one.compared} as published{differing}")
    for what, graded in (("sample", one.sample), ("perfect", one.perfect)):
        if graded is not None:
            score = "no score" if graded.score is None else f"{graded.score:g}"
            say(f"  {what:<9}  {score}, {graded.medal or graded.problem or 'no medal'}  ({graded.name})")


@app.command()
def rules(context: Context, competition_id: CompetitionIds = None, split: Split = "") -> None:
    """Ask Kaggle which competitions' data we may download, and show where to accept the rules of the others."""
    from mlebench_console.engine.datasets.sources.access import AccessState, ask_access
    from mlebench_console.engine.kaggle.credentials import require_credentials

    chosen = [
        registry.get(one) for one in _chosen_ids(competition_id, split or ("" if competition_id else "all"))
    ]
    require_credentials()  # there is one thing to say, not one for every competition
    found = ask_access(chosen, None if context.json else show_count("asking Kaggle"))
    access_texts = {
        AccessState.OPEN: "may be downloaded",
        AccessState.RULES: "accept the rules",
        AccessState.GONE: "no longer available",
    }
    context.say_records(
        ("competition", "access", "size", "where"),
        found,
        lambda one: (
            one.competition_id,
            access_texts.get(one.state, one.problem),
            wording.size(one.bytes),
            (one.url if one.state is AccessState.RULES else "") or "",
        ),
        right=("size",),
    )
    if not context.json:
        say(f"{sum(one.state is AccessState.OPEN for one in found)} of {len(found)} may be downloaded")


@app.command()
def stop(
    context: Context,
    competition_id: CompetitionIds = None,
    all_: Annotated[bool, Option("--all", "-a", help="Everything that is being prepared.")] = False,
    edition: EditionFlag = "v1",
) -> None:
    """Stop preparing datasets; what is downloaded stays and is resumed by the next request."""
    from mlebench_console.console.actions import dataset as dataset_actions
    from mlebench_console.console.nouns.dataset import dataset_rows
    from mlebench_console.engine.control import Answer

    if bool(competition_id) == all_:
        raise UsageProblem("which datasets to stop is not clear", "", "Give one of -c ID, --all.")
    with context.reading_state() as opened:
        rows = [row for row in dataset_rows(opened) if row.edition == edition]
    chosen = [row for row in rows if (row.is_busy if all_ else row.competition_id in (competition_id or ()))]
    if all_ and not chosen:
        context.say_answer(Answer("nothing is being prepared"), json=context.json)
    else:
        context.perform(dataset_actions.stop(chosen))


@app.command()
def priority(
    context: Context,
    value: Annotated[
        int,
        Argument(
            metavar="NUMBER", help="Datasets with a higher number are prepared first; the default is 0."
        ),
    ],
    competition_id: CompetitionIds = None,
    edition: EditionFlag = "v1",
) -> None:
    """Change the order in which waiting datasets are prepared."""
    from mlebench_console.console.actions import dataset as dataset_actions
    from mlebench_console.console.nouns.dataset import dataset_rows

    if not competition_id:
        raise UsageProblem("no competition was chosen", "", "Give -c ID.")
    chosen = _chosen_ids(competition_id, "")
    with context.reading_state() as opened:
        rows = dataset_rows(opened)
    wanted = [row for row in rows if row.edition == edition and row.competition_id in chosen]
    context.perform(dataset_actions.prioritize(wanted, value))


_Edition = Annotated[
    Literal["v1", "corrected"] | None, Option("--edition", help="Only this edition; both by default.")
]


@app.command("import")
def import_datasets(
    context: Context,
    source: Annotated[
        str, Argument(metavar="SOURCE", help="A folder, a .tar file, http(s)://... or s3://BUCKET/PREFIX.")
    ],
    competition_id: CompetitionIds = None,
    split: Split = "",
    data_dir: DataDir = None,
    again: Annotated[
        bool,
        Option(help="Also replace datasets that are prepared differently; refused while runs need them."),
    ] = False,
    edition: _Edition = None,
) -> None:
    """Copy prepared datasets from a mirror, each file compared with its manifest.

    The engine does the work as for prepare: what is interrupted goes on, and a dataset appears whole or not at all.
    """
    from mlebench_console.console.cli.dataset.requests import prepare_by_engine
    from mlebench_console.engine.datasets.prepared import mirrors, stores

    base = context.data_dir(data_dir)
    wanted = _chosen_ids(competition_id, split)
    store = stores.store_at(source)
    there = [one for one in mirrors.datasets_of(store) if edition in (None, one.edition)]
    found = [one for one in there if one.competition_id in wanted]
    absent = [one for one in competition_id or () if one not in {each.competition_id for each in found}]
    if absent or not found:
        missing = ", ".join(absent) or "none of the datasets"
        held = ", ".join(sorted({one.competition_id for one in there})[:_MOST_NAMED]) or "none"
        raise DataProblem(f"{store.name} does not hold {missing}", f"it holds {held}")
    states: dict[tuple[str, str], tuple[str, str]] = {}
    missing_by_edition: defaultdict[Edition, list[str]] = defaultdict(list)
    for one in found:
        competition = registry.get(one.competition_id)
        folder = dataset_folder(competition, base, one.edition)
        if mirrors.is_there(competition, folder, one):
            states[one.key] = "was there", ""
        elif is_prepared(competition, folder) and not again:
            states[one.key] = "kept", "another tree is prepared here; --again replaces it"
        else:
            missing_by_edition[one.edition].append(one.competition_id)
    place = str(Path(source).expanduser().absolute()) if "://" not in source else source
    options = PreparationOptions(mirror=place)
    requests = [
        PrepareDatasets(competition_ids=tuple(ids), edition=of, options=options, again=again, keep_going=True)
        for of, ids in missing_by_edition.items()
    ]
    lines = [f"{name}, edition {of}: {problem or state}" for (name, of), (state, problem) in states.items()]
    for row in prepare_by_engine(context, base, requests) if requests else ():
        states[row.key] = row.state.value, row.problem
    done = sum(state in ("was there", "prepared") for state, _ in states.values())
    document = [
        {"competition_id": name, "edition": of, "state": state, "problem": problem}
        for (name, of), (state, problem) in states.items()
    ]
    context.say_result(document, *lines, f"{done} of {len(states)} as in {store.name}")
    if any(problem for _, problem in states.values()):
        raise typer.Exit(DataProblem.exit_code)


@app.command()
def export(
    context: Context,
    archive: Annotated[Path, Argument(metavar="FILE.tar", help="The archive to write.")],
    competition_id: CompetitionIds = None,
    split: Split = "",
    data_dir: DataDir = None,
    edition: _Edition = None,
) -> None:
    """Write prepared datasets into one tar archive, answers included; 'datasets import' reads it."""
    from mlebench_console.engine.datasets.prepared import mirrors

    base = context.data_dir(data_dir)
    chosen, left_out = _with_manifests(base, competition_id, split, edition)
    if archive.exists():
        raise UsageProblem(f"{archive} is there already", "", "Name another file, or remove it.")
    if not archive.absolute().parent.is_dir():
        raise UsageProblem(f"{archive} can't be written", "its folder is not there")
    show = show_count("writing", wording.size)
    mirrors.write_archive(base, chosen, archive, lambda _, done, total: show(done, total))
    size = archive.stat().st_size
    text = f"{plural(len(chosen), 'dataset')} in {archive}, {wording.size(size)}"
    document = {"archive": str(archive), "datasets": len(chosen), "bytes": size, "left_out": left_out}
    context.say_result(document, text)
    _say_left_out(left_out)


@app.command()
def mirror(
    context: Context,
    target: Annotated[
        str, Argument(metavar="TARGET", help="A folder, which is made, or s3://BUCKET/PREFIX.")
    ],
    competition_id: CompetitionIds = None,
    split: Split = "",
    data_dir: DataDir = None,
    edition: _Edition = None,
) -> None:
    """Update a mirror with the datasets prepared here, answers included; 'datasets import' reads it.

    A folder can be served by any web server, copied with rsync, or used as a data directory. What is there already is
    not copied again; what was interrupted goes on with the same command.
    """
    from mlebench_console.engine.datasets.prepared import mirrors

    base = context.data_dir(data_dir)
    chosen, left_out = _with_manifests(base, competition_id, split, edition)
    done = []
    shows: dict[tuple[str, str], Callable[[int, int], None]] = {}

    def report(one: Mirrored, _: str, count: int, total: int) -> None:
        if not context.json:
            name = f"copying {one.competition_id}"
            shows.setdefault(one.key, show_count(name, wording.size))(count, total)

    for one, copied in mirrors.mirror(base, chosen, target, report):
        done.append({"competition_id": one.competition_id, "edition": one.edition, "copied": copied})
        if not context.json:
            how = f"copied, {wording.size(one.seal.bytes)}" if copied else "was there"
            say(f"{one.competition_id}, edition {one.edition}: {how}")
    text = f"{plural(len(done), 'dataset')} in {target}"
    context.say_result({"mirrored": done, "left_out": left_out}, text)
    _say_left_out(left_out)


@app.command()
def prune(
    context: Context,
    competition_id: CompetitionIds = None,
    split: Split = "",
    older_than: Annotated[float | None, Option(metavar="DAYS", help="Only data older than this.")] = None,
    sweep: Annotated[str, Option(metavar="ID", help="Only a sweep's competitions.")] = "",
    everything: Annotated[bool, Option(help="Also prepared data, not only zips, raw and leftovers.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Don't ask.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Remove data that are no longer needed: list them, ask, and remove; what sweeps still need stays."""
    from mlebench_console.console.actions.dataset import parts_to_prune
    from mlebench_console.console.cli.dataset.requests import prune_and_wait
    from mlebench_console.engine.datasets.prepared.pruning import CORRECTED, PREPARED

    base = context.data_dir(data_dir)
    if sweep:
        with context.reading_state() as opened:
            chosen = sweeps.get(opened, sweep).spec.competitions
    else:
        chosen = _chosen_ids(competition_id, split)
    still_needed = _needed(context, chosen) if everything else {}
    parts = [
        part
        for part in parts_to_prune(chosen, base, everything=everything)
        if not (part.name in (PREPARED, CORRECTED) and part.competition_id in still_needed)
        and (older_than is None or time.time() - part.changed > older_than * _DAY)
    ]
    if not context.json:
        _list_parts(parts, still_needed)
    if parts and context.json and not yes:
        raise UsageProblem("--json can't ask for confirmation", "", "Add --yes.")
    if not parts or not (yes or typer.confirm("Remove them?", default=False)):
        if context.json:
            say_json({"removed": [], "bytes": 0})
        return
    with context.engine(base) as used:
        found = prune_and_wait(used, parts)
    problems = [one.problem for one in found.values() if one.problem]
    for problem in problems:
        say_on_stderr(problem)
    say_on_stderr(f"{wording.size(sum(one.bytes for one in found.values()))} freed")
    if context.json:
        say_json({"removed": [(part.competition_id, part.name) for part in parts], "problems": problems})
    if problems:
        raise typer.Exit(DataProblem.exit_code)


def _chosen_ids(named: list[str] | None, split: str) -> tuple[str, ...]:
    """Return the competitions that a command names.

    Raises:
        UsageProblem: both are given, or there is no such competition or split.
    """
    if named and split:
        raise UsageProblem("both -c and --split were given", "", "Give one of -c ID, --split.")
    if named:
        return tuple(registry.get(name).id for name in dict.fromkeys(named))
    return registry.read_split(split) if split else registry.all_ids()


def _with_manifests(
    base: Path, named: list[str] | None, split: str, edition: Edition | None
) -> tuple[list[Mirrored], list[str]]:
    """Return the prepared datasets that have a manifest and so can be copied, and those without one.

    Raises:
        DataProblem: one that was named is not prepared, or there is none.
    """
    from mlebench_console.engine.datasets.prepared import mirrors

    wanted, problems = registry.readable(_chosen_ids(named, split))
    for problem in problems.values():
        say_on_stderr(problem.in_one_line())
    for competition in wanted if named else ():
        if not any(is_prepared(competition, dataset_folder(competition, base, one)) for one in EDITIONS):
            require_prepared(competition, dataset_folder(competition, base, edition or "v1"))
    ids = {competition.id for competition in wanted}
    found = [one for one in mirrors.datasets_in(base) if one.competition_id in ids]
    chosen = [one for one in found if edition in (None, one.edition)]
    listed = {one.key for one in found}
    left_out = [
        competition.id
        for competition in wanted
        for one in ([edition] if edition else EDITIONS)
        if is_prepared(competition, dataset_folder(competition, base, one))
        and (competition.id, one) not in listed
    ]
    if not chosen:
        raise DataProblem(
            "there is nothing to copy",
            f"no dataset in {base} has a manifest",
            "Prepare some, or give those of MLE-bench one: mlebench-console datasets verify --record",
        )
    return chosen, left_out


def _say_left_out(names: Sequence[str]) -> None:
    """Print which datasets have no manifest, and exit with a code other than 0 if there are any."""
    if names:
        say_on_stderr(f"left out, because they have no manifest: {', '.join(names)}")
        say_on_stderr("Give them one: mlebench-console datasets verify --record")
        raise typer.Exit(DataProblem.exit_code)


def _rows(context: Context, ids: Sequence[str], base: Path, edition: Edition) -> list[DatasetRow]:
    """Return datasets as the disk has them, with what the state knows of those in its own data directory."""
    from mlebench_console.console.nouns.dataset import DatasetRow, dataset_rows, on_disk

    places = context.places
    known: dict[tuple[str, str], DatasetRow] = {}
    if base == places.data_dir and database.exists(places.state_dir):
        with context.reading_state() as opened:
            known = {row.key: row for row in dataset_rows(opened)}
    return [on_disk(known.get((one, edition), DatasetRow(one, edition)), base) for one in ids]


def _say_verified(competition_id: str, found: DatasetVerified) -> None:
    if difference := found.differs or found.problem:
        say_on_stderr(f"{competition_id}: {difference}")
        return
    known = "of demo data, made up" if found.demo else f"{_known_sums(found)} with known sums"
    tables = f"{plural(len(found.sums), 'table')}, {known}"
    how = "by content" if found.deep else "by name and size"
    files = f"{plural(found.files, 'file')} {how}, " if found.files else ""
    say(f"{competition_id}: as expected: {files}{tables}")


def _verified_document(competition_id: str, found: DatasetVerified) -> dict[str, Any]:
    """Return a verification's result as it stands in JSON; what a problem left unknown is null."""
    return {
        "competition_id": competition_id,
        "differs": found.differs or found.problem,
        "known": _known_sums(found),
        **{name: getattr(found, name) for name in ("sums", "missing", "changed", "unlisted")},
        **{name: None if found.problem else getattr(found, name) for name in ("files", "deep", "demo")},
    }


def _known_sums(found: DatasetVerified) -> int:
    return sum(one["known"] is not None for one in found.sums)


def _list_parts(parts: Sequence[Part], needed: dict[str, str]) -> None:
    """Print what would be removed, and what stays because a sweep needs it."""
    for competition_id, name in needed.items():
        say(f"{competition_id}: its prepared data stay, sweep {name} has runs of it that have not ended")
    if not parts:
        say("there is nothing to remove")
        return
    say_texts(
        ("competition", "part", "size", "changed"),
        [
            (part.competition_id, part.name, wording.size(part.bytes), wording.date_and_time(part.changed))
            for part in parts
        ],
        right=("size",),
    )
    say(f"{len(parts)} parts, {wording.size(sum(part.bytes for part in parts))}")


def _needed(context: Context, chosen: Sequence[str]) -> dict[str, str]:
    """Return the competitions that sweeps still need, each with its sweep."""
    from mlebench_console.engine.datasets.requests import sweep_in_need_of

    if not database.exists(context.places.state_dir):
        return {}
    with context.reading_state() as opened:
        found = ((one, sweep_in_need_of(opened, one, {*EDITIONS})) for one in chosen)
        return {one: name for one, name in found if name is not None}
