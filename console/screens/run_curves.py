"""A run's curves: its score against the medals' cut-offs, and what it has used of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

from competitions.model import Thresholds
from console import wording
from console.screens.chart import Curve, Mark, chart
from console.screens.ruler import medal_role
from console.tui.painting import Line, Pieces
from console.tui.theme import Signs
from console.views.run import Point, RunFacts, Usage
from state.records import Submission


def score_chart(facts: RunFacts, width: int, height: int, now: float, signs: Signs) -> list[Line]:
    """The score of every graded snapshot over the run's time, the better end on top."""
    scored = [each for each in facts.submissions if each.score is not None and math.isfinite(each.score)]
    if facts.competition is None or not scored:
        return []
    cuts = facts.competition.thresholds
    end = _end_of(facts, now)
    curve = Curve(
        points=_held(scored, end),
        span=(0.0, max(end, 1.0)),
        role=medal_role(cuts, scored[-1].score),
        number=lambda value: wording.score(value, 9),
        marks=_cut_offs(cuts),
        steps=True,
        upside_down=cuts.is_lower_better,
    )
    drawn = chart(curve, width, height, signs, ascii_only=signs.bar_parts == " ")
    return [Line(pieces) for pieces in drawn]


def _held(scored: Sequence[Submission], end: float) -> list[Point]:
    """The scores in order; the last one holds until the end."""
    points = [(each.elapsed_seconds, each.score) for each in scored if each.score is not None]
    return [*points, (max(end, points[-1][0]), points[-1][1])]


def _cut_offs(cuts: Thresholds) -> tuple[Mark, ...]:
    return (
        Mark(cuts.median, "median", "dim"),
        Mark(cuts.bronze, "bronze", "bronze"),
        Mark(cuts.silver, "silver", "silver"),
        Mark(cuts.gold, "gold", "gold"),
    )


def _end_of(facts: RunFacts, now: float) -> float:
    attempt = facts.attempt
    if attempt is None or attempt.started_at is None:
        return 0.0
    return (attempt.ended_at or now) - attempt.started_at


def resources(
    facts: RunFacts, usage: Usage | None, width: int, height: int, now: float, signs: Signs
) -> list[Line]:
    """What the latest attempt has used over its whole time, one chart for each kind that was measured."""
    if usage is None:
        return [Line((("  reading the samples", "dim"),))]
    if usage.latest is None:
        return [Line((("  nothing has been measured yet", "dim"),))]
    spec = facts.sweep.spec
    memory = f" of {wording.size(spec.memory_bytes)}" if spec.memory_bytes else ""
    kinds = [
        ("processors", usage.cpu_percent, _cpus, f" of {spec.cpus:g} planned"),
        ("memory", usage.memory_bytes, wording.size, memory),
        ("disk", usage.disk_bytes, wording.size, ""),
        ("GPU busy", usage.gpu_percent, lambda value: f"{value:.0f} %", ""),
        ("GPU memory", usage.gpu_memory_bytes, wording.size, ""),
        ("network", usage.network_rate, lambda value: f"{wording.size(value)}/s", ""),
        ("processes", usage.processes, lambda value: f"{value:.0f}", ""),
    ]
    measured = [kind for kind in kinds if kind[1]]
    each = max(3, (height - 1) // len(measured) - 3) if measured else 0
    lines: list[Line] = []
    start = facts.attempt.started_at if facts.attempt is not None else None
    for name, points, number, limit in measured:
        begin = points[0][0] if start is None else min(start, points[0][0])
        peak = max(value for _at, value in points)
        title: Pieces = (
            (f"  {name:<12}", "strong"),
            (
                f"now {number(points[-1][1])}" if facts.run.is_live else f"last {number(points[-1][1])}",
                "text",
            ),
            (f"{limit}, at most {number(peak)}", "dim"),
        )
        curve = Curve(
            points=[(at - begin, value) for at, value in points],
            span=(0.0, max(_end_of(facts, now), points[-1][0] - begin, 1.0)),
            role="running" if facts.run.is_live else "dim",
            number=number,
            floor=0.0,
        )
        drawn = chart(curve, width, min(each, 8), signs, ascii_only=signs.bar_parts == " ")
        lines += [Line(title, key=name, selectable=True), *(Line(pieces) for pieces in drawn), Line()]
    if not spec.gpus:
        lines.append(Line((("  GPUs: none were asked for", "dim"),)))
    return lines


def _cpus(percent: float) -> str:
    return f"{percent / 100:.2f}"
