"""The plots of an experiment: data for the console to draw, and SVG, PNG and PDF pictures."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from mlebench_console.competitions import registry
from mlebench_console.engine.model_costs import CURRENCY
from mlebench_console.engine.scoreboard.aggregation import by_category, costs_of
from mlebench_console.engine.scoreboard.insight import (
    ENDINGS,
    costs_by_competition,
    ending_of,
    endings_by_split,
    pass_at_k,
    shorter_limits,
    stability_of,
)
from mlebench_console.engine.scoreboard.model import COLUMNS, Cell, Evidence, Measure, Row, Standing, Trial
from mlebench_console.engine.scoreboard.timeline import Bar, MarkKind, Timeline, time_ticks
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.foundation.text import date_and_time, visible
from mlebench_console.state.lifecycle import Outcome, RunState

# The kinds of plots without bars.
_XY_KINDS = ("line", "points")
# The fewest points of a series for which a plot is drawn: a line needs two.
_FEWEST = {"line": 2, "bars": 1, "stacked": 1, "points": 1}


# The cap of the plotted score: one far beyond the cut-off of gold would squeeze all others together.
_FURTHEST = 150.0


@dataclass(frozen=True)
class PlotSeries:
    """A named series of points; `errors` is empty, or has one standard error for each point."""

    name: str
    points: tuple[tuple[float, float], ...]
    errors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Plot:
    """One plot.

    Attributes:
        key: a short name, used for file names.
        kind: `line`; `points`, not joined by a line; `bars`, whose x is the number of a tick; or `stacked` bars.
        ticks: the names of bars.
        is_percent: whether y are percentages or points of them, so that 100 is all.
    """

    key: str
    title: str
    kind: Literal["line", "points", "bars", "stacked"]
    x_label: str
    y_label: str
    series: tuple[PlotSeries, ...]
    ticks: tuple[str, ...] = ()
    is_percent: bool = False


def plots_of(evidence: Evidence, row: Row) -> tuple[Plot, ...]:
    """Return every plot of an experiment that has enough numbers."""
    medal, gold, above = Measure.ANY_MEDAL, Measure.GOLD, Measure.ABOVE_MEDIAN
    categories = by_category(evidence, pad_missing=row.padded)
    named = {f"{name} ({standing.covered})": standing for name, standing in categories.items()}
    made = (
        _bars("splits", "By split", "split", "% of competitions", (medal, gold, above), row.columns),
        _bars("categories", "By category", "category", "% any medal", (medal,), named),
        _over_time(evidence),
        _pass_at_k(evidence),
        _endings(evidence),
        _detectable(evidence),
        _score_by_cost(evidence),
        _medals_by_dollars(evidence),
        _tokens(evidence),
    )
    return tuple(
        plot for plot in made if any(len(series.points) >= _FEWEST[plot.kind] for series in plot.series)
    )


def _bars(
    key: str, title: str, x: str, y: str, measures: Sequence[Measure], standings: Mapping[str, Standing]
) -> Plot:
    """Return a plot of the standings that have measures, one bar for each measure, side by side."""
    known = {name: standing.measures for name, standing in standings.items() if standing.measures}
    series = []
    for measure in measures:
        cells = [found[measure] for found in known.values()]
        points = tuple((float(place), cell.mean) for place, cell in enumerate(cells))
        series.append(PlotSeries(measure.words, points, _errors(cells)))
    return Plot(key, title, "bars", x, y, tuple(series), tuple(known), is_percent=True)


def _errors(cells: Sequence[Cell]) -> tuple[float, ...]:
    """Return the standard errors of percentages; empty where a percentage is of one seed, which has none."""
    return tuple(cell.sem for cell in cells) if all(cell.has_error for cell in cells) else ()


def _over_time(evidence: Evidence) -> Plot:
    points = shorter_limits(evidence)
    series = PlotSeries(
        "any medal",
        tuple((point.hours, point.cell.mean) for point in points),
        _errors([point.cell for point in points]),
    )
    title, x_label = "Any medal at shorter limits", "limit, hours"
    return Plot("time", title, "line", x_label, "% any medal", (series,), is_percent=True)


def _pass_at_k(evidence: Evidence) -> Plot:
    series = []
    for measure in (Measure.ANY_MEDAL, Measure.GOLD):
        found = pass_at_k(evidence, measure=measure)
        # Where only some competitions have k seeds, the curve would go on over other competitions.
        even = [one for one in found if one.competitions == found[0].competitions]
        series.append(PlotSeries(measure.words, tuple((float(one.k), one.percent) for one in even)))
    title = "At least one of k seeds"
    return Plot("pass", title, "line", "k", "% of competitions", tuple(series), is_percent=True)


def _endings(evidence: Evidence) -> Plot:
    splits = endings_by_split(evidence)
    if len(splits) == 2:  # one split, and all of them: the same runs
        splits = splits[:1]
    series = [
        PlotSeries(
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
        "Detectable difference",
        "line",
        "seeds of each agent",
        "points of any medal",
        (PlotSeries("at 5 % significance, 80 % power", points),),
        is_percent=True,
    )


def _score_by_cost(evidence: Evidence) -> Plot:
    """Return the runs whose result counts and whose cost is known."""
    medals = (Measure.GOLD.value, Measure.SILVER.value, Measure.BRONZE.value)
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in (*medals, "no medal")}
    for trial in evidence.trials:
        spending = None if trial.costs is None or not trial.counts else trial.costs.measured
        if spending is not None and spending.cost is not None:
            ending = ending_of(trial)
            points[ending if ending in medals else "no medal"].append(
                (spending.cost, _percent_to_gold(trial))
            )
    series = tuple(PlotSeries(name, tuple(sorted(some))) for name, some in points.items() if some)
    title = f"Score against cost, {sum(map(len, points.values()))} runs whose cost is known"
    y_label = "score: 0 at the median or below, 100 at gold"
    return Plot("cost", title, "points", f"{CURRENCY} for a run's model calls", y_label, series)


def _percent_to_gold(trial: Trial) -> float:
    """Return where a score lies between the median, 0, and gold, 100; 0 without a score, and at most `_FURTHEST`."""
    cuts = registry.get(trial.competition_id).thresholds
    if trial.score is None or not math.isfinite(trial.score):
        return 0.0
    if cuts.gold == cuts.median:
        return 100.0 if trial.has(Measure.GOLD) else 0.0
    return min(_FURTHEST, max(0.0, 100.0 * (trial.score - cuts.median) / (cuts.gold - cuts.median)))


def _medals_by_dollars(evidence: Evidence) -> Plot:
    ticks: list[str] = []
    points: list[tuple[float, float]] = []
    for split, members in COLUMNS.items():
        ids = set(registry.splits()[members])
        costs = costs_of((one for one in evidence.trials if one.competition_id in ids), evidence.prices)
        if costs is not None and costs.medals_per_100_dollars is not None:
            points.append((float(len(ticks)), costs.medals_per_100_dollars))
            ticks.append(f"{split} ({costs.priced})")
    series = PlotSeries("any medal", tuple(points))
    title = f"Medals for 100 {CURRENCY} of model calls"
    return Plot(
        "medals-by-cost", title, "bars", "split (runs whose cost is known)", "medals", (series,), tuple(ticks)
    )


def _tokens(evidence: Evidence) -> Plot:
    by_competition = costs_by_competition(evidence)
    ticks = tuple(by_competition)[:_MOST_BARS]
    cut = f", the {_MOST_BARS} with most" if len(by_competition) > _MOST_BARS else ""
    points = tuple(
        (float(place), (by_competition[name].tokens_per_run or 0.0) / 1000)
        for place, name in enumerate(ticks)
    )
    return Plot(
        "tokens",
        f"Tokens by competition{cut}",
        "bars",
        "competition",
        "thousand tokens a run",
        (PlotSeries("tokens", points),),
        ticks,
    )


_MOST_BARS = 20
_WIDTH, _HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 26, 34, 92
# Distinguishable with colour blindness too; further series start again with the first colour.
_COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#999933",
    "#6a3d9a",
    "#7f7f7f",
    "#b15928",
)
# The fixed colours of well-known series.
_NAMED = {
    "gold": "#d4a017",
    "silver": "#9aa5b1",
    "bronze": "#b0703c",
    "above median": "#2e7d32",
    "below median": "#c4c4c4",
    "invalid": "#8e5aa8",
    "no submission": "#c9a9da",
    "no medal": "#7f7f7f",
}


def svg(plot: Plot) -> str:
    """Return a plot as a self-contained SVG element, for pages and files."""
    return _Canvas(plot).svg()


def nice_step(span: float, most: int = 5) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that divides a span into at most `most` parts."""
    if span <= 0:
        return 1.0
    magnitude = 10.0 ** math.floor(math.log10(span / most))
    return next(size * magnitude for size in (1, 2, 5, 10) if span / (size * magnitude) <= most)


