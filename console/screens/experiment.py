"""The screen of one experiment: its measures by split, every competition with its seeds, and its plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import stdev

from textual.containers import Horizontal
from textual.widget import Widget

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
from mlebench_console.console.pieces import Line, bar, beside, fit, heading
from mlebench_console.console.roles import Drawing, Pieces, Role
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.blocks import (
    Block,
    Layout,
    in_one_line,
    laid_out,
    section,
    shortened,
    wrapped,
)
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.scoreboard import ExperimentFacts, Subject, experiment
from mlebench_console.engine.scoreboard.insight import Insight
from mlebench_console.engine.scoreboard.model import COLUMNS, MEASURES_BY_INTEREST, Measure, Standing
from mlebench_console.engine.scoreboard.plots import Plot, PlotSeries
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
        self._found: ExperimentFacts | None = None

    def queries(self) -> Queries:
        """The experiment."""
        ask = partial(experiment, subject=self._subject, config_file=self.app.places.config_file)
        return {"experiment": (ask, self._take)}

    def redraw(self) -> None:
        """Draw the experiment once it is read."""
        if self._found is not None:
            self.draw_experiment(self._found)

    def draw_experiment(self, found: ExperimentFacts) -> None:
        """Draw the header and the lines."""
        raise NotImplementedError

    def action_export(self) -> None:
        """Preview the export of its row."""
        from mlebench_console.console.screens.export import ExportScreen

        self.app.push_screen(ExportScreen(self._subject))

    def _take(self, found: ExperimentFacts) -> None:
        self._found = found


class ExperimentScreen(_SubjectScreen):
    """An experiment's measures, competitions and statistics for one column of the scoreboard."""

    CONTEXTS = ("experiment", "list", "matrix")

    def body(self) -> Iterable[Widget]:
        """Return the header, the list, and what a wide terminal shows beside it."""
        header, lines = super().body()
        return header, Horizontal(lines, Painted(id="side"), id="beside")

    def __init__(self, subject: Subject, *, column: str = "all") -> None:
        super().__init__(subject)
        self._column = column

    def draw_experiment(self, found: ExperimentFacts) -> None:
        """Draw it on its split."""
        high = self.size.height >= _HIGH
        self.header.show(*self._header(found), *[()] * high)
        # In wide terminals the statistics are beside the competitions, if they need not be scrolled there.
        seeds = max(map(len, found.evidence.by_competition.values()), default=0)
        needed = max(_MEASURES, _NAMES + seeds * (TRIAL_WIDTH + 1))
        needed += _COSTS if found.insight.model_costs_by_competition else 0
        room, statistics = self.size.width - needed - 2, partial(_statistics, found.insight)
        lines = laid_out([statistics], self.app.drawing.within(room)) if room >= _BLOCK + 4 else []
        side = self.query_one("#side", Painted)
        side.display = 0 < len(lines) <= self.line_list.size.height
        side.set_class(self.app.settings.ascii_only, "-ascii")
        side.show(*lines)
        self.line_list.styles.width = needed if side.display else "1fr"
        below: list[Block] = [] if side.display else [(), statistics]
        self.line_list.show([partial(self._competitions, found, seeds, high), *below])

    def on_line_list_resized(self) -> None:
        """Draw the list for the width that it has got."""
        self.draw()

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

    def _header(self, found: ExperimentFacts) -> Iterator[Block]:
        """Yield the name and conditions of the experiment."""
        evidence, row = found.evidence, found.row
        conditions = evidence.conditions
        done = f"{row.seeds_done}" + (f" of {row.seeds_planned}" if row.seeds_planned else "")
        agent = " ".join(part for part in (conditions.agent, conditions.agent_version) if part)
        split = "every split" if self._column == "all" else f"split {self._column}"
        yield in_one_line(
            [
                ((f" {evidence.name}", "strong"),),
                ((f"{done} {'seed' if done == '1' else 'seeds'} complete", "text"),),
                ((split, "accent"),),
                ((f"agent {agent or wording.UNKNOWN}", "dim"),),
            ]
        )
        demo: list[Pieces] = [(("demo data, not a result", "warn"),)] if row.demo else []
        known: list[Pieces] = [
            ((f"edition {conditions.edition}", "dim"),),
            ((f"limit {limit_text(conditions.hours) if conditions.hours else wording.UNKNOWN}", "dim"),),
            ((f"network {conditions.network or wording.UNKNOWN}", "dim"),),
            ((conditions.hardware or "hardware unknown", "dim"),),
        ]
        yield in_one_line([*demo, *known], (" ", "text"))
        if evidence.conflict:
            yield ((f" does not make a row: {evidence.conflict}", "bad"),)

    def _competitions(
        self, found: ExperimentFacts, seeds: int, high: bool, drawing: Drawing
    ) -> Iterator[Block]:
        """Draw the measures, all of them in a high terminal, and the competitions of a column by split."""
        yield _measures(found, MEASURES_BY_INTEREST if high else _FIRST_MEASURES, drawing)
        members = set(registry.splits()[COLUMNS[self._column]])
        shown = [name for name in found.evidence.competitions if name in members or self._column == "all"]
        costs = found.insight.model_costs_by_competition
        rows = [
            CompetitionTrials(name, found.evidence.by_competition[name], costs.get(name)) for name in shown
        ]
        trials = Table(
            _trial_columns(rows, seeds, is_wide=drawing.width >= _WIDE),
            rows,
            drawing.within(drawing.width - 1),
        )
        for split in ORDER:
            of_split = [row for row in rows if split_of(row.competition_id) == split]
            if of_split:
                yield ()
                yield trials.heading(f"{split.upper()}  {len(of_split)}")
                yield from (trials.line(row, key=row.competition_id) for row in of_split)
        if not shown:
            yield ()
            yield (("  it has no runs of this split", "dim"),)


