"""Changing measured facts of a competition in its competition.toml: checksums and medal cut-offs, nothing else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from competitions import registry
from competitions.model import Competition
from engine.datasets import sums
from engine.layout import dataset_folder
from foundation.files import write_text
from foundation.problems import DataProblem, EnvironmentProblem

_HEADING = re.compile(r"^\[{1,2}([^\[\]]+)\]{1,2}\s*$", re.MULTILINE)


def take_checksums(competition_id: str, data_dir: Path | str) -> None:
    """Take the sums of a prepared dataset, edition v1, for the known ones.

    Raises:
        EnvironmentProblem: the facts can't be written.
    """
    competition = registry.get(competition_id)
    folder = dataset_folder(competition, data_dir)
    found = sums.checksums_of(folder.prepared)
    table: dict[str, Any] = {"public": dict(found.public), "private": dict(found.private)}
    zips = folder.zips()
    md5 = sums.zip_md5(zips[0]) if zips else competition.checksums.zip
    replace_table(competition, "checksums", ({"zip": md5} if md5 else {}) | table)


def replace_table(competition: Competition, name: str, values: dict[str, Any]) -> None:
    """Replace one table of a competition's facts; all other lines stay as they are.

    Raises:
        DataProblem: the file is not laid out so that this can be done.
        EnvironmentProblem: it can't be written.
    """
    import tomli_w

    path = competition.folder / "competition.toml"
    before = path.read_text(encoding="utf-8")
    after = _replaced(before, name, tomli_w.dumps({name: values}))
    expected = tomllib.loads(before) | {name: values}
    if tomllib.loads(after) != expected:
        raise DataProblem(f"{path} was left as it was", f"its table [{name}] can't be told from the rest")
    try:
        write_text(path, after)
    except OSError as error:
        raise EnvironmentProblem(
            f"{path} can't be written", error.strerror or str(error), "Use a checkout of your own."
        ) from error


def _replaced(text: str, name: str, table: str) -> str:
    """Put a table in the place of the old one with all its sub-tables."""
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    kept = text[: headings[0].start()] if headings else text
    placed = False
    for heading, end in zip(headings, ends, strict=True):
        if heading[1].split(".")[0].strip() == name:
            kept += "" if placed else table.rstrip() + "\n\n"
            placed = True
        else:
            kept += text[heading.start() : end]
    if not placed:
        kept = kept.rstrip() + "\n\n" + table
    return kept.rstrip() + "\n"
