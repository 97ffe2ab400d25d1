"""Make evidence from MLE-bench's grading reports and tables of outcomes: read from paths, or imported under a name.

Evidence from our own runs is in `engine.scoreboard.own_runs`.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from mlebench_console.competitions import registry
from mlebench_console.engine.grading.batch import REPORT_SUFFIX
from mlebench_console.engine.rungroups import MAPPING_NAME, METADATA, read_mapping
from mlebench_console.engine.scoreboard.export import RUNS, verify_bundle
from mlebench_console.engine.scoreboard.model import (
    FLAGS,
    OBFUSCATED,
    REPORTED,
    USUAL,
    Conditions,
    Evidence,
    Measure,
    Trial,
    differences,
)
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.environment.gateway.prices import PriceTable
from mlebench_console.foundation.files import read_csv, write_json
from mlebench_console.foundation.problems import DataProblem, UsageProblem, reading
from mlebench_console.state import database as state_database

# The folder of imports in the state directory.
FOLDER = "imported"
_ABOUT = "about.json"
_REPORTS = "reports"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

# The pattern by which MLE-bench finds the report of a run group.
_REPORTS_OF_A_GROUP = "*grading_report*.json"

_MOST_NAMED = 5

_MEDALS = frozenset({Measure.GOLD, Measure.SILVER, Measure.BRONZE})


@dataclass(frozen=True)
class About:
    """What the operator adds about imported reports, which don't contain it."""

    name: str
    agent: str = ""
    llms: str = ""
    hours: float | None = None
    hardware: str = ""


def load_evidence(
    sources: Sequence[Path | str],
    *,
    state_dir: Path | None = None,
    experiment_id: str | None = None,
    prices: PriceTable | None = None,
) -> Evidence:
    """Load evidence from grading reports, a table of outcomes, a runs folder, a bundle, or by name.

    Args:
        sources: one name of an experiment or import, one table (`.csv`), one folder of run groups, or any number
            of reports (`.json`) and folders with one report each.
        state_dir: where names are looked up.
        experiment_id: which experiment to load from a runs folder with a run_group_experiments.csv.
        prices: of models, for our own runs; by default the project's.

    Raises:
        Problem: there is no such source, or it can't be read.
    """
    if not sources:
        raise UsageProblem("no source was given", "", "Give an experiment, or grading reports.")
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        return _load_by_name(str(sources[0]), state_dir, prices)
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise DataProblem(f"{missing[0]} was not found")
    about = About(experiment_id or (paths[0].stem if len(paths) == 1 else "reports"))
    files, note = report_files(paths, experiment_id)
    evidence = _read_files(files, about)
    return replace(evidence, note="; ".join(filter(None, (evidence.note, note))))


def _load_by_name(name: str, state_dir: Path | None, prices: PriceTable | None) -> Evidence:
    if state_dir is None:
        raise DataProblem(f"{name} was not found")
    if name in import_names(state_dir):
        return read_import(state_dir, name)
    if not state_database.exists(state_dir):
        raise UsageProblem(f"there is no experiment, import or file '{name}'")
    with closing(state_database.open_for_reading(state_dir)) as database:
        return find_evidence(database, name, prices)


# Imports


def import_reports(
    state_dir: Path, paths: Sequence[Path], about: About, *, replace: bool = False
) -> Evidence:
    """Copy grading reports (or one table of outcomes) into the state directory, to show them on the scoreboard.

    Raises:
        UsageProblem: the name is not valid, or taken.
        DataProblem: a report can't be read.
    """
    if not _NAME.fullmatch(about.name):
        raise UsageProblem(
            f"'{about.name}' is not a valid name", "names may contain letters, digits, '.', '_' and '-'"
        )
    home = state_dir / FOLDER / about.name
    if home.exists() and not replace:
        raise UsageProblem(
            f"there is already an import '{about.name}'", "", "Choose another name, or use --replace."
        )
    ordered = sorted(paths, key=str)
    evidence = _read_files(ordered, about)
    partial = home.with_name(f".{about.name}.{secrets.token_hex(4)}.partial")
    try:
        (partial / _REPORTS).mkdir(parents=True)
        for number, path in enumerate(ordered):
            # Numbered, because the order of the paths is the order of the seeds.
            shutil.copyfile(path, partial / _REPORTS / f"{number:04}-{path.name}")
        write_json(partial / _ABOUT, asdict(about))
        if about.name in import_names(state_dir):
            remove_import(state_dir, about.name)
        partial.rename(home)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DataProblem(f"{home} can't be created", error.strerror or str(error)) from error
    return evidence


def import_names(state_dir: Path) -> tuple[str, ...]:
    """List the names of the imported experiments."""
    folder = state_dir / FOLDER
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return tuple(name for name in found if not name.startswith("."))


