"""The screen of one experiment: its measures by split, every competition with its seeds, and its plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import stdev

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.fields import Columns, NounField
from mlebench_console.console.nouns.competition import ORDER, split_of
from mlebench_console.console.nouns.outcomes import OUTCOME_ROLES
from mlebench_console.console.nouns.trial import (
    COMPETITION_TRIALS,
    TRIAL_WIDTH,
    CompetitionTrials,
    seed_field,
)
from mlebench_console.console.pieces import (
    Line,
    bar,
    beside,
    cells_of,
    cut,
    fit,
    foreign,
    heading,
    joined,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.scoreboard import ExperimentFacts, Subject, experiment
from mlebench_console.engine.scoreboard.insight import Insight
from mlebench_console.engine.scoreboard.model import COLUMNS, MEASURES_BY_INTEREST, Measure, Standing
from mlebench_console.engine.scoreboard.plots import Plot, PlotSeries
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import limit_text, plural
from mlebench_console.state.lifecycle import Outcome

# On narrower screens costs by competition are left out, since names would be cut.
_WIDE = 110
# Terminals of this height have a blank line below the header, and lines for all measures.
_HIGH = 36
_FIRST_MEASURES = (Measure.ANY_MEDAL, Measure.GOLD, Measure.ABOVE_MEDIAN, Measure.VALID)
# The widths of the measures, of the competitions without their seeds, and of their costs.
_MEASURES, _NAMES, _COSTS = 84, 74, 34
# How wide the names of bars and of their series are.
_LABEL = 26
_SERIES = 16
# The colours of series by name, the same as on all screens; other series are failures.
_SERIES_ROLES: dict[str, Role] = {
    "any medal": "running",
    **{wording.OUTCOME_WORDS[outcome]: role for outcome, role in OUTCOME_ROLES.items()},
    "invalid": OUTCOME_ROLES[Outcome.INVALID],
    "no medal": "dim",
}


class _SubjectScreen(ListScreen):
    """A screen about one experiment, or the problem with it."""

    MODE = "board"

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self._subject = subject
        self._found: ExperimentFacts | Problem | None = None

    def queries(self) -> Queries:
        """The experiment."""
        ask = partial(experiment, subject=self._subject, config_file=self.app.places.config_file)
        return {"experiment": (ask, self._take)}

    def redraw(self) -> None:
        """Draw the experiment, or why there is none."""
        if isinstance(self._found, Problem):
            text = " ".join(str(self._found).splitlines())
            self.header.show(((f" {foreign(text, self.line_list.line_width - 2).rstrip()}", "bad"),))
            self.line_list.show((Line(),))
        elif self._found is not None:
            self.draw_experiment(self._found)

    def draw_experiment(self, found: ExperimentFacts) -> None:
        """Draw the header and the lines."""
        raise NotImplementedError

    def action_export(self) -> None:
        """Preview the export of its row."""
        from mlebench_console.console.screens.export import ExportScreen

        self.app.push_screen(ExportScreen(self._subject))

    def _take(self, found: ExperimentFacts | Problem) -> None:
        self._found = found


class ExperimentScreen(_SubjectScreen):
    """An experiment's measures, competitions and statistics for one column of the scoreboard."""

    CONTEXTS = ("experiment", "list", "matrix")

    def __init__(self, subject: Subject, *, column: str = "all") -> None:
        super().__init__(subject)
        self._column = column

    def draw_experiment(self, found: ExperimentFacts) -> None:
        """Draw it on its split."""
        high = self.size.height >= _HIGH
        self.header.show(*self._header(found), *[()] * high)
        self.line_list.show(self._lines(found, high=high))

    def action_open(self) -> None:
        """Open the run under the cursor."""
        shown = self.line_list
        if not isinstance(self._found, ExperimentFacts) or not isinstance(shown.key, str):
            return
        trials = self._found.evidence.by_competition[shown.key]
        trial = trials[shown.column] if shown.column < len(trials) else None
        if trial is not None and trial.run_id is not None:
            self.app.show_run(trial.run_id)
        else:
            self.app.say("there is no run of it here")

    def action_plots(self) -> None:
        """Draw its plots."""
        self.app.push_screen(PlotsScreen(self._subject))

    def action_integrity(self) -> None:
        """Show the detectors' findings in its runs."""
        from mlebench_console.console.screens.integrity import IntegrityScreen

        if isinstance(self._found, ExperimentFacts):
            numbers = [one.run_id for one in self._found.evidence.trials if one.run_id is not None]
            self.app.push_screen(IntegrityScreen(self._found.evidence.name, numbers))

    def action_column(self) -> None:
        """Show the next split."""
        names = list(COLUMNS)
        self._column = names[(names.index(self._column) + 1) % len(names)]
        self.redraw()

    def _header(self, found: ExperimentFacts) -> tuple[Pieces, ...]:
        """Return the name and conditions of the experiment."""
        column, width = self._column, self.line_list.line_width
        evidence, row = found.evidence, found.row
        dot: Piece = (f" {self.app.drawing.signs.dot} ", "faint")
        conditions = evidence.conditions
        done = f"{row.seeds_done}" + (f" of {row.seeds_planned}" if row.seeds_planned else "")
        agent = " ".join(part for part in (conditions.agent, conditions.agent_version) if part)
        first: list[Pieces] = [
            ((f" {foreign(evidence.name, 40).rstrip()}", "strong"),),
            ((f"{done} {'seed' if done == '1' else 'seeds'} complete", "text"),),
            (("every split" if column == "all" else f"split {column}", "accent"),),
            ((f"agent {foreign(agent or wording.UNKNOWN, 40).rstrip()}", "dim"),),
        ]
        second: list[Pieces] = [
            ((f"edition {conditions.edition}", "dim"),),
            ((f"limit {limit_text(conditions.hours) if conditions.hours else wording.UNKNOWN}", "dim"),),
            ((f"network {foreign(conditions.network or wording.UNKNOWN, 12).rstrip()}", "dim"),),
            ((foreign(conditions.hardware or "hardware unknown", 60).rstrip(), "dim"),),
        ]
        if row.demo:
            second.insert(0, (("demo data, not a result", "warn"),))
        lines = [joined(first, dot, width), ((" ", "text"), *joined(second, dot, width - 1))]
        if evidence.conflict:
            lines.append(
                ((f" does not make a row: {foreign(evidence.conflict, width - 16).rstrip()}", "bad"),)
            )
        return tuple(lines)

    def _lines(self, found: ExperimentFacts, *, high: bool) -> list[Line]:
        """Return the measures, all in a high terminal, the competitions of a column by split, and the insights."""
        column, width, drawing = self._column, self.line_list.line_width, self.app.drawing
        seeds = max(map(len, found.evidence.by_competition.values()), default=0)
        # In wide terminals the statistics are beside the competitions.
        needed = max(_MEASURES, _NAMES + seeds * (TRIAL_WIDTH + 1)) + (
            _COSTS if found.insight.model_costs_by_competition else 0
        )
        room = width - needed if width >= needed + _BLOCK + 6 else 0
        width -= room
        pane = ExperimentPane(found, width, drawing)
        lines = pane.measures(MEASURES_BY_INTEREST if high else _FIRST_MEASURES)
        members = set(registry.splits()[COLUMNS[column]])
        shown = [name for name in found.evidence.competitions if name in members or column == "all"]
        costs = found.insight.model_costs_by_competition
        rows = [
            CompetitionTrials(name, found.evidence.by_competition[name], costs.get(name)) for name in shown
        ]
        trials = Table(_trial_columns(rows, seeds, is_wide=width >= _WIDE), rows, width - 1, drawing)
        for split in ORDER:
            of_split = [row for row in rows if split_of(row.competition_id) == split]
            if of_split:
                lines += [Line(), trials.heading(f"{split.upper()}  {len(of_split)}")]
                lines += [trials.line(row, key=row.competition_id) for row in of_split]
        if not shown:
            lines += [Line(), Line((("  it has no runs of this split", "dim"),))]
        return pane.with_statistics(lines, room)


