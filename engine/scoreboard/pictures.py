"""Plots as picture files; SVG is drawn here, PNG and PDF need matplotlib, which is an optional extra."""

from __future__ import annotations

import io

from engine.scoreboard.plots import Plot
from engine.scoreboard.svg import colour_of, draw
from foundation.problems import EnvironmentProblem, UsageProblem

FORMS = ("svg", "png", "pdf")


def picture(plot: Plot, form: str) -> bytes:
    """Draw a plot as a file's content.

    Raises:
        UsageProblem: there is no such form.
        EnvironmentProblem: it needs matplotlib, which is not installed.
    """
    if form not in FORMS:
        raise UsageProblem(f"plots can't be drawn as '{form}'", "", f"Take one of {', '.join(FORMS)}.")
    if form == "svg":
        return draw(plot).encode()
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem(
            f"drawing {form} needs matplotlib",
            "it is not installed",
            "Install the extra 'plots', or take svg.",
        ) from error
    figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    below = [0.0] * len(plot.ticks)
    width = 0.8 / max(1, len(plot.series))
    for place, series in enumerate(plot.series):
        xs, ys = [x for x, _ in series.points], [y for _, y in series.points]
        colour, errors = colour_of(series, place), list(series.errors) or None
        if plot.kind == "line":
            axes.errorbar(xs, ys, errors, label=series.name, color=colour, marker="o", capsize=2)
        elif plot.kind == "stacked":
            axes.bar(xs, ys, 0.8, bottom=below, label=series.name, color=colour)
            below = [base + y for base, y in zip(below, ys, strict=True)]
        else:
            lefts = [x - 0.4 + width * (place + 0.5) for x in xs]
            axes.bar(lefts, ys, width, yerr=errors, label=series.name, color=colour)
    if plot.ticks:
        turned = sum(map(len, plot.ticks)) > 60
        axes.set_xticks(
            range(len(plot.ticks)),
            plot.ticks,
            rotation=35 if turned else 0,
            ha="right" if turned else "center",
        )
    axes.set_title(plot.title, loc="left")
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.set_ylim(bottom=0)
    if len(plot.series) > 1:
        axes.legend(fontsize="small")
    stream = io.BytesIO()
    # Without the date of making, so that the same plot is the same file.
    figure.savefig(stream, format=form, metadata={"CreationDate": None} if form == "pdf" else None)
    return stream.getvalue()