class PlotsScreen(_SubjectScreen):
    """The plots of an experiment, all of them in one scale."""

    CONTEXTS = ("plots", "list")

    def draw_experiment(self, found: ExperimentFacts) -> None:
        """Draw the plots."""
        self.header.show(*self._plots_header(found), ())
        self.line_list.show([partial(_plots, found.plots)])

    def _plots_header(self, found: ExperimentFacts) -> Iterator[Block]:
        """Yield whose plots they are, and what bars and signs mean."""
        signs = self.app.signs
        runs, competitions = len(found.evidence.trials), len(found.evidence.competitions)
        of = f"  plots of {plural(runs, 'run')} of {plural(competitions, 'competition')}"
        yield shortened(found.evidence.name, "strong", before=((" ", "text"),), after=((of, "text"),))
        parts: list[Pieces] = [((" a whole bar is 100 %, or 100 points; other units say theirs", "dim"),)]
        if found.row.seeds_done != 1:
            parts.append(((f"{signs.plus_minus} standard error over seeds", "dim"),))
        yield in_one_line(parts)


def _measures(found: ExperimentFacts, measures: Sequence[Measure], drawing: Drawing) -> Layout:
    """Return the measures on the experiment's own competitions and on every split that they cover."""
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
    covered = [
        "-" if standing is None else f"{standing.covered} of {standing.of}" for _name, standing in standings
    ]

    def lines(drawing: Drawing) -> Iterable[Line]:
        table = Table(columns, measures, drawing)
        counts = table.line_of([(("competitions", "dim"),), *(((text, "dim"),) for text in covered)])
        return [table.heading(), counts, *map(table.line, measures)]

    return lines


def _statistics(insight: Insight, drawing: Drawing) -> Iterator[Block]:
    """Draw the statistics as small tables side by side, then what has only words."""
    blocks = [block for block in _blocks(insight) if len(block) > 1]
    costs = insight.cost_facts()
    if blocks or costs:
        yield section("statistics")
    count = max(1, min(len(blocks), (drawing.width - 2) // (_BLOCK + 2)))
    columns: list[list[Pieces]] = [[] for _ in range(count)]
    for block in blocks:
        shortest = min(columns, key=len)
        shortest += [(), *block] if shortest else block
    yield from ((("  ", "text"), *line) for line in beside(columns, [_BLOCK] * count))
    if costs:
        yield ()
    for name, text in costs:
        yield ((f"  {name}", "dim"),)
        yield wrapped(text, "text", ("    ", "text"))


# The width of a small table.
_BLOCK = 37


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


def _plots(plots: Sequence[Plot], drawing: Drawing) -> Iterable[Line]:
    """Draw every plot: a bar and a number for each value, in one column or two."""
    if not plots:
        return [Line((("  there are no numbers to draw yet", "dim"),))]
    two = drawing.width >= _TWO_COLUMNS and len(plots) > 1
    if two:
        drawing = drawing.within((drawing.width - 2) // 2)
    columns: list[list[Line]] = [[], []] if two else [[]]
    for plot in plots:
        shortest = min(columns, key=len)
        shortest += [*([Line()] if shortest else []), *laid_out(_plot(plot, drawing), drawing)]
    if not two:
        return columns[0]
    left, right = columns
    left += [Line()] * (len(right) - len(left))
    both = beside([[line.pieces for line in column] for column in columns], (drawing.width, drawing.width))
    return [replace(line, pieces=pieces) for line, pieces in zip(left, both, strict=True)]


def _plot(plot: Plot, drawing: Drawing) -> Iterator[Block]:
    """Draw a plot: its title, its unit with what a whole bar is, and its bars."""
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
    yield Line(heading(plot.title, drawing.width, drawing.signs), key=plot.key, selectable=True)
    yield (f"  {fit(plot.x_label, _LABEL)} {' ' * _SERIES}", "dim"), (unit, "dim")
    room = max(8, min(60, drawing.width - _LABEL - _SERIES - 19))
    for x in sorted(ends):
        label = plot.ticks[round(x)] if plot.ticks else f"{x:.4g}"
        whole = 100.0 if plot.is_percent else ends[x] if stacked else top
        for series in plot.series:
            role = _SERIES_ROLES.get(series.name, "bad") if several else "running"
            drawn = _bar(series, x, whole, room, drawing, role=role, several=several, with_share=stacked)
            if drawn:
                yield (f"  {fit(label, _LABEL)} ", "text"), *drawn
                label = ""


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
