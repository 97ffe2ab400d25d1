"""Evidence from MLE-bench's grading reports, and from tables of outcomes; it selects and reads, and counts nothing."""

from __future__ import annotations

import csv
import json
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from competitions import registry
from engine.grading.batch import REPORT_SUFFIX
from engine.rungroups import MAPPING_NAME, METADATA, read_mapping
from engine.scoreboard.aggregation import row_of
from engine.scoreboard.export import RUNS, verify_bundle
from engine.scoreboard.model import Conditions, Evidence, Measure, Row, Trial, differences, limit_text
from engine.scoreboard.own_runs import find_evidence
from foundation.files import write_json
from foundation.problems import DataProblem, UsageProblem
from state import database as state_database

# The fields of a report that say what it counts for.
_FLAGS: Mapping[str, Measure] = {
    "submission_exists": Measure.SUBMISSION,
    "valid_submission": Measure.VALID,
    "above_median": Measure.ABOVE_MEDIAN,
    "gold_medal": Measure.GOLD,
    "silver_medal": Measure.SILVER,
    "bronze_medal": Measure.BRONZE,
}
_MEDALS = frozenset({Measure.GOLD, Measure.SILVER, Measure.BRONZE})


@dataclass(frozen=True)
class About:
    """What a person knows of reports and the reports don't tell."""

    name: str
    agent: str = ""
    llms: str = ""
    hours: float | None = None
    hardware: str = ""
    network: str = ""


def read_reports(paths: Iterable[Path], about: About) -> Evidence:
    """Read grading reports in MLE-bench's order: by path, within one by competition.

    Raises:
        DataProblem: one can't be read or is no grading report, by its name.
    """
    ordered = sorted(paths)
    if not ordered:
        raise DataProblem(f"there is no grading report to make {about.name} of")
    reports = [report for path in ordered for report in _reports_in(path)]
    return _evidence(reports, about)


def reports_of_experiment(
    runs_dir: Path, experiment_id: str | None = None, mapping: Path | None = None
) -> tuple[Path, ...]:
    """Find the newest report of every run group of an experiment, in the order in which they count.

    Args:
        runs_dir: the folder of run groups.
        experiment_id: whose; may be left out when there is only one.
        mapping: run_group_experiments.csv, if it does not lie in the folder.

    Raises:
        UsageProblem: which experiment is meant is not clear.
        DataProblem: a run group or its report is missing, by name.
    """
    path = mapping or runs_dir / MAPPING_NAME
    groups_of = read_mapping(path)
    if experiment_id is None and len(groups_of) == 1:
        experiment_id = next(iter(groups_of))
    if experiment_id is None or experiment_id not in groups_of:
        raise UsageProblem(
            f"{path} holds several experiments"
            if experiment_id is None
            else f"{path} has no experiment '{experiment_id}'",
            "",
            f"Give one of {', '.join(sorted(groups_of)[:12]) or 'none'} with --experiment-id.",
        )
    found: list[Path] = []
    lacking: list[str] = []
    for group in groups_of[experiment_id]:
        reports = sorted((runs_dir / group).glob(f"*{REPORT_SUFFIX}"))
        if reports:
            found.append(reports[-1])
        else:
            lacking.append(group)
    if lacking:
        raise DataProblem(
            f"{len(lacking)} of {len(groups_of[experiment_id])} run groups of {experiment_id} have no report",
            ", ".join(lacking[:3]),
            "Make them with 'mlebench-console make-submission' and 'grade'.",
        )
    return tuple(sorted(found))


def read_outcomes(path: Path, about: About) -> Evidence:
    """Read a table with one line for each seed of each competition.

    It needs `competition_id`, `seed` and the medal columns of a report; `score`, `valid_submission`,
    `above_median`, `submission_exists` and `runtime_seconds` are taken where they are.

    Raises:
        DataProblem: it can't be read, lacks a column, or a line is not as it should be.
    """
    try:
        reader = csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines())
    except (OSError, UnicodeDecodeError) as error:
        raise DataProblem(f"{path} can't be read", str(error)) from error
    needed = ("competition_id", "seed", "gold_medal", "silver_medal", "bronze_medal")
    lacking = [name for name in needed if name not in (reader.fieldnames or ())]
    if lacking:
        raise DataProblem(f"{path} is no table of outcomes", f"it has no column {', '.join(lacking)}")
    lines: list[tuple[int, dict[str, Any]]] = []
    for number, row in enumerate(reader, start=2):
        try:
            lines.append((int(row["seed"]), _outcome(row)))
        except (ValueError, TypeError) as error:
            raise DataProblem(f"{path}, line {number}, is not as it should be", str(error)) from error
    lines.sort(key=lambda line: line[0])
    return _evidence([values for _, values in lines], about)


