"""What a person means by a word where evidence is asked for: an experiment's name, or a path to reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.grading.batch import REPORT_SUFFIX
from engine.rungroups import MAPPING_NAME, METADATA
from engine.scoreboard.bundle import RUNS, verify_bundle
from engine.scoreboard.evidence import Evidence
from engine.scoreboard.experiments import find_evidence
from engine.scoreboard.grading_reports import About, read_outcomes, read_reports, reports_of_experiment
from engine.scoreboard.imports import import_names, read_import
from foundation.problems import DataProblem, UsageProblem
from state import database as state_database


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
