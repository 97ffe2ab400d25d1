"""An experiment as lines: measures by split, competitions with their seeds, and what more they tell."""

from __future__ import annotations

from competitions import registry
from console import wording
from console.screens.run_cell import OUTCOME_ROLES, outcome_sign
from console.tui.painting import (
    ColumnSpan,
    Line,
    Piece,
    Pieces,
    fit,
    foreign,
    heading,
    joined,
)
from console.tui.theme import Role, Signs
from console.views.scoreboard import Behind
from console.views.splits import ORDER, split_of
from engine.scoreboard import COLUMNS, MEASURES_BY_INTEREST, Measure, Standing, Trial
from engine.scoreboard.insight import cost_of, effort_of, pass_at_k, stability_of
from engine.settings import Prices
from state.lifecycle import FailureClass, Outcome

_CELL = 12
_OUTCOMES = (
    (Measure.GOLD, Outcome.GOLD),
    (Measure.SILVER, Outcome.SILVER),
    (Measure.BRONZE, Outcome.BRONZE),
    (Measure.ABOVE_MEDIAN, Outcome.ABOVE_MEDIAN),
    (Measure.VALID, Outcome.BELOW_MEDIAN),
    (Measure.SUBMISSION, Outcome.INVALID),
)


def header(found: Behind, column: str, width: int, signs: Signs) -> tuple[Pieces, ...]:
    """Which experiment this is, and under which conditions it came about."""
    evidence, row = found.evidence, found.row
    dot: Piece = (f" {signs.dot} ", "faint")
    told = evidence.conditions
    done = f"{row.seeds_done}" + (f" of {row.seeds_planned}" if row.seeds_planned else "")
    agent = " ".join(part for part in (told.agent, told.agent_version) if part)
    first: list[Pieces] = [
        ((f" {foreign(evidence.name, 40).rstrip()}", "strong"),),
        ((f"{done} seeds complete", "text"),),
        (("all 75" if column == "all" else f"split {column}", "accent"),),
        ((f"agent {foreign(agent or wording.UNKNOWN, 40).rstrip()}", "dim"),),
    ]
    second: list[Pieces] = [
        ((f" edition {told.edition}", "dim"),),
        ((f"limit {foreign(told.hours or wording.UNKNOWN, 10).rstrip()}", "dim"),),
        ((f"network {foreign(told.network or wording.UNKNOWN, 12).rstrip()}", "dim"),),
        ((foreign(told.hardware or "hardware unknown", 60).rstrip(), "dim"),),
    ]
    if row.demo:
        second.insert(0, ((" demo, not comparable", "warn"),))
    lines = [joined(first, dot, width), joined(second, dot, width)]
    if evidence.conflict:
        lines.append(((f" makes no row: {foreign(evidence.conflict, width - 16).rstrip()}", "bad"),))
    return tuple(lines)


def lines(found: Behind, column: str, prices: Prices, width: int, signs: Signs) -> list[Line]:
    """Measures, then the competitions of a column by split, then what more the seeds tell."""
    made = _measures(found, width, signs)
    members = set(registry.splits()[COLUMNS[column]])
    shown = [name for name in found.evidence.competitions if name in members or column == "all"]
    seeds = max((len(found.trials_of(name)) for name in shown), default=0)
    for split in ORDER:
        names = [name for name in shown if split_of(name) == split]
        if names:
            made += [Line(), Line(heading(split, width, signs, note=str(len(names))))]
            made += [_competition(found, name, seeds, width, signs) for name in names]
    if not shown:
        made += [Line(), Line((("  it has no runs of this split", "dim"),))]
    return [*made, *_insight(found, prices, width, signs)]


def _measures(found: Behind, width: int, signs: Signs) -> list[Line]:
    cell = 14 if width >= 100 else 11
    standings = [("its own", found.row.own), *((name, found.row.columns[name]) for name in COLUMNS)]
    title = "".join(f"{name.capitalize():>{cell}}" for name, _standing in standings)
    made = [Line(((f"  {'mean over seeds, %':<20}{title}", "dim"),))]
    for measure in MEASURES_BY_INTEREST:
        pieces: list[Piece] = [(f"  {measure.words:<20}", "text")]
        pieces += [(_measured(standing, measure, cell, signs), "text") for _name, standing in standings]
        made.append(Line(tuple(pieces)))
    return made


