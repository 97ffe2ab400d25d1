"""Showing how far datasets are: bars in a terminal, one line for each change without one, nothing for JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from console.cli.output import bytes_text, complain, duration_text, say
from console.cli.preparing import Seen
from console.model.rates import Pace, Rates
from state.records import DatasetState, DatasetStep, StepState

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_BAR_CELLS = 16
_MOST_ROWS = 12
_NOT_TO_BE_HAD = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
_ENDED = (DatasetState.PREPARED, DatasetState.ABSENT, *_NOT_TO_BE_HAD)


class Silent:
    """For those who read the result as JSON."""

    def show(self, seen: Sequence[Seen]) -> None:
        """Say nothing."""


class PlainLines:
    """A line whenever a dataset gets to another step, waits for something, or is done with."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._first_with: dict[str, str] = {}

    def show(self, seen: Sequence[Seen]) -> None:
        """Say what is new."""
        for one in seen:
            told = self._line(one)
            if told and self._told.get(one.dataset.competition_id) != told:
                self._told[one.dataset.competition_id] = told
                (complain if one.dataset.state in _NOT_TO_BE_HAD else say)(told)
        sys.stdout.flush()

    def _line(self, one: Seen) -> str:
        name, state = one.dataset.competition_id, one.dataset.state
        if state is DatasetState.PREPARED:
            size = one.dataset.bytes_on_disk
            return f"{name}: prepared" + (f", {bytes_text(size)}" if size else "")
        if state is DatasetState.ABSENT:
            return f"{name}: stopped"
        if state in _NOT_TO_BE_HAD:
            return f"{name}: {self._trouble(one)}"
        if one.dataset.problem:
            return f"{name}: waiting: {self._trouble(one)}"
        step = _current(one)
        if step is None:
            return ""
        total = f", {bytes_text(step.total)}" if step.unit == "bytes" and step.total else ""
        waiting = f": {step.note}" if step.note.startswith("waiting") else ""
        return f"{name}: {step.name}{total}{waiting}"

    def _trouble(self, one: Seen) -> str:
        """What is wrong; what is wrong with many, such as credentials, is told in full once."""
        name = one.dataset.competition_id
        trouble = one.dataset.problem.removeprefix(f"{name}: ")
        first = self._first_with.setdefault(trouble, name)
        return trouble if first == name else f"the same as with {first}"


class Bars:
    """A live table of what is going on, with what is done with as lines above it."""

    def __init__(self) -> None:
        self._lines = PlainLines()
        self._rates = Rates()
        self._live: Live | None = None
        self._ended: set[str] = set()

    def __enter__(self) -> Bars:
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

    def show(self, seen: Sequence[Seen]) -> None:
        """Draw how far all is now."""
        assert self._live is not None
        ended = [one for one in seen if one.dataset.state in _ENDED]
        self._lines.show([one for one in ended if one.dataset.competition_id not in self._ended])
        self._ended |= {one.dataset.competition_id for one in ended}
        self._live.update(self._table(seen))

    def _table(self, seen: Sequence[Seen]) -> Table:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        going = [one for one in seen if one.dataset.state is DatasetState.WORKING]
        waiting = [one for one in seen if one.dataset.state is DatasetState.WAITING]
        held = [one for one in waiting if one.dataset.problem]
        for one in [*going, *held][:_MOST_ROWS]:
            table.add_row(*self._row(one))
        counts = f"{len(self._ended)} of {len(seen)} done with, {len(waiting)} waiting"
        table.add_row(counts)
        return table

    def _row(self, one: Seen) -> tuple[str, ...]:
        from console.sanitize import plain

        name = plain(one.dataset.competition_id, limit=44)
        if one.dataset.state is DatasetState.WAITING:
            return (name, "waiting", plain(one.dataset.problem, limit=60))
        step = _current(one)
        if step is None:
            return (name, "starting")
        pace = self._rates.see((name, step.name), step.done, step.total, time.monotonic())
        return (name, step.name, _bar(step), _amount(step), _pace(step, pace), plain(step.note, limit=40))


def _current(one: Seen) -> DatasetStep | None:
    return next((step for step in one.steps if step.state is StepState.WORKING), None)


def _bar(step: DatasetStep) -> str:
    if not step.total:
        return " " * _BAR_CELLS
    full = min(_BAR_CELLS, step.done * _BAR_CELLS // step.total)
    return "█" * full + "·" * (_BAR_CELLS - full)


def _amount(step: DatasetStep) -> str:
    if not step.total:
        return ""
    if step.unit == "bytes":
        return f"{bytes_text(step.done)} of {bytes_text(step.total)}"
    return f"{step.done:,} of {step.total:,}"


def _pace(step: DatasetStep, pace: Pace) -> str:
    if not pace.rate:
        return ""
    rate = f"{bytes_text(int(pace.rate))}/s" if step.unit == "bytes" else f"{pace.rate:,.0f}/s"
    return f"{rate}, {duration_text(pace.eta)} left" if pace.eta is not None else rate
