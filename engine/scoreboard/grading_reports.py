"""Evidence from MLE-bench's grading reports, and from tables of outcomes; it selects and reads, and counts nothing."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from competitions import registry
from engine.grading.batch import REPORT_SUFFIX
from engine.rungroups import MAPPING_NAME, read_mapping
from engine.scoreboard.evidence import Conditions, Evidence, Trial, differences, limit_text
from engine.scoreboard.model import Measure
from foundation.problems import DataProblem, UsageProblem

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
