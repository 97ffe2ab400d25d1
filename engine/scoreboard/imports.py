"""Experiments imported from MLE-bench's reports, kept beside the state as copies of those reports."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from engine.scoreboard.evidence import Evidence
from engine.scoreboard.grading_reports import About, read_outcomes, read_reports
from foundation.files import write_json
from foundation.problems import DataProblem, UsageProblem

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