class PlotsScreen(_SubjectScreen):
    """The plots of an experiment, all of them in one scale."""

    CONTEXTS = ("plots", "list")

    def draw_experiment(self, found: ExperimentFacts) -> None:
        """Draw the plots."""
        self.header.show(*self._plots_header(found), ())
        self.line_list.show(self._plot_lines(found.plots))

    def _plots_header(self, found: ExperimentFacts) -> tuple[Pieces, ...]:
        """Return whose plots they are, and what bars and signs mean."""
        width, drawing = self.line_list.line_width, self.app.drawing
        runs, competitions = len(found.evidence.trials), len(found.evidence.competitions)
        of = f"{plural(runs, 'run')} of {plural(competitions, 'competition')}"
        name = foreign(
            found.evidence.name, max(16, width - 30 - len(of)), ellipsis=drawing.signs.ellipsis
        ).rstrip()
        first: Pieces = ((f" {name}", "strong"), (f"  plots of {of}", "text"))
        parts: list[Pieces] = [((" a whole bar is 100 %, or 100 points; other units say theirs", "dim"),)]
        if found.row.seeds_done != 1:
            parts.append(((f"{drawing.signs.plus_minus} standard error over seeds", "dim"),))
        return first, joined(parts, (f" {drawing.signs.dot} ", "faint"), width)

    def _plot_lines(self, plots: Sequence[Plot]) -> list[Line]:
        """Return every plot: a bar and a number for each value, in one column or two."""
        width = self.line_list.line_width
        if not plots:
            return [Line((("  there are no numbers to draw yet", "dim"),))]
        two = width >= _TWO_COLUMNS and len(plots) > 1
        room = (width - 2) // 2 if two else width
        columns: list[list[Line]] = [[], []] if two else [[]]
        for plot in plots:
            shortest = min(columns, key=len)
            shortest += [*([Line()] if shortest else []), *_plot(plot, room, self.app.drawing)]
        if not two:
            return columns[0]
        left, right = columns
        left += [Line()] * (len(right) - len(left))
        both = beside([[line.pieces for line in column] for column in columns], (room, room))
        return [replace(line, pieces=pieces) for line, pieces in zip(left, both, strict=True)]


