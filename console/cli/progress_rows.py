"""Rows with bars that tell how far things are, drawn again in place in a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console import wording
from console.views.rates import Pace, Rates

if TYPE_CHECKING:
    from rich.live import Live

_BAR_CELLS = 16


@dataclass(frozen=True)
class Progress:
    """How far one step of one thing is.

    Attributes:
        total: how much there is; nothing if that is not known.
        unit: `bytes`, or what is counted.
    """

    name: str
    step: str
    done: int
    total: int | None
    unit: str = "bytes"
    note: str = ""


class ProgressRows:
    """A table at the bottom of the terminal; what is printed meanwhile stands above it."""

    def __init__(self) -> None:
        self._rates = Rates()
        self._live: Live | None = None

    def __enter__(self) -> ProgressRows:
        """Begin to draw."""
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        if self._live is not None:
            self._live.stop()

    def draw(self, rows: Sequence[Sequence[str]]) -> None:
        """Show these rows."""
        from rich.table import Table

        assert self._live is not None
        table = Table.grid(padding=(0, 2))
        for row in rows:
            table.add_row(*row)
        self._live.update(table)

    def row(self, progress: Progress) -> tuple[str, ...]:
        """What a step's row says, and how fast it goes since it was looked at last."""
        from console.sanitize import plain

        name = plain(progress.name, limit=44)
        pace = self._rates.see((name, progress.step), progress.done, progress.total, time.monotonic())
        note = plain(progress.note, limit=40)
        return (name, progress.step, _bar(progress), _amount(progress), _pace(progress, pace), note)


def _bar(progress: Progress) -> str:
    if not progress.total:
        return " " * _BAR_CELLS
    full = min(_BAR_CELLS, progress.done * _BAR_CELLS // progress.total)
    return "█" * full + "·" * (_BAR_CELLS - full)


def _amount(progress: Progress) -> str:
    if not progress.total:
        return ""
    if progress.unit == "bytes":
        return f"{wording.size(progress.done)} of {wording.size(progress.total)}"
    return f"{progress.done:,} of {progress.total:,}"


def _pace(progress: Progress, pace: Pace) -> str:
    if not pace.rate:
        return ""
    rate = f"{wording.size(int(pace.rate))}/s" if progress.unit == "bytes" else f"{pace.rate:,.0f}/s"
    return f"{rate}, {wording.duration(pace.eta)} left" if pace.eta is not None else rate
