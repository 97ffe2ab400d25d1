"""run_group_experiments.csv: which run groups make an experiment, that is a row of the leaderboard."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from foundation.files import write_text
from foundation.problems import DataProblem

MAPPING_NAME = "run_group_experiments.csv"
_HEADER = ("experiment_id", "run_group")


def read_mapping(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the run groups of each experiment, in the order of the file.

    Raises:
        DataProblem: it can't be read, or lacks a column.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataProblem(f"{path} can't be read", str(error)) from error
    reader = csv.DictReader(lines)
    lacking = [name for name in _HEADER if name not in (reader.fieldnames or ())]
    if lacking:
        raise DataProblem(f"{path} is no list of experiments", f"it has no column {', '.join(lacking)}")
    found: dict[str, list[str]] = {}
    for row in reader:
        if row["experiment_id"] and row["run_group"]:
            found.setdefault(row["experiment_id"].strip(), []).append(row["run_group"].strip())
    return {experiment: tuple(dict.fromkeys(groups)) for experiment, groups in found.items()}


def write_mapping(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write pairs of an experiment and one of its run groups."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(pairs)
    write_text(path, stream.getvalue())
