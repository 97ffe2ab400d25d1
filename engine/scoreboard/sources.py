"""What a person means by a word where evidence is asked for: an experiment's name, or a path to reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from engine.grading.batch import REPORT_SUFFIX
from engine.rungroups import MAPPING_NAME
from engine.rungroups.groups import METADATA
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
    if len(paths) == 1 and (paths[0] / RUNS / MAPPING_NAME).is_file():
        verify_bundle(paths[0])
        paths = [paths[0] / RUNS]
    if len(paths) == 1 and (paths[0] / MAPPING_NAME).is_file():
        found = reports_of_experiment(paths[0], experiment_id)
        return read_reports(found, About(experiment_id or paths[0].name))
    reports = report_files(paths)
    return read_reports(reports, About(paths[0].stem if len(paths) == 1 else "reports"))


def report_files(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The grading reports that paths lead to: files as they are, of a folder the newest one in it.

    Raises:
        DataProblem: a folder holds none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            # `runs/*/*.json` also names the groups' own metadata.
            found += [path] if path.name != METADATA else []
            continue
        inside = sorted(path.glob(f"*{REPORT_SUFFIX}"))
        below = sorted({group.parent for group in path.glob(f"*/*{REPORT_SUFFIX}")})
        if inside:
            found.append(inside[-1])
        elif below:
            found += [sorted(group.glob(f"*{REPORT_SUFFIX}"))[-1] for group in below]
        else:
            raise DataProblem(f"{path} holds no grading report", f"no file in it ends in {REPORT_SUFFIX}")
    return tuple(found)


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
