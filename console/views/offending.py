"""The rows of a submission that a refusal is about, as they stand in the file."""

from __future__ import annotations

import csv
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

_NAMED = re.compile(r"^Row (\d{1,9})\b")
_BESIDE = 1
# What is further down is not looked for: reading on would take longer than grading did.
_MOST_ROWS = 5_000_000
_LONGEST = 4_000


@dataclass(frozen=True)
class Row:
    """One line of the file; 0 is its heading."""

    number: int
    text: str
    is_wrong: bool


def rows_behind(path: Path, message: str) -> tuple[Row, ...]:
    """The heading, the row that a message names and those beside it; nothing where it names none.

    Waits for the disk. Rows are counted as graders count them: records of the table, so a cell may hold line ends.
    """
    named = _NAMED.match(message)
    wanted = int(named[1]) if named else 0
    if not 0 < wanted <= _MOST_ROWS:
        return ()
    found: list[Row] = []
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            for number, cells in enumerate(itertools.islice(csv.reader(stream), wanted + _BESIDE + 1)):
                if number == 0 or abs(number - wanted) <= _BESIDE:
                    text = ",".join(cells)[:_LONGEST]
                    found.append(Row(number, text, number == wanted))
    except (OSError, csv.Error):
        # The verdict stands without them.
        return tuple(found)
    return tuple(found)
