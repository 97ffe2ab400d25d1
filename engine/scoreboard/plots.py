"""Plots as data: what is drawn against what. The console, the page and picture files draw the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.scoreboard.breakdown import by_category, by_split
from engine.scoreboard.evidence import Evidence
from engine.scoreboard.insight import ENDINGS, Curve, endings_by_split, pass_at_k, stability_of, what_if
from engine.scoreboard.model import Measure

# One point is no line.
_FEWEST = {"line": 2, "bars": 1, "stacked": 1}


@dataclass(frozen=True)
class Series:
    """Points of one kind; `errors` is empty, or one standard error for each point."""

    name: str
    points: tuple[tuple[float, float], ...]
    errors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        key: a short name, as files are called by it.
        kind: `line`; `bars`, whose x counts the `ticks`; or `stacked` bars, series upon series.
        ticks: the names of bars.
    """

    key: str
    title: str
    kind: Literal["line", "bars", "stacked"]
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    ticks: tuple[str, ...] = ()


def plots_of(
    evidence: Evidence, *, curves: Sequence[Curve] = (), pad_missing: bool = False
) -> tuple[Plot, ...]:
    """Make every plot that there are numbers for.

    Args:
        evidence: whose.
        curves: the graded submissions of its trials, for the plot over time.
        pad_missing: as in the row beside it.
    """
    made = (
        _by_split(evidence, pad_missing=pad_missing),
        _by_category(evidence, pad_missing=pad_missing),
        _over_time(evidence, curves),
        _passing(evidence),
        _endings(evidence),
        _detectable(evidence),
    )
    return tuple(
        plot for plot in made if any(len(series.points) >= _FEWEST[plot.kind] for series in plot.series)
    )


def _by_split(evidence: Evidence, *, pad_missing: bool) -> Plot:
    groups = [group for group in by_split(evidence, pad_missing=pad_missing) if group.measures]
    series = []
    for measure, name in (
        (Measure.ANY_MEDAL, "any medal"),
        (Measure.GOLD, "gold"),
        (Measure.ABOVE_MEDIAN, "above median"),
    ):
        cells = [group.measures[measure] for group in groups]
        points = tuple((float(place), cell.mean) for place, cell in enumerate(cells))
        series.append(Series(name, points, tuple(cell.sem for cell in cells)))
    ticks = tuple(group.name for group in groups)
    return Plot("splits", "By split", "bars", "split", "% of competitions", tuple(series), ticks)


def _by_category(evidence: Evidence, *, pad_missing: bool) -> Plot:
    groups = [group for group in by_category(evidence, pad_missing=pad_missing) if group.measures]
    cells = [group.measures[Measure.ANY_MEDAL] for group in groups]
    points = tuple((float(place), cell.mean) for place, cell in enumerate(cells))
    series = Series("any medal", points, tuple(cell.sem for cell in cells))
    ticks = tuple(f"{group.name} ({len(group.competitions)})" for group in groups)
    return Plot("categories", "By category", "bars", "category", "% any medal", (series,), ticks)


def _over_time(evidence: Evidence, curves: Sequence[Curve]) -> Plot:
    points = what_if(curves, evidence.limit_hours)
    series = Series(
        "any medal",
        tuple((point.hours, point.cell.mean) for point in points),
        tuple(point.cell.sem for point in points),
    )
    return Plot("time", "Had the limit been shorter", "line", "limit, hours", "% any medal", (series,))


def _passing(evidence: Evidence) -> Plot:
    series = []
    for measure, name in ((Measure.ANY_MEDAL, "any medal"), (Measure.GOLD, "gold")):
        found = pass_at_k(evidence, measure=measure)
        # A k that only some competitions have seeds for would be a curve over others.
        even = [one for one in found if one.competitions == found[0].competitions]
        series.append(Series(name, tuple((float(one.k), one.percent) for one in even)))
    return Plot("pass", "At least one of k seeds", "line", "k", "% of competitions", tuple(series))


def _endings(evidence: Evidence) -> Plot:
    splits = endings_by_split(evidence)
    series = [
        Series(
            ending,
            tuple((float(place), float(split.counts.get(ending, 0))) for place, split in enumerate(splits)),
        )
        for ending in ENDINGS
        if any(ending in split.counts for split in splits)
    ]
    ticks = tuple(split.split for split in splits)
    return Plot("endings", "How runs ended", "stacked", "split", "runs", tuple(series), ticks)


def _detectable(evidence: Evidence) -> Plot:
    found = stability_of(evidence)
    points = () if found is None else tuple((float(one.seeds), one.points) for one in found.detectable)
    return Plot(
        "detectable",
        "What difference could be seen",
        "line",
        "seeds of each agent",
        "points of any medal",
        (Series("at 5 % significance, 80 % power", points),),
    )