def _colour_of(series: PlotSeries, place: int) -> str:
    """Return the colour of a series."""
    return _NAMED.get(series.name, _COLOURS[place % len(_COLOURS)])


def _reach(plot: Plot, value: float, error: float) -> tuple[float, float]:
    """Return how far an error bar extends below and above a value: a percentage stays within 0 and 100."""
    above = max(0.0, min(error, 100.0 - value)) if plot.is_percent else error
    return min(error, value), above


class _Svg:
    """An SVG element in the making."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def text(self, x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{more}>{escape(text)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> None:
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{more}/>'
        )

    def polyline(self, points: Iterable[tuple[float, float]], colour: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')

    def element(self, width: int, height: int, label: str, more: str = "") -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"{more}'
            f' aria-label="{escape(label)}" font-family="system-ui, sans-serif" font-size="11">'
            f"{''.join(self.parts)}</svg>"
        )


class _Canvas(_Svg):
    def __init__(self, plot: Plot) -> None:
        super().__init__()
        self.plot = plot
        self.top = self._highest()
        xs = [x for series in plot.series for x, _ in series.points]
        self.low_x, self.high_x = (-0.5, len(plot.ticks) - 0.5) if plot.ticks else (0.0, max(xs, default=1.0))

    def svg(self) -> str:
        self._axes()
        if self.plot.kind in _XY_KINDS:
            self._lines()
        else:
            self._bars()
        self._legend()
        label = f"{self.plot.title}: {self.plot.y_label} by {self.plot.x_label}"
        return self.element(_WIDTH, _HEIGHT, label)

    def _highest(self) -> float:
        if self.plot.kind == "stacked":
            columns = zip(*(series.points for series in self.plot.series), strict=True)
            highest = max((sum(y for _, y in column) for column in columns), default=1.0)
        else:
            tops = (
                y + _reach(self.plot, y, error)[1]
                for series in self.plot.series
                for (_, y), error in zip(
                    series.points, series.errors or [0.0] * len(series.points), strict=True
                )
            )
            highest = max(tops, default=1.0)
        step = nice_step(highest)
        return max(step, math.ceil(highest / step - 1e-9) * step)

    def _x(self, value: float) -> float:
        share = (value - self.low_x) / (self.high_x - self.low_x)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def _y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self.top * (_HEIGHT - _TOP - _BOTTOM)

    def _axes(self) -> None:
        self.text(_LEFT, 16, self.plot.title, "start", ' font-weight="600" font-size="13"')
        self.text(_LEFT, 29, self.plot.y_label, "start", ' opacity="0.7"')
        step = nice_step(self.top)
        for number in range(round(self.top / step) + 1):
            level = number * step
            more = ' stroke-opacity="0.18"' if number else ' stroke-opacity="0.6"'
            self.line(_LEFT, self._y(level), _WIDTH - _RIGHT, self._y(level), "currentColor", more)
            self.text(_LEFT - 6, self._y(level) + 4, f"{level:g}", "end")
        below = _HEIGHT - _BOTTOM + 15
        if self.plot.ticks:
            slanted = max(len(tick) for tick in self.plot.ticks) * len(self.plot.ticks) > 60
            for place, tick in enumerate(self.plot.ticks):
                x = self._x(place)
                if slanted:
                    turn = f' transform="rotate(-35 {x:.1f} {below:.1f})" font-size="9"'
                    self.text(x, below, tick if len(tick) <= 18 else f"{tick[:17]}…", "end", turn)
                else:
                    self.text(x, below, tick)
            return
        for x in self._marked_xs():
            self.text(self._x(x), below, f"{x:.3g}")
        self.text((_LEFT + _WIDTH - _RIGHT) / 2, below + 16, self.plot.x_label, more=' opacity="0.7"')

    def _marked_xs(self) -> list[float]:
        """Return the labelled x values: the points of a line, round numbers for a plot of points."""
        if self.plot.kind == "line":
            return sorted({x for series in self.plot.series for x, _ in series.points})
        step = nice_step(self.high_x)
        return [number * step for number in range(int(self.high_x / step + 1e-9) + 1)]

    def _lines(self) -> None:
        for place, series in enumerate(self.plot.series):
            colour = _colour_of(series, place)
            if self.plot.kind == "line":
                self.polyline(((self._x(x), self._y(y)) for x, y in series.points), colour)
            for number, (x, y) in enumerate(series.points):
                self.parts.append(
                    f'<circle cx="{self._x(x):.1f}" cy="{self._y(y):.1f}" r="3" fill="{colour}"/>'
                )
                if series.errors:
                    self._error(self._x(x), y, series.errors[number])

    def _bars(self) -> None:
        stacked = self.plot.kind == "stacked"
        slot = (self._x(1) - self._x(0)) * 0.8
        width = slot if stacked else slot / max(1, len(self.plot.series))
        below = [0.0] * len(self.plot.ticks)
        for place, series in enumerate(self.plot.series):
            for number, (x, y) in enumerate(series.points):
                base = below[number] if stacked else 0.0
                left = self._x(x) - slot / 2 + (0 if stacked else place * width)
                height = self._y(base) - self._y(base + y)
                self.parts.append(
                    f'<rect x="{left:.1f}" y="{self._y(base + y):.1f}" width="{width:.1f}" height="{height:.1f}"'
                    f' fill="{_colour_of(series, place)}"><title>{escape(series.name)}: {y:g}</title></rect>'
                )
                if series.errors:
                    self._error(left + width / 2, y, series.errors[number])
                below[number] = base + y

    def _error(self, x: float, y: float, error: float) -> None:
        if error:
            below, above = _reach(self.plot, y, error)
            self.line(x, self._y(y - below), x, self._y(y + above), "currentColor")

    def _legend(self) -> None:
        if len(self.plot.series) < 2:
            return
        x, y = float(_LEFT), _HEIGHT - 24.0
        for place, series in enumerate(self.plot.series):
            width = 24 + 6.5 * len(series.name)
            if x + width > _WIDTH - _RIGHT:
                x, y = float(_LEFT), y + 15
            self.parts.append(
                f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{_colour_of(series, place)}"/>'
            )
            self.text(x + 14, y, series.name, "start")
            x += width


FORMS = ("svg", "png", "pdf")


def picture(plot: Plot, form: str) -> bytes:
    """Return a plot as the content of a file: SVG, or with matplotlib, an optional extra, PNG and PDF.

    Raises:
        UsageProblem: the form is unknown.
        EnvironmentProblem: it needs matplotlib, which is not installed.
    """
    if form not in FORMS:
        raise UsageProblem(f"plots can't be drawn as '{form}'", "", f"Choose one of {', '.join(FORMS)}.")
    if form == "svg":
        return svg(plot).encode()
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem(
            f"drawing {form} needs matplotlib",
            "it is not installed",
            "Install the extra 'plots', or use svg.",
        ) from error
    figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    below = [0.0] * len(plot.ticks)
    width = 0.8 / max(1, len(plot.series))
    for place, series in enumerate(plot.series):
        xs, ys = [x for x, _ in series.points], [y for _, y in series.points]
        colour = _colour_of(series, place)
        reaches = [_reach(plot, y, error) for y, error in zip(ys, series.errors, strict=False)]
        errors = [[below for below, _ in reaches], [above for _, above in reaches]] if reaches else None
        if plot.kind in _XY_KINDS:
            line = "-" if plot.kind == "line" else ""
            axes.errorbar(
                xs, ys, errors, label=series.name, color=colour, marker="o", capsize=2, linestyle=line
            )
        elif plot.kind == "stacked":
            axes.bar(xs, ys, 0.8, bottom=below, label=series.name, color=colour)
            below = [base + y for base, y in zip(below, ys, strict=True)]
        else:
            lefts = [x - 0.4 + width * (place + 0.5) for x in xs]
            axes.bar(lefts, ys, width, yerr=errors, label=series.name, color=colour)
    if plot.ticks:
        rotated = sum(map(len, plot.ticks)) > 60
        axes.set_xticks(
            range(len(plot.ticks)),
            plot.ticks,
            rotation=35 if rotated else 0,
            ha="right" if rotated else "center",
        )
    axes.set_title(plot.title, loc="left")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.set_ylim(bottom=0)
    if len(plot.series) > 1:
        axes.legend(fontsize="small")
    stream = io.BytesIO()
    # Without the creation date, so that the same plot gives the same file.
    figure.savefig(stream, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
    return stream.getvalue()


# The timeline of attempts is not a `Plot`: it is drawn by code of its own.
_LANE, _LANE_LABEL, _TIMELINE_WIDTH, _CURVE = 20, 76, 1120, 110
_FAILED, _LIVE, _STOPPED = "#c62828", "#0b6cb0", "#7f7f7f"
_OUTCOME_COLOURS = {outcome: _NAMED[outcome.value.replace("_", " ")] for outcome in Outcome}
_OUTCOME_SIGNS = dict(zip(Outcome, ("G", "S", "B", "^", "v", "x", "∅"), strict=True))
_MARK_SIGNS = dict(zip(MarkKind, ("g", "o", "e", "k", "p", "r"), strict=True))


def timeline_svg(timeline: Timeline) -> str:
    """Return a timeline as an SVG element: attempts as bars on lanes, marks, now, the end, medals over time.

    A sign at the end of each bar repeats what its colour says, and its tooltip describes the attempt. Empty where
    nothing was launched.
    """
    if not timeline.lanes:
        return ""
    running = timeline.queued or any(bar.is_live for bar in timeline.bars)
    last = max(bar.until(timeline.now) for bar in timeline.bars)
    if timeline.ends is not None and running:
        last = max(last, min(timeline.ends.at, 2 * timeline.now - timeline.begin))
    end = timeline.begin + 1.02 * max(60.0, last - timeline.begin)

    def x(at: float) -> float:
        return _LANE_LABEL + (at - timeline.begin) / (end - timeline.begin) * (
            _TIMELINE_WIDTH - _LANE_LABEL - 8
        )

    top = 46
    bottom = top + _LANE * len(timeline.lanes)
    height = bottom + (_CURVE + 34 if timeline.medals else 8)
    drawn = _Svg()
    text = drawn.text

    def upright(at: float, colour: str, more: str = "") -> None:
        drawn.line(x(at), top - 4, x(at), height - 8, colour, more)

    for at, name in time_ticks(timeline.begin, end, 14):
        text(x(at), 14, name, more=' opacity="0.75"')
        upright(at, "currentColor", ' stroke-opacity="0.12"')
    for mark in timeline.marks:
        tooltip = f"{mark.kind}, {date_and_time(mark.at)}: {mark.text}"
        colour = _FAILED if mark.kind is MarkKind.GPU_LOST else "currentColor"
        drawn.parts.append(
            f'<text x="{x(mark.at):.1f}" y="34" text-anchor="middle" fill="{colour}" font-weight="600">'
            f"{_MARK_SIGNS[mark.kind]}<title>{escape(visible(tooltip))}</title></text>"
        )
    for place, lane in enumerate(timeline.lanes):
        y = top + place * _LANE
        text(
            _LANE_LABEL - 8, y + 14, f"{visible(lane.node) or 'slot'} {lane.number}", "end", ' opacity="0.75"'
        )
        drawn.parts += [
            _timeline_bar(bar, x(bar.begin), x(bar.until(timeline.now)), y, timeline.now) for bar in lane.bars
        ]
    if running:
        upright(timeline.now, _LIVE, ' stroke-width="1.5"')
        text(x(timeline.now), 34, "now", more=f' style="fill:{_LIVE}"')
    if timeline.ends is not None and running and timeline.ends.at <= end:
        upright(timeline.ends.at, "currentColor", ' stroke-dasharray="3 3" stroke-opacity="0.6"')
        text(x(timeline.ends.at), 34, "at most" if timeline.ends.at_most else "end", "end", ' opacity="0.75"')
    if timeline.medals:
        floor, step = height - 14.0, (_CURVE - 14) / len(timeline.medals)
        points = [(x(timeline.begin), floor)]
        for count, (at, _medal) in enumerate(timeline.medals, start=1):
            points += [(x(at), points[-1][1]), (x(at), floor - count * step)]
        points.append((x(timeline.now if running else last), points[-1][1]))
        drawn.polyline(points, _NAMED["gold"])
        text(_LANE_LABEL - 8, floor - len(timeline.medals) * step + 4, f"{len(timeline.medals)}", "end")
        text(_LANE_LABEL - 8, floor + 4, "0 medals", "end", ' opacity="0.75"')
    size = f' width="{_TIMELINE_WIDTH}" height="{height}"'
    return drawn.element(_TIMELINE_WIDTH, height, "attempts over time, slot by slot", size)


def _timeline_bar(bar: Bar, begin: float, end: float, y: float, now: float) -> str:
    """Return the bar of one attempt, with its sign where there is room, and a tooltip that describes it."""
    width = max(2.0, end - begin - 1)
    if bar.state is RunState.FAILED:
        letter = "?" if bar.failure is None else bar.failure[0]
        colour, sign, became = _FAILED, f"!{letter}", f"failed: {bar.failure}"
    elif bar.outcome is not None:
        colour, sign, became = (
            _OUTCOME_COLOURS[bar.outcome],
            _OUTCOME_SIGNS[bar.outcome],
            bar.outcome.replace("_", " "),
        )
    elif bar.is_live:
        sign = "" if bar.standing is None else _OUTCOME_SIGNS[bar.standing]
        standing = "nothing graded yet" if bar.standing is None else bar.standing.replace("_", " ")
        colour, sign, became = _LIVE, f"{sign}▸", f"live, now {standing}"
    else:
        colour, sign, became = _STOPPED, "■", bar.state.value
    again = f", attempt {bar.attempt} of {bar.of}" if bar.of > 1 else ""
    hours = (bar.until(now) - bar.begin) / 3600
    lasted = f"from {date_and_time(bar.begin)} for {hours:.1f} h"
    tooltip = f"{bar.competition_id} seed {bar.seed}{again}: {became}, {lasted}"
    tooltip = visible(f"{tooltip}; {bar.cause}" if bar.cause else tooltip)[:_LONGEST_TITLE]
    drawn = (
        f'<g><title>{escape(tooltip)}</title><rect x="{begin:.1f}" y="{y + 2}" width="{width:.1f}"'
        f' height="{_LANE - 5}" rx="2" fill="{colour}"/>'
    )
    if width >= 9 * len(sign):
        drawn += f'<text x="{begin + width - 3:.1f}" y="{y + 14}" text-anchor="end" fill="{_ink(colour)}">{sign}</text>'
        if bar.attempt > 1 and width >= 9 * len(sign) + 12:
            drawn += f'<text x="{begin + 3:.1f}" y="{y + 14}" fill="{_ink(colour)}">{bar.attempt}</text>'
    return f"{drawn}</g>"


# The longest tooltip: a cause may quote what an agent wrote.
_LONGEST_TITLE = 300


def _ink(ground: str) -> str:
    """Return black or white, whichever has more contrast with a colour."""
    red, green, blue = (int(ground[place : place + 2], 16) for place in (1, 3, 5))
    return "#000" if 0.299 * red + 0.587 * green + 0.114 * blue > 120 else "#fff"
