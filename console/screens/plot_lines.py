"""An experiment's plots as lines: every value a bar with its number, so that a terminal shows them as they are."""

from __future__ import annotations

from collections.abc import Sequence

from console.tui.painting import (
    Line,
    Pieces,
    bar,
    cut,
    fit,
    heading,
)
from console.tui.theme import Role, Signs
from engine.scoreboard.plots import Plot, Series

_LABEL = 26
# Series follow each other in these; their names stand beside them.
_ROLES: tuple[Role, ...] = ("running", "gold", "good", "bronze", "silver", "warn", "accent", "bad", "dim")


def lines(plots: Sequence[Plot], width: int, signs: Signs) -> list[Line]:
    """Every plot below its title."""
    if not plots:
        return [Line((("  there are no numbers to draw yet", "dim"),))]
    made: list[Line] = []
    for plot in plots:
        if made:
            made.append(Line())
        made.append(Line(heading(plot.title, width, signs), key=plot.key, selectable=True))
        made.append(
            Line(
                ((f"  {fit(plot.x_label, _LABEL)} {fit(plot.y_label, max(10, width - _LABEL - 6))}", "dim"),)
            )
        )
        made += _plot(plot, width, signs)
    return made


def _plot(plot: Plot, width: int, signs: Signs) -> list[Line]:
    values = [y for series in plot.series for _x, y in series.points]
    # A share of hundred is drawn as such, everything else up to its largest.
    top = 100.0 if "%" in plot.y_label else max(values, default=0.0)
    several = len(plot.series) > 1
    made: list[Line] = []
    for x in sorted({x for series in plot.series for x, _y in series.points}):
        label = plot.ticks[round(x)] if plot.ticks else f"{x:.4g}"
        for place, series in enumerate(plot.series):
            drawn = _bar(series, x, top, width, signs, several=several, role=_ROLES[place % len(_ROLES)])
            if drawn:
                made.append(Line(cut(((f"  {fit(label, _LABEL)} ", "text"), *drawn), width)))
                label = ""
    return made


def _bar(
    series: Series, x: float, top: float, width: int, signs: Signs, *, several: bool, role: Role
) -> Pieces:
    found = next((place for place, (at, _y) in enumerate(series.points) if at == x), None)
    if found is None:
        return ()
    value = series.points[found][1]
    if not value and series.name and several and top != 100.0:
        return ()  # of many kinds of endings only those that there were
    error = f" {signs.plus_minus}{series.errors[found]:.1f}" if series.errors else ""
    name = 16 if several else 0
    full, empty = bar(value / top if top else 0.0, max(8, min(60, width - _LABEL - name - 20)), signs)
    number = f"{value:.1f}".removesuffix(".0") if top != 100.0 else f"{value:.1f}"
    return (
        (fit(series.name, name), role if several else "dim"),
        (full, role),
        (empty, "faint"),
        (f" {number}{error}", "text"),
    )