def _outcome(row: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {"competition_id": row["competition_id"]}
    for flag in _FLAGS:
        if row.get(flag):
            values[flag] = bool(int(float(row[flag])))
    # A table without the column tells of a submission only by its being valid.
    values.setdefault("submission_exists", values.get("valid_submission", False))
    values["score"] = float(row["score"]) if row.get("score") else None
    values["seconds"] = float(row["runtime_seconds"]) if row.get("runtime_seconds") else None
    return values


def _reports_in(path: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise DataProblem(f"{path} can't be read", str(error)) from error
    reports = document.get("competition_reports") if isinstance(document, dict) else None
    if not isinstance(reports, list) or not all(
        isinstance(report, dict) and isinstance(report.get("competition_id"), str) for report in reports
    ):
        raise DataProblem(
            f"{path} is no grading report", 'it has no list "competition_reports" as MLE-bench has it'
        )
    return sorted(reports, key=lambda report: str(report["competition_id"]))


def _evidence(reports: Sequence[Mapping[str, Any]], about: About) -> Evidence:
    known = set(registry.all_ids())
    seeds: Counter[str] = Counter()
    trials: list[Trial] = []
    editions: set[str] = set()
    newest = 0.0
    for report in reports:
        competition_id = str(report["competition_id"])
        if competition_id not in known:
            continue
        seeds[competition_id] += 1
        trials.append(_trial(report, competition_id, seeds[competition_id]))
        editions.add(str(report.get("edition") or "v1"))
        newest = max(newest, _moment(report.get("created_at")))
    unknown = sorted({str(report["competition_id"]) for report in reports} - known)
    conditions = [
        Conditions(
            edition=edition,
            agent=about.agent or about.name,
            hours="" if about.hours is None else limit_text(about.hours),
            hardware=about.hardware,
            network=about.network,
        )
        for edition in sorted(editions or {"v1"})
    ]
    return Evidence(
        table="imported",
        name=about.name,
        conditions=conditions[-1],
        trials=tuple(trials),
        created_at=newest,
        limit_hours=about.hours,
        conflict="; ".join(differences(conditions)),
        note=f"left out, not of this benchmark: {', '.join(unknown[:5])}" if unknown else "",
        llms=about.llms,
    )


def _trial(report: Mapping[str, Any], competition_id: str, seed: int) -> Trial:
    earned = {measure for flag, measure in _FLAGS.items() if report.get(flag)}
    if earned & _MEDALS or report.get("any_medal"):
        earned.add(Measure.ANY_MEDAL)
    valid = Measure.VALID in earned
    told = str(report.get("message") or "")
    return Trial(
        competition_id=competition_id,
        seed=seed,
        earned=frozenset(earned),
        score=_number(report.get("score")),
        seconds=_number(report.get("seconds")),
        text="" if valid else told or _why_not(earned),
        decided_at=_moment(report.get("created_at")) or None,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _why_not(earned: set[Measure]) -> str:
    return "invalid submission" if Measure.SUBMISSION in earned else "no submission"


def _moment(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


FOLDER = "imported"
_ABOUT = "about.json"
_REPORTS = "reports"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def import_reports(
    state_dir: Path, paths: Sequence[Path], about: About, *, replace: bool = False
) -> Evidence:
    """Copy grading reports (or one table of outcomes) so that they stand on the scoreboard under a name.

    Raises:
        UsageProblem: the name is no name, or taken.
        DataProblem: a report can't be read.
    """
    if not _NAME.fullmatch(about.name):
        raise UsageProblem(f"'{about.name}' can't be a name", "it may hold letters, digits, '.', '_' and '-'")
    home = state_dir / FOLDER / about.name
    if home.exists() and not replace:
        raise UsageProblem(
            f"there is already an import '{about.name}'", "", "Take another name, or --replace."
        )
    ordered = sorted(paths)
    evidence = _read(ordered, about)
    partial = home.with_name(f".{about.name}.{secrets.token_hex(4)}.partial")
    try:
        (partial / _REPORTS).mkdir(parents=True)
        for number, path in enumerate(ordered):
            # Numbered, because the order of the paths is the order of the seeds.
            shutil.copyfile(path, partial / _REPORTS / f"{number:04}-{path.name}")
        write_json(partial / _ABOUT, asdict(about))
        if replace:
            remove_import(state_dir, about.name, missing_ok=True)
        partial.rename(home)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DataProblem(f"{home} can't be made", error.strerror or str(error)) from error
    return evidence


def imported_evidence(state_dir: Path) -> tuple[Evidence, ...]:
    """Read every imported experiment, by name.

    Raises:
        DataProblem: one of them has been damaged.
    """
    folder = state_dir / FOLDER
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return tuple(read_import(state_dir, name) for name in names if not name.startswith("."))


def import_names(state_dir: Path) -> tuple[str, ...]:
    """The names of the imported experiments."""
    folder = state_dir / FOLDER
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return tuple(name for name in found if not name.startswith("."))


def read_import(state_dir: Path, name: str) -> Evidence:
    """Read one imported experiment.

    Raises:
        DataProblem: it has been damaged.
    """
    home = state_dir / FOLDER / name
    try:
        values = json.loads((home / _ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataProblem(
            f"the import '{name}' is damaged", str(error), f"Remove {home} and import it again."
        ) from error
    known = {field.name for field in fields(About)}
    about = About(**{key: value for key, value in values.items() if key in known})
    return _read(sorted((home / _REPORTS).iterdir()), about)


def remove_import(state_dir: Path, name: str, *, missing_ok: bool = False) -> None:
    """Take an imported experiment off the scoreboard.

    Raises:
        UsageProblem: there is none of that name.
    """
    if name not in import_names(state_dir):
        if missing_ok:
            return
        raise UsageProblem(f"there is no import '{name}'")
    home = state_dir / FOLDER / name
    # Out of sight first, so that a half-removed one is never read.
    gone = home.with_name(f".{name}.{secrets.token_hex(4)}.removed")
    home.rename(gone)
    shutil.rmtree(gone)


def _read(paths: Sequence[Path], about: About) -> Evidence:
    tables = [path for path in paths if path.suffix == ".csv"]
    if tables and len(paths) > 1:
        raise UsageProblem("a table of outcomes is imported alone")
    return read_outcomes(tables[0], about) if tables else read_reports(paths, about)


def find_source(
    sources: Sequence[Path | str], *, state_dir: Path | None = None, experiment_id: str | None = None
) -> Evidence:
    """Find evidence: grading reports, a table of outcomes, a runs folder, a bundle, or an experiment's name.

    Args:
        sources: one name, one table (`.csv`), one folder of run groups, or any number of reports (`.json`)
            and folders that hold one each.
        state_dir: where names are looked up.
        experiment_id: which experiment of a runs folder with its run_group_experiments.csv.

    Raises:
        Problem: nothing is meant by them, or it can't be read.
    """
    if not sources:
        raise UsageProblem("nothing was named", "", "Give an experiment, or grading reports.")
    paths = [Path(source) for source in sources]
    if len(paths) == 1 and not paths[0].exists():
        return _named(str(sources[0]), state_dir)
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise DataProblem(f"{missing[0]} was not found")
    if len(paths) == 1 and paths[0].suffix.lower() == ".csv":
        return read_outcomes(paths[0], About(paths[0].stem))
    name = About(experiment_id or (paths[0].stem if len(paths) == 1 else "reports"))
    return read_reports(report_files(paths, experiment_id), name)


def report_files(paths: Sequence[Path], experiment_id: str | None = None) -> tuple[Path, ...]:
    """The grading reports that paths lead to.

    Of a bundle, which is verified, or a folder of run groups with their mapping: an experiment's. Of another
    folder the newest report in it, or in each folder below it. Files as they are.

    Raises:
        UsageProblem: which experiment is meant is not clear.
        DataProblem: a folder holds none, or a bundle has been changed.
    """
    if len(paths) == 1 and (paths[0] / RUNS / MAPPING_NAME).is_file():
        verify_bundle(paths[0])
        return reports_of_experiment(paths[0] / RUNS, experiment_id)
    if len(paths) == 1 and (paths[0] / MAPPING_NAME).is_file():
        return reports_of_experiment(paths[0], experiment_id)
    return tuple(found for path in paths for found in _reports_at(path))


def _reports_at(path: Path) -> list[Path]:
    if not path.is_dir():
        # `runs/*/*.json` also names the groups' own metadata.
        return [path] if path.name != METADATA else []
    inside = sorted(path.glob(f"*{REPORT_SUFFIX}"))
    if inside:
        return [inside[-1]]
    groups = sorted({found.parent for found in path.glob(f"*/*{REPORT_SUFFIX}")})
    if not groups:
        raise DataProblem(f"{path} holds no grading report", f"no file in it ends in {REPORT_SUFFIX}")
    return [max(group.glob(f"*{REPORT_SUFFIX}")) for group in groups]


def _named(name: str, state_dir: Path | None) -> Evidence:
    if state_dir is None:
        raise DataProblem(f"{name} was not found")
    if name in import_names(state_dir):
        return read_import(state_dir, name)
    if not state_database.exists(state_dir):
        raise UsageProblem(f"there is no experiment, import or file '{name}'")
    database = state_database.open_for_reading(state_dir)
    try:
        return find_evidence(database, name)
    finally:
        database.close()


def renamed(evidence: Evidence, *, agent: str = "", llms: str = "", hours: float | None = None) -> Evidence:
    """Evidence with what a person adds to it; what is empty stays as it was."""
    conditions = replace(evidence.conditions, agent=agent or evidence.conditions.agent)
    return replace(
        evidence,
        conditions=conditions,
        llms=llms or evidence.llms,
        limit_hours=evidence.limit_hours if hours is None else hours,
    )


def imported_rows(
    state_dir: Path,
    *,
    pad_missing: bool = False,
    user_splits: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Row, ...]:
    """Make a row of every imported experiment, by name; see `own_rows`.

    Raises:
        DataProblem: an import has been damaged.
    """
    return tuple(
        row_of(evidence, pad_missing=pad_missing, user_splits=user_splits)
        for evidence in imported_evidence(state_dir)
    )
