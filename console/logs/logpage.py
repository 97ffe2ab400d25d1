"""What a reader of a log is shown at one moment, and where in the log that is."""

from __future__ import annotations

from dataclasses import dataclass

from console.logs.logfile import Label, LogLine


@dataclass(frozen=True)
class Page:
    """What is to be shown, and where in the log that is.

    Attributes:
        following: the page stays at the end while the log grows.
        behind: lines that were added below since following stopped.
        share: how far down the page's end is, between 0 and 1.
        hit: where the line begins that a search found.
        hits: how often the pattern occurs, as far as it is counted.
        hit_number: which of them the hit is.
        counting: there is more to count.
        filtered: only lines with the pattern are shown.
        mark: where a selection begins.
        numbers: each line's number, where it is wanted and known.
        moments: when each line was printed, where it is wanted and known.
        labels: whose each line is, where the log is made of several.
        note: what came of the last command, for people.
    """

    lines: tuple[LogLine, ...] = ()
    following: bool = True
    behind: int = 0
    share: float = 1.0
    size: int = 0
    exists: bool = False
    hit: int | None = None
    hits: int | None = None
    hit_number: int | None = None
    counting: bool = False
    filtered: bool = False
    mark: int | None = None
    numbers: tuple[int | None, ...] = ()
    moments: tuple[float | None, ...] = ()
    labels: tuple[Label | None, ...] = ()
    note: str = ""