def imported_evidence(state_dir: Path) -> tuple[Evidence, ...]:
    """Read every imported experiment, by name.

    Raises:
        DataProblem: one of them has been damaged.
    """
    return tuple(read_import(state_dir, name) for name in import_names(state_dir))


def read_import(state_dir: Path, name: str) -> Evidence:
    """Read one imported experiment.

    Raises:
        DataProblem: it has been damaged.
    """
    home = state_dir / FOLDER / name
    try:
        about = msgspec.json.decode((home / _ABOUT).read_bytes(), type=About)
    except (OSError, msgspec.DecodeError) as error:
        raise DataProblem(
            f"the import '{name}' is damaged", str(error), f"Remove {home} and import it again."
        ) from error
    return _read_files(sorted((home / _REPORTS).iterdir()), about)


def remove_import(state_dir: Path, name: str) -> None:
    """Remove an imported experiment.

    Raises:
        UsageProblem: there is no import of that name.
    """
    if name not in import_names(state_dir):
        raise UsageProblem(f"there is no import '{name}'")
    home = state_dir / FOLDER / name
    # Renamed first, so that a half-removed import is never read.
    gone = home.with_name(f".{name}.{secrets.token_hex(4)}.removed")
    home.rename(gone)
    shutil.rmtree(gone)


# Finding the reports below a path


def report_files(paths: Sequence[Path], experiment_id: str | None = None) -> tuple[tuple[Path, ...], str]:
    """Find the grading reports at some paths, and say which run groups are left out as they have none.

    A bundle, whose checksums are verified, or a folder of run groups with their mapping gives the reports of one
    experiment. Any other folder gives the report in it, or those in the folders directly below it. A file is a
    report itself.

    Raises:
        UsageProblem: it is not clear which experiment is meant.
        DataProblem: a folder has no report, a run group has several, or a bundle has been changed.
    """
    if len(paths) == 1 and (paths[0] / RUNS / MAPPING_NAME).is_file():
        verify_bundle(paths[0])
        found = _reports_of_experiment(paths[0] / RUNS, experiment_id)
    elif len(paths) == 1 and (paths[0] / MAPPING_NAME).is_file():
        found = _reports_of_experiment(paths[0], experiment_id)
    else:
        found = {place: report for path in paths for place, report in _reports_at(path).items()}
    ungraded = [place.name for place, report in found.items() if report is None]
    more = f" and {len(ungraded) - _MOST_NAMED} more" if len(ungraded) > _MOST_NAMED else ""
    named = ", ".join(ungraded[:_MOST_NAMED]) + more
    note = f"left out, run groups without a grading report: {named}" if ungraded else ""
    return tuple(report for report in found.values() if report is not None), note


def _reports_of_experiment(runs_dir: Path, experiment_id: str | None) -> dict[Path, Path | None]:
    """Return the report of every run group of an experiment, in the order in which they count."""
    mapping = runs_dir / MAPPING_NAME
    groups_of = read_mapping(mapping)
    if experiment_id is None and len(groups_of) == 1:
        (experiment_id,) = groups_of
    if experiment_id is None or experiment_id not in groups_of:
        wrong = (
            "holds several experiments" if experiment_id is None else f"has no experiment '{experiment_id}'"
        )
        known = ", ".join(sorted(groups_of)[:12]) or "none"
        raise UsageProblem(f"{mapping} {wrong}", "", f"Give one of {known} with --experiment-id.")
    groups = groups_of[experiment_id]
    found = {runs_dir / group: _report_of_group(runs_dir / group) for group in groups}
    if not any(found.values()):
        raise DataProblem(
            f"none of the {len(groups)} run groups of {experiment_id} has a grading report",
            ", ".join(groups[:_MOST_NAMED]),
            "Create them with 'mlebench-console make-submission' and 'grade'.",
        )
    return found


def _reports_at(path: Path) -> dict[Path, Path | None]:
    """Return the report in a folder, or those in the folders directly below it; a file is returned as it is."""
    if not path.is_dir():
        # The shell pattern `runs/*/*.json` also matches the groups' metadata.
        return {path: path} if path.name != METADATA else {}
    if (own := _report_of_group(path)) is not None:
        return {path: own}
    below = {group: _report_of_group(group) for group in sorted(path.glob("*/"))}
    if not any(below.values()):
        raise DataProblem(f"{path} has no grading report", f"no file in it ends in {REPORT_SUFFIX}")
    return {group: report for group, report in below.items() if report or (group / METADATA).is_file()}


def _report_of_group(folder: Path) -> Path | None:
    """Return the report of a run group, None where there is none.

    Raises:
        DataProblem: there are several; only the operator knows which one counts.
    """
    found = sorted(folder.glob(_REPORTS_OF_A_GROUP))
    if len(found) > 1:
        raise DataProblem(
            f"{folder} has {len(found)} grading reports",
            ", ".join(path.name for path in found[:_MOST_NAMED]),
            "Keep the one that counts, or give the report files instead of the folder.",
        )
    return found[0] if found else None


