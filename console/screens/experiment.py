"""The screen of one experiment: its measures by split, every competition with its seeds, and its plots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from competitions import registry
from console import wording
from console.tui.list_screen import ListScreen
from console.tui.painting import Line, Piece, Pieces, bar, cells_of, cut, fit, foreign, heading, joined
from console.tui.screen import Queries
from console.tui.theme import Role, Signs
from console.tui.widgets.run_cell import OUTCOME_ROLES, outcome_sign
from console.tui.widgets.table import REST, Column, Table
from console.views.calls import many, money
from console.views.scoreboard import Experiment, Subject, experiment
from console.views.splits import ORDER, split_of
from engine.scoreboard import COLUMNS, MEASURES_BY_INTEREST, Measure, Standing, Trial
from engine.scoreboard.insight import ending_of
from engine.scoreboard.plots import Plot, Series
from foundation.problems import Problem
from state.lifecycle import FailureClass, Outcome

# A trial's sign and score.
_CELL = 11
# On narrower screens costs by competition are left out, since names would be cut.
_WIDE = 110
# How wide the names of facts are, and those of bars.
_FACT = 29
_LABEL = 26
# The colours of series by name, the same as on all screens; other series are failures.
_SERIES_ROLES: dict[str, Role] = {
    "any medal": "running",
    **{wording.OUTCOME_WORDS[outcome]: role for outcome, role in OUTCOME_ROLES.items()},
    "invalid": OUTCOME_ROLES[Outcome.INVALID],
    "no medal": "dim",
}


class ExperimentScreen(ListScreen):
    """An experiment's measures, competitions and plots for one column of the scoreboard."""

    CONTEXTS = ("experiment", "list", "matrix")
    MODE = "board"

    def __init__(self, subject: Subject, *, column: str = "all") -> None:
        super().__init__()
        self._subject = subject
        self._column = column
        self._found: Experiment | Problem | None = None
        self._as_plots = False

    def queries(self) -> Queries:
        """The experiment."""
        ask = partial(experiment, subject=self._subject, config_file=self.app.places.config_file)
        return {"experiment": (ask, self._take)}

    def redraw(self) -> None:
        """Draw the experiment on its split."""
        shown, header = self.line_list, self.header
        width = shown.line_width
        if isinstance(self._found, Problem):
            text = " ".join(str(self._found).splitlines())
            header.show(((f" {foreign(text, width - 2).rstrip()}", "bad"),))
            shown.show((Line(),))
        elif self._found is not None:
            header.show(*_header(self._found, self._column, width, self.app.signs))
            if self._as_plots:
                shown.show(_plot_lines(self._found.plots, width, self.app.signs))
            else:
                shown.show(_lines(self._found, self._column, width, self.app.signs))

    def action_open(self) -> None:
        """Open the run under the cursor."""
        shown = self.line_list
        if not isinstance(self._found, Experiment) or not isinstance(shown.key, str):
            return
        trials = self._found.trials_of(shown.key)
        trial = trials[shown.column] if shown.column < len(trials) else None
        if trial is not None and trial.run_id is not None:
            self.app.show_run(trial.run_id)
        else:
            self.app.say("there is no run of it here")

    def action_plots(self) -> None:
        """Draw its plots, or list its competitions again."""
        self._as_plots = not self._as_plots
        shown = self.line_list
        shown.show(())
        shown.scroll_to(y=0, animate=False)
        self.redraw()

    def action_export(self) -> None:
        """Preview the export of its row."""
        from console.screens.export import ExportScreen

        self.app.push_screen(ExportScreen(self._subject))

    def action_integrity(self) -> None:
        """Show the detectors' findings in its runs."""
        if isinstance(self._found, Experiment):
            numbers = [one.run_id for one in self._found.evidence.trials if one.run_id is not None]
            self.app.show_integrity(self._found.evidence.name, numbers)

    def action_column(self) -> None:
        """Show the next split."""
        names = list(COLUMNS)
        self._column = names[(names.index(self._column) + 1) % len(names)]
        self.redraw()

    def _take(self, found: Experiment | Problem) -> None:
        self._found = found


