"""The resources that a run uses, over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from mlebench_console.console import wording
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import Line
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.screens.run.pane import Pane, PaneView
from mlebench_console.console.tui.widgets.blocks import Block
from mlebench_console.console.tui.widgets.chart import strip_chart
from mlebench_console.console.views.run import Point, Resource, RunFacts, UsageCurves, read_usage


@dataclass(frozen=True)
class Course:
    """The usage of a resource over time, and the amount that the run may or should use.

    Attributes:
        of: the amount in words; empty without one.
        full: the amount as a number, up to which its chart reaches at least.
    """

    resource: Resource
    points: Sequence[Point]
    of: str
    full: float

    def number(self, value: float) -> str:
        """Write a value."""
        return _NUMBERS[self.resource](value)

    @property
    def peak(self) -> float:
        """The greatest value."""
        return max(value for _at, value in self.points)

    def title(self, is_live: bool) -> Pieces:
        """Return the resource's name, last value and maximum."""
        return (
            (f"  {self.resource:<12}", "strong"),
            (f"{'now' if is_live else 'last'} {self.number(self.points[-1][1])}", "text"),
            (f"{self.of}, peak {self.number(self.peak)}", "dim"),
        )


_NUMBERS: dict[Resource, Callable[[float], str]] = {
    Resource.GPU: lambda value: f"{value:.0f} %",
    Resource.GPU_MEMORY: wording.size,
    Resource.CPU: lambda value: f"{value / 100:.2f}",
    Resource.MEMORY: wording.size,
    Resource.DISK: wording.size,
    Resource.NETWORK: lambda value: f"{wording.size(value)}/s",
    Resource.PROCESSES: lambda value: f"{value:.0f}",
}


def measured(facts: RunFacts, usage: UsageCurves) -> list[Course]:
    """Return the measured resources of the latest attempt, the scarcest first."""
    resources = facts.sweep.conditions.resources
    hardware = None if facts.attempt is None else facts.attempt.hardware
    of_gpus = (hardware.gpu_memory_bytes if hardware is not None else None) or 0
    memory = resources.memory_bytes or 0
    amounts = {
        Resource.GPU: ("", 100.0),
        Resource.GPU_MEMORY: (f" of {wording.size(of_gpus)}" if of_gpus else "", of_gpus),
        Resource.CPU: (f" of {resources.cpus:g} planned", 100.0 * resources.cpus),
        Resource.MEMORY: (f" of {wording.size(memory)}" if memory else "", memory),
    }
    return [Course(each, points, *amounts.get(each, ("", 0.0))) for each, points in usage.items()]


_FEWEST_CHART_ROWS, _MOST_CHART_ROWS = 2, 8


# The width of the scales of resources.
_SCALE = 11


# The distances of the marks on their time axis, in seconds.
_TICKS = (60, 300, 600, 900, 1800, 3600, 7200, 4 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)


def _resources(facts: RunFacts, usage: UsageCurves | None, height: int, drawing: Drawing) -> list[Line]:
    """Draw the resource usage of the latest attempt: charts above one another, below one time axis for all.

    Above the charts are the submissions, so that one sees what the agent did when it used most.
    """
    if usage is None:
        return [Line((("  reading samples", "dim"),))]
    if not usage:
        return [Line((("  nothing has been measured yet", "dim"),))]
    kinds = measured(facts, usage)
    begin = min(kind.points[0][0] for kind in kinds) if kinds else 0.0
    if facts.attempt is not None and facts.attempt.started_at is not None:
        begin = min(begin, facts.attempt.started_at)
    length = max(facts.took_seconds(drawing.now), *(kind.points[-1][0] - begin for kind in kinds), 1.0)
    # Not drawn before the list has its width, or in a terminal that has none left for charts, but never without room.
    room = max(1, drawing.width - _SCALE - 4)
    lines = [*_submitted(facts, length, room, drawing), Line(_hours(facts, length, room))]
    # Below the line with its figures.
    rows_each = (height - len(lines)) // max(1, len(kinds)) - 1
    rows_each = max(_FEWEST_CHART_ROWS, min(_MOST_CHART_ROWS, rows_each))
    role: Role = "running" if facts.run.is_live else "dim"
    if facts.sweep.conditions.resources.gpus and Resource.GPU not in usage:
        lines.append(Line((("  GPU         not measured", "warn"),)))
    for kind in kinds:
        lines.append(Line(kind.title(facts.run.is_live), key=kind.resource, selectable=True))
        points = [(at - begin, value) for at, value in kind.points]
        most = max(kind.full, kind.peak)
        drawn = strip_chart(points, (0.0, length), most, rows_each, drawing.within(room))
        scale = [kind.number(most), *[""] * (rows_each - 2), "0"]
        for label, row in zip(scale, drawn, strict=True):
            lines.append(Line(((f"{label:>{_SCALE}} ", "dim"), (drawing.signs.axis, "faint"), (row, role))))
    if not facts.sweep.conditions.resources.gpus:
        lines.append(Line((("  no GPUs were requested", "dim"),)))
    # The cursor can go below the last chart, so that it can be scrolled to.
    return [*lines, Line(key="end", selectable=True)] if len(lines) > height else lines


def _submitted(facts: RunFacts, length: float, room: int, drawing: Drawing) -> list[Line]:
    """Mark the attempt's graded submissions over time by the signs of what they would get."""
    cells: list[Piece] = [(" ", "text")] * room
    for each in facts.submissions:
        if each.standing is not None and each.elapsed_seconds <= length:
            place = min(room - 1, int(each.elapsed_seconds / length * room))
            cells[place] = (outcome_sign(each.standing, drawing.signs), outcome_role(each.standing))
    if not facts.submissions:
        return []
    return [Line((("  submissions", "dim"), *cells))]


def _hours(facts: RunFacts, length: float, room: int) -> Pieces:
    """Return the time axis of the charts: round times into the run, and its end."""
    end = wording.span(length) + (" now" if facts.run.is_live else "")
    most = max(1, room // 12)
    step = next(
        (each for each in _TICKS if length / each <= most), _TICKS[-1] * math.ceil(length / _TICKS[-1] / most)
    )
    cells = [*"0".ljust(max(1, room - len(end))), *end][:room]
    for number in range(1, int(length / step) + 1):
        text = wording.duration(number * step)
        place = round(room * number * step / length) - len(text) // 2
        if place + len(text) < room - len(end):
            cells[place : place + len(text)] = text
    return ((" " * (_SCALE + 2), "text"), ("".join(cells), "dim"))


class ResourcesPane(Pane):
    """Charts of what the latest attempt uses."""

    name = "resources"
    is_growing = True
    has_log_below = False

    def read(self, facts: RunFacts) -> UsageCurves:
        """Read the samples of the latest attempt."""
        return read_usage(facts)

    def content(self, view: PaneView) -> Iterable[Block]:
        """Return the charts."""
        return (partial(_resources, view.facts, self.data, view.height),)