def _measured(standing: Standing | None, measure: Measure, width: int, signs: Signs) -> str:
    known = None if standing is None else standing.measures.get(measure)
    if known is None:
        covered = standing is not None and standing.covered and measure is Measure.ANY_MEDAL
        text = f"{standing.covered} of {standing.of}" if standing is not None and covered else wording.UNKNOWN
        return f"{text:>{width}}"
    return f"{f'{known.mean:.1f} {signs.plus_minus}{known.sem:.1f}':>{width}}"


def _competition(found: Behind, name: str, seeds: int, width: int, signs: Signs) -> Line:
    room = max(14, min(48, width - 3 - seeds * _CELL))
    pieces: list[Piece] = [("  ", "text"), (foreign(name, room - 1, ellipsis=signs.ellipsis) + " ", "text")]
    trials = found.trials_of(name)
    for trial in trials:
        text, role = trial_text(trial, signs)
        pieces.append((fit(text, _CELL, ellipsis=signs.ellipsis), role))
    begin = 2 + room
    cells = tuple(
        ColumnSpan(begin + place * _CELL, begin + (place + 1) * _CELL - 1) for place in range(len(trials))
    )
    return Line(tuple(pieces), key=name, cells=cells, selectable=True)


def trial_text(trial: Trial, signs: Signs) -> tuple[str, Role]:
    """A trial in a few cells: its sign and its score, or why it has none."""
    reroll = signs.reroll if trial.rerolls else ""
    if not trial.ended:
        return f"{signs.running} not ended", "running"
    if trial.failure:
        kind = FailureClass(trial.failure)
        letter, word = wording.FAILURE_LETTERS[kind], wording.FAILURE_SHORT[kind]
        return f"{signs.failed} {letter} {word}{reroll}", "bad"
    if trial.earned is None:
        return f"{signs.stopped} no result", "dim"
    outcome = next((each for measure, each in _OUTCOMES if measure in trial.earned), Outcome.NO_SUBMISSION)
    score = wording.score(trial.score) if trial.score is not None else wording.OUTCOME_SHORT[outcome]
    return f"{outcome_sign(outcome, signs)} {score}{reroll}", OUTCOME_ROLES[outcome]


def _insight(found: Behind, prices: Prices, width: int, signs: Signs) -> list[Line]:
    """What the seeds tell beyond the row, as far as there are enough of them."""
    evidence = found.evidence
    told: list[tuple[str, str]] = []
    passing = pass_at_k(evidence)
    if passing:
        told.append(("pass@k", f"{'   '.join(f'{one.k}: {one.percent:.1f} %' for one in passing[:8])}"))
    stability = stability_of(evidence)
    if stability is not None:
        flips = f"{len(stability.flipping)} of {stability.competitions} competitions flip between seeds"
        told.append(("noise", f"{flips}; one seed's deviation {stability.seed_deviation:.1f} points"))
        noticed = ", ".join(f"{one.points:.1f} with {one.seeds}" for one in stability.detectable)
        told.append(("noticeable", f"differences in points by seeds: {noticed}"))
    effort = effort_of(evidence)
    if effort.runs:
        per = effort.run_hours_per_medal
        hours = f"{effort.run_hours:.1f} run-hours" + (f", {per:.1f} for a medal" if per else "")
        gpu = effort.gpu_hours_per_medal
        told.append(("effort", hours + (f"; {gpu:.1f} GPU-hours for a medal" if gpu else "")))
    cost = cost_of(effort, prices)
    if cost is not None:
        told.append(("cost", str(cost)))
    if not told:
        return []
    made = [Line(), Line(heading("what the seeds tell", width, signs))]
    return made + [
        Line(((f"  {name:<12}", "dim"), (fit(text, max(10, width - 15), ellipsis=signs.ellipsis), "text")))
        for name, text in told
    ]