def _header(found: Experiment, column: str, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Return the name and conditions of the experiment."""
    evidence, row = found.evidence, found.row
    dot: Piece = (f" {signs.dot} ", "faint")
    conditions = evidence.conditions
    done = f"{row.seeds_done}" + (f" of {row.seeds_planned}" if row.seeds_planned else "")
    agent = " ".join(part for part in (conditions.agent, conditions.agent_version) if part)
    first: list[Pieces] = [
        ((f" {foreign(evidence.name, 40).rstrip()}", "strong"),),
        ((f"{done} {'seed' if done == '1' else 'seeds'} complete", "text"),),
        (("all 75" if column == "all" else f"split {column}", "accent"),),
        ((f"agent {foreign(agent or wording.UNKNOWN, 40).rstrip()}", "dim"),),
    ]
    second: list[Pieces] = [
        ((f" edition {conditions.edition}", "dim"),),
        ((f"limit {foreign(conditions.hours or wording.UNKNOWN, 10).rstrip()}", "dim"),),
        ((f"network {foreign(conditions.network or wording.UNKNOWN, 12).rstrip()}", "dim"),),
        ((foreign(conditions.hardware or "hardware unknown", 60).rstrip(), "dim"),),
    ]
    if row.demo:
        second.insert(0, ((" demo data, not a result", "warn"),))
    lines = [joined(first, dot, width), joined(second, dot, width)]
    if evidence.conflict:
        lines.append(((f" does not make a row: {foreign(evidence.conflict, width - 16).rstrip()}", "bad"),))
    return tuple(lines)


def _lines(found: Experiment, column: str, width: int, signs: Signs) -> list[Line]:
    """Return the measures, the competitions of a column by split, and the insights."""
    lines = _measures(found, width, signs)
    members = set(registry.splits()[COLUMNS[column]])
    shown = [name for name in found.evidence.competitions if name in members or column == "all"]
    seeds = max((len(found.trials_of(name)) for name in shown), default=0)
    trials = Table(_trial_columns(found, seeds, width, signs), shown, width, signs)
    for split in ORDER:
        names = [name for name in shown if split_of(name) == split]
        if names:
            lines += [Line(), trials.heading(f"{split.upper()}  {len(names)}")]
            lines += [trials.line(name, key=name) for name in names]
    if not shown:
        lines += [Line(), Line((("  it has no runs of this split", "dim"),))]
    facts = found.insight.facts()
    if facts:
        lines += [Line(), Line(heading("statistics", width, signs))]
        room = max(20, width - _FACT - 5)
        parts = [
            (name if not at else "", part)
            for name, text in facts
            for at, part in enumerate(cells_of(text, room))
        ]
        table = Table(_FACT_COLUMNS, parts, width, signs)
        lines += [table.line(part) for part in parts]
    return lines


def _measures(found: Experiment, width: int, signs: Signs) -> list[Line]:
    """Every measure on every split."""
    standings = [("its own", found.row.own), *((name, found.row.columns[name]) for name in COLUMNS)]

    room = 10 + len(signs.plus_minus)

    def column(title: str, standing: Standing | None) -> Column[Measure]:
        return Column(
            title.capitalize(), lambda measure: _measured(standing, measure, signs), room, right=True, gap=1
        )

    columns = [Column[Measure]("mean, %", lambda measure: measure.words, 8, grows=18)]
    columns += [column(title, standing) for title, standing in standings]
    table = Table(columns, MEASURES_BY_INTEREST, width, signs)
    return [table.heading(), *map(table.line, MEASURES_BY_INTEREST)]


def _measured(standing: Standing | None, measure: Measure, signs: Signs) -> str:
    known = None if standing is None else standing.measures.get(measure)
    if known is not None:
        return known.figures(1, signs.plus_minus)
    if standing is not None and standing.covered and measure is Measure.ANY_MEDAL:
        if standing.covered == standing.of and standing.interim is not None:
            return f"{standing.interim.low:.1f}-{standing.interim.high:.1f}"
        return f"{standing.covered} of {standing.of}"
    return wording.UNKNOWN


def _trial_columns(found: Experiment, seeds: int, width: int, signs: Signs) -> list[Column[str]]:
    def seed(place: int) -> Column[str]:
        def trial(name: str) -> Pieces:
            trials = found.trials_of(name)
            return (_trial_text(trials[place], signs),) if place < len(trials) else ()

        return Column(f"seed {place + 1}", trial, _CELL, gap=1, chosen=True)

    by_name = {one.competition_id: one.costs for one in found.insight.model_costs_by_competition}

    def tokens(name: str) -> str:
        costs = by_name.get(name)
        return "" if costs is None or not costs.measured else f"{many(costs.tokens_per_run)} tokens"

    def cost(name: str) -> str:
        costs = by_name.get(name)
        if costs is None or not costs.measured:
            return ""
        return "unknown cost" if costs.per_run is None else f"{money(costs.per_run)} a run"

    columns: list[Column[str]] = [Column("competition", str, 14, grows=48), *map(seed, range(seeds))]
    if by_name and width >= _WIDE:
        columns.append(Column("", cost, 16, drop=1, right=True, role="dim"))
        columns.append(Column("", tokens, 14, drop=2, right=True, role="dim"))
    return columns


_FACT_COLUMNS = (
    Column[tuple[str, str]]("", lambda fact: fact[0], _FACT, role="dim"),
    Column[tuple[str, str]]("", lambda fact: fact[1], 20, grows=REST),
)


def _trial_text(trial: Trial, signs: Signs) -> Piece:
    """Return the cell of a trial: its sign and its score, or why it has none."""
    reroll = signs.reroll if trial.rerolls else ""
    if not trial.ended:
        return f"{signs.running} not ended", "running"
    if trial.failure:
        kind = FailureClass(trial.failure)
        return f"{signs.failed} {wording.FAILURE_LETTERS[kind]} {wording.FAILURE_SHORT[kind]}{reroll}", "bad"
    if trial.earned is None:
        return f"{signs.stopped} no result", "dim"
    outcome = Outcome(ending_of(trial).replace(" ", "_"))
    score = wording.score(trial.score) if trial.score is not None else wording.OUTCOME_SHORT[outcome]
    return f"{outcome_sign(outcome, signs)} {score}{reroll}", OUTCOME_ROLES[outcome]


def _plot_lines(plots: Sequence[Plot], width: int, signs: Signs) -> list[Line]:
    """Return every plot with its title: a bar and a number for each value."""
    if not plots:
        return [Line((("  there are no numbers to draw yet", "dim"),))]
    lines: list[Line] = []
    for plot in plots:
        if lines:
            lines.append(Line())
        lines.append(Line(heading(plot.title, width, signs), key=plot.key, selectable=True))
        lines.append(
            Line(
                ((f"  {fit(plot.x_label, _LABEL)} {fit(plot.y_label, max(10, width - _LABEL - 6))}", "dim"),)
            )
        )
        lines += _plot(plot, width, signs)
    return lines


def _plot(plot: Plot, width: int, signs: Signs) -> list[Line]:
    values = [y for series in plot.series for _x, y in series.points]
    # Percentages are scaled to 100, other values to the largest one.
    top = 100.0 if "%" in plot.y_label else max(values, default=0.0)
    several = len(plot.series) > 1
    lines: list[Line] = []
    for x in sorted({x for series in plot.series for x, _y in series.points}):
        label = plot.ticks[round(x)] if plot.ticks else f"{x:.4g}"
        for series in plot.series:
            role = _SERIES_ROLES.get(series.name, "bad") if several else "running"
            drawn = _bar(series, x, top, width, signs, several=several, role=role)
            if drawn:
                lines.append(Line(cut(((f"  {fit(label, _LABEL)} ", "text"), *drawn), width)))
                label = ""
    return lines


def _bar(
    series: Series, x: float, top: float, width: int, signs: Signs, *, several: bool, role: Role
) -> Pieces:
    found = next((place for place, (at, _y) in enumerate(series.points) if at == x), None)
    if found is None:
        return ()
    value = series.points[found][1]
    if not value and series.name and several and top != 100.0:
        return ()  # kinds of endings that did not occur are left out
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