@dataclass(frozen=True)
class ExperimentPane:
    """An experiment's measures and statistics, drawn for a width."""

    found: ExperimentFacts
    width: int
    drawing: Drawing

    def measures(self, measures: Sequence[Measure]) -> list[Line]:
        """Return the measures on the experiment's own competitions and on every split that they cover."""
        found, drawing = self.found, self.drawing
        covered_splits = [(name, found.row.columns[name]) for name in COLUMNS]
        # A column without a figure would be dashes only; its own competitions may be exactly those of a split.
        splits = [one for one in covered_splits if one[1].interim is not None and one[1].covered == one[1].of]
        own = found.row.own
        is_split = any(own is not None and own.covered == one.covered == own.of for _name, one in splits)
        standings = [*([] if is_split else [("its own", own)]), *splits]

        room = 10 + len(drawing.signs.plus_minus)

        def field(title: str, standing: Standing | None) -> NounField[Measure]:
            return NounField(
                title.capitalize(),
                lambda measure, drawing: _measured(standing, measure, drawing),
                room,
                right=True,
                gap=1,
            )

        columns = [NounField[Measure]("mean, %", lambda measure, _: measure.words, 12, grows=18)]
        columns += [field(title, standing) for title, standing in standings]
        table = Table(columns, measures, self.width, drawing)
        covered = [
            "-" if standing is None else f"{standing.covered} of {standing.of}"
            for _name, standing in standings
        ]
        counts = table.line_of([(("competitions", "dim"),), *(((text, "dim"),) for text in covered)])
        return [table.heading(), counts, *map(table.line, measures)]

    def with_statistics(self, lines: list[Line], room: int) -> list[Line]:
        """Add the statistics: beside the lines where they have `room`, otherwise below them."""
        width = self.width
        title = heading("statistics", room - 1 if room else width, self.drawing.signs)
        drawn = [title, *self._statistics(room or width)]
        if len(drawn) == 1:
            return lines
        if not room:
            return [*lines, Line(), *map(Line, drawn)]
        both = beside(([line.pieces for line in lines], drawn), (width, room), ("", "text"))
        lines += [Line()] * (len(both) - len(lines))
        return [replace(line, pieces=pieces) for line, pieces in zip(lines, both, strict=True)]

    def _statistics(self, room: int) -> list[Pieces]:
        """Return the statistics as small tables side by side, then what has only words."""
        found = self.found
        blocks = [block for block in _blocks(found.insight) if len(block) > 1]
        count = max(1, min(len(blocks), (room - 2) // (_BLOCK + 2)))
        columns: list[list[Pieces]] = [[] for _ in range(count)]
        for block in blocks:
            shortest = min(columns, key=len)
            shortest += [(), *block] if shortest else block
        lines: list[Pieces] = [(("  ", "text"), *line) for line in beside(columns, [_BLOCK] * count)]
        told = [(name, text) for name, text in found.insight.facts() if name in _IN_WORDS]
        for name, text in told:
            lines += [(), ((f"  {name}", "dim"),)] if name == told[0][0] else [((f"  {name}", "dim"),)]
            lines += [((f"    {part}", "text"),) for part in cells_of(text, max(20, room - 6))]
        return lines


# The width of a small table, and the statistics that have only words.
_BLOCK = 37
_IN_WORDS = ("cost", "model calls", "tokens", "cost of models", "medals for 100 dollars")


def _blocks(insight: Insight) -> Iterator[list[Pieces]]:
    """Yield the small tables: a title, then lines of a name and a number."""

    def pair(name: str, text: str) -> Pieces:
        return (f"{name:<{_BLOCK - 14}}", "dim"), (f"{text:>14}", "text")

    yield [
        (("pass@k: a medal in one of k seeds, %", "strong"),),
        *(pair(f"k = {one.k}", f"{one.percent:.1f}") for one in insight.pass_at_k),
    ]
    yield [
        (("any medal at shorter limits, %", "strong"),),
        *(
            pair(
                f"{wording.duration(one.hours * 3600)}{', as it was' if one.full else ''}",
                one.cell.figures(1, "±"),
            )
            for one in insight.shorter_limits
        ),
    ]
    stability = insight.stability
    if stability is not None:
        yield [
            (("any medal by seed, %", "strong"),),
            *(
                pair(f"seed {place}", f"{rate:.1f}")
                for place, rate in enumerate(stability.seed_rates, start=1)
            ),
            *(
                [pair("SD of these seeds", f"{stdev(stability.seed_rates):.1f}")]
                if len(stability.seed_rates) > 1
                else []
            ),
            pair("SD within competitions", f"{stability.seed_deviation:.1f}"),
            pair("medal in some, not all", f"{len(stability.flipping)} of {stability.competitions}"),
        ]
        yield [
            (("detectable difference, points", "strong"),),
            *(pair(plural(one.seeds, "seed") + " each", f"{one.points:.1f}") for one in stability.detectable),
            (("5 % significance, 80 % power", "dim"),),
        ]
    effort = insight.effort
    if effort.runs:
        hours = (
            ("run-hours a medal", effort.run_hours_per_medal),
            ("GPU-hours a medal", effort.gpu_hours_per_medal),
        )
        yield [
            (("effort", "strong"),),
            pair(f"hours in {plural(effort.runs, 'run')}", f"{effort.run_hours:,.1f}"),
            *(pair(name, f"{value:,.1f}") for name, value in hours if value),
        ]


def _measured(standing: Standing | None, measure: Measure, drawing: Drawing) -> str:
    known = None if standing is None else standing.measures.get(measure)
    if known is not None:
        return known.figures(1, drawing.signs.plus_minus)
    if standing is None or measure is not Measure.ANY_MEDAL or standing.interim is None:
        return wording.UNKNOWN
    if standing.covered == standing.of:
        return f"{standing.interim.low:.1f}-{standing.interim.high:.1f}"
    return wording.UNKNOWN


def _trial_columns(
    rows: Sequence[CompetitionTrials], seeds: int, *, is_wide: bool
) -> Columns[CompetitionTrials]:
    """Return the columns: the trials, by seed, and what is known of all of them."""
    costs = "cost tokens" if any(row.costs for row in rows) and is_wide else ""
    first, *others = COMPETITION_TRIALS.columns(f"competition medals bronze {costs}")
    return (first, *map(seed_field, range(seeds)), *others)


# From this width on plots are in two columns.
_TWO_COLUMNS = 170


def _plot(plot: Plot, width: int, drawing: Drawing) -> list[Line]:
    """Return a plot: its title, its unit with what a whole bar is, and its bars."""
    values = [y for series in plot.series for _x, y in series.points]
    ends: dict[float, float] = {}
    for series in plot.series:
        for x, y in series.points:
            ends[x] = ends.get(x, 0.0) + y
    stacked = plot.kind == "stacked"
    top = max(values, default=0.0)
    unit = plot.y_label
    if not plot.is_percent:
        unit += f", a whole bar: {f'all {plot.y_label}' if stacked else f'{top:,.4g}'}"
    several = len(plot.series) > 1
    lines = [
        Line(heading(plot.title, width, drawing.signs), key=plot.key, selectable=True),
        Line(
            cut(
                ((f"  {fit(plot.x_label, _LABEL)} {' ' * _SERIES}", "dim"), (unit, "dim")),
                width,
                drawing.signs.ellipsis,
            )
        ),
    ]
    room = max(8, min(60, width - _LABEL - _SERIES - 19))
    for x in sorted(ends):
        label = plot.ticks[round(x)] if plot.ticks else f"{x:.4g}"
        whole = 100.0 if plot.is_percent else ends[x] if stacked else top
        for series in plot.series:
            role = _SERIES_ROLES.get(series.name, "bad") if several else "running"
            drawn = _bar(series, x, whole, room, drawing, role=role, several=several, with_share=stacked)
            if drawn:
                lines.append(Line(cut(((f"  {fit(label, _LABEL)} ", "text"), *drawn), width)))
                label = ""
    return lines


def _bar(
    series: PlotSeries,
    x: float,
    whole: float,
    room: int,
    drawing: Drawing,
    *,
    role: Role,
    several: bool,
    with_share: bool,
) -> Pieces:
    """Return the bar of a series at x with its number, and for parts of a whole its percentage."""
    found = next((place for place, (at, _y) in enumerate(series.points) if at == x), None)
    if found is None:
        return ()
    value = series.points[found][1]
    if with_share and not value:
        return ()  # kinds of endings that did not occur are left out
    error = f" {drawing.signs.plus_minus}{series.errors[found]:.1f}" if series.errors else ""
    share = value / whole if whole else 0.0
    full, empty = bar(share, room, drawing.signs)
    number = f"{value:.0f} {100 * share:5.1f} %" if with_share else f"{value:,.1f}{error}"
    return (
        (fit(series.name if several else "", _SERIES), role),
        (full, role),
        (empty, "faint"),
        (f" {number}", "text"),
    )