# Reading reports and tables


def _read_files(paths: Sequence[Path], about: About) -> Evidence:
    tables = [path for path in paths if path.suffix.lower() == ".csv"]
    if tables and len(paths) > 1:
        raise UsageProblem("a table of outcomes can't be read together with other files")
    if tables:
        return _evidence(_read_outcomes(tables[0]), about)
    if not paths:
        raise DataProblem(f"there is no grading report of {about.name}")
    # In MLE-bench's order: by path as text, and within a report by competition.
    return _evidence([report for path in sorted(paths, key=str) for report in _read_report(path)], about)


def _read_report(path: Path) -> list[dict[str, Any]]:
    with reading(path):
        document = json.loads(path.read_text(encoding="utf-8"))
    reports = document.get("competition_reports") if isinstance(document, dict) else None
    if not isinstance(reports, list) or not all(
        isinstance(report, dict) and isinstance(report.get("competition_id"), str) for report in reports
    ):
        raise DataProblem(f"{path} is not a grading report", 'it has no valid list "competition_reports"')
    return sorted(reports, key=lambda report: report["competition_id"])


def _read_outcomes(path: Path) -> list[dict[str, Any]]:
    """Read a table with one line for each seed of each competition, and return its lines as reports.

    It needs `competition_id`, `seed` and the medal columns of a report; `score`, `valid_submission`,
    `above_median`, `submission_exists` and `runtime_seconds` are optional.
    """
    needed = ("competition_id", "seed", "gold_medal", "silver_medal", "bronze_medal")
    lines: list[tuple[int, dict[str, Any]]] = []
    for number, row in enumerate(read_csv(path, needed, "table of outcomes"), start=1):
        try:
            lines.append((int(row["seed"]), _outcome(row)))
        except (ValueError, TypeError) as error:
            raise DataProblem(f"{path}, row {number}, is not valid", str(error)) from error
    return [values for _, values in sorted(lines, key=lambda line: line[0])]


def _outcome(row: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of a table as a report."""
    values: dict[str, Any] = {"competition_id": row["competition_id"]}
    for flag in FLAGS:
        if row.get(flag):
            values[flag] = bool(int(float(row[flag])))
    # Without a column for it, only a valid submission is known to exist.
    values.setdefault("submission_exists", values.get("valid_submission", False))
    values["score"] = float(row["score"]) if row.get("score") else None
    values["seconds"] = float(row["runtime_seconds"]) if row.get("runtime_seconds") else None
    return values


def _evidence(reports: Sequence[Mapping[str, Any]], about: About) -> Evidence:
    known = set(registry.all_ids())
    unknown = sorted({report["competition_id"] for report in reports} - known)
    reports = [report for report in reports if report["competition_id"] in known]
    seeds: Counter[str] = Counter()
    trials: list[Trial] = []
    for report in reports:
        seeds[report["competition_id"]] += 1
        trials.append(_trial(report, seeds[report["competition_id"]]))
    editions = {str(report.get("edition") or "v1") for report in reports}
    given = {str(report.get("descriptions") or "unknown") for report in reports}
    texts = {{"unknown": "", OBFUSCATED: OBFUSCATED}.get(one, USUAL) for one in given}
    conditions = [
        Conditions(
            edition=edition,
            descriptions=text,
            agent=about.agent or about.name,
            hours=about.hours,
            hardware=about.hardware,
        )
        for edition in sorted(editions or {"v1"})
        for text in sorted(texts or {""})
    ]
    left_out = f"left out, not of this benchmark: {', '.join(unknown[:_MOST_NAMED])}" if unknown else ""
    return Evidence(
        table="imported",
        name=about.name,
        conditions=conditions[-1],
        trials=tuple(trials),
        created_at=max((trial.decided_at or 0.0 for trial in trials), default=0.0),
        conflict="; ".join(differences(conditions)),
        note="; ".join(filter(None, (REPORTED, left_out))),
        llms=about.llms,
    )


def _trial(report: Mapping[str, Any], seed: int) -> Trial:
    earned = {measure for flag, measure in FLAGS.items() if report.get(flag)}
    if earned & _MEDALS:
        earned.add(Measure.ANY_MEDAL)
    try:
        decided_at = datetime.fromisoformat(str(report.get("created_at"))).timestamp() or None
    except ValueError:
        decided_at = None
    reason = "invalid submission" if Measure.SUBMISSION in earned else "no submission"
    return Trial(
        competition_id=report["competition_id"],
        seed=seed,
        earned=frozenset(earned),
        score=_number(report.get("score")),
        seconds=_number(report.get("seconds")),
        text="" if Measure.VALID in earned else str(report.get("message") or reason),
        decided_at=decided_at,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
