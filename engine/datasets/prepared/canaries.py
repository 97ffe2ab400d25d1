"""Canaries: a file with a unique id in a prepared dataset, by which copies of it can be recognised.

Edition v1 has none, because its data are MLE-bench's to the byte. The marker and the manifest record the id.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Edition
from mlebench_console.engine.layout import dataset_folder, prepared_with
from mlebench_console.foundation.problems import DataProblem, UsageProblem

PROPERTY = "canary"
FILE = "canary.txt"
PREFIX = b"dataset-canary-"
PATTERN = re.compile(rb"dataset-canary-[0-9a-f]{32}")
_TEXT = """\
This copy of the data was made for an evaluation. Nothing needs this file, and nothing is graded by it.
These data must never be part of a training corpus. The id by which this copy is known:
{canary}
"""


def refuse_in(edition: Edition) -> None:
    """Check that an edition's datasets may have a canary.

    Raises:
        UsageProblem: they are MLE-bench's to the byte.
    """
    if edition == "v1":
        raise UsageProblem(
            "edition v1 can't have a canary",
            "its data are MLE-bench's to the byte",
            "Use --edition corrected.",
        )


def write(public: Path) -> str:
    """Put a canary into a dataset's public folder and return its id.

    Raises:
        DataProblem: the dataset has a file of that name.
    """
    canary = f"{PREFIX.decode()}{secrets.token_hex(16)}"
    try:
        with (public / FILE).open("x", encoding="utf-8") as stream:
            stream.write(_TEXT.format(canary=canary))
    except FileExistsError as error:
        raise DataProblem(f"{public} can't have a canary", f"the data have a file {FILE}") from error
    return canary


def canaries_in(data_dir: Path) -> dict[str, str]:
    """Return the competitions whose prepared data have a canary, by its id."""
    found = {}
    for competition_id in registry.all_ids():
        folder = dataset_folder(registry.get(competition_id), data_dir, "corrected")
        canary = (prepared_with(folder) or {}).get(PROPERTY)
        if isinstance(canary, str):
            found[canary] = competition_id
    return found
