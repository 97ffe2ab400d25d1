"""Showing how far datasets are: bars in a terminal, one line for each change without one, nothing for JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from console import wording
from console.cli.common import complain, say
from console.cli.preparing import Seen
from console.cli.progress_rows import Progress, ProgressRows
from state.records import DatasetState, DatasetStep, StepState

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
            return f"{name}: prepared" + (f", {wording.size(size)}" if size else "")
        if state is DatasetState.ABSENT:
            return f"{name}: stopped"
        if state in _NOT_TO_BE_HAD:
            return f"{name}: {self._trouble(one)}"
        if one.dataset.problem:
            return f"{name}: waiting: {self._trouble(one)}"
        step = _current(one)
        if step is None:
            return ""
        total = f", {wording.size(step.total)}" if step.unit == "bytes" and step.total else ""
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

    def __init__(self, rows: ProgressRows) -> None:
        self._lines = PlainLines()
        self._rows = rows
        self._ended: set[str] = set()

    def show(self, seen: Sequence[Seen]) -> None:
        """Draw how far all is now."""
        ended = [one for one in seen if one.dataset.state in _ENDED]
        self._lines.show([one for one in ended if one.dataset.competition_id not in self._ended])
        self._ended |= {one.dataset.competition_id for one in ended}
        going = [one for one in seen if one.dataset.state is DatasetState.WORKING]
        waiting = [one for one in seen if one.dataset.state is DatasetState.WAITING]
        held = [one for one in waiting if one.dataset.problem]
        counts = f"{len(self._ended)} of {len(seen)} done with, {len(waiting)} waiting"
        self._rows.draw([*map(self._row, [*going, *held][:_MOST_ROWS]), (counts,)])

    def _row(self, one: Seen) -> tuple[str, ...]:
        from console.sanitize import plain

        name = plain(one.dataset.competition_id, limit=44)
        if one.dataset.state is DatasetState.WAITING:
            return (name, "waiting", plain(one.dataset.problem, limit=60))
        step = _current(one)
        if step is None:
            return (name, "starting")
        told = Progress(one.dataset.competition_id, step.name, step.done, step.total, step.unit, step.note)
        return self._rows.row(told)


def _current(one: Seen) -> DatasetStep | None:
    return next((step for step in one.steps if step.state is StepState.WORKING), None)
