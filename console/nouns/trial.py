"""Trials of an experiment: what each seed of a competition earned, or why it has no result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import Cell, Noun, NounField
from mlebench_console.console.nouns.competition import thresholds
from mlebench_console.console.nouns.costs import many, money
from mlebench_console.console.nouns.outcomes import OUTCOME_ROLES, outcome_sign
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs, better_arrow
from mlebench_console.engine.scoreboard.model import Costs, Measure, Trial, outcome_of
from mlebench_console.state.lifecycle import FailureClass

# The width of a trial's sign and score.
TRIAL_WIDTH = 11


@dataclass(frozen=True)
class CompetitionTrials:
    """The trials of one competition of an experiment, in the order in which they count as seeds.

    Attributes:
        costs: of their model calls; None where nothing is known of them.
        planned: how many seeds were asked for; 0 if that is unknown.
    """

    competition_id: str
    trials: Sequence[Trial]
    costs: Costs | None = None
    planned: int = 0

    @property
    def counted(self) -> int:
        """How many of them count as seeds."""
        return sum(trial.earned is not None for trial in self.trials)

    @property
    def is_short(self) -> bool:
        """Whether seeds are missing."""
        return self.counted < max(self.planned, len(self.trials))


def trial_text(trial: Trial, signs: Signs) -> Piece:
    """Return the cell of a trial: its sign and its score, or why it has none."""
    reroll = signs.reroll if trial.rerolls else ""
    if trial.queued:
        return f"{signs.queued} queued", "dim"
    if not trial.ended:
        return f"{signs.running} running", "running"
    if trial.failure:
        kind = FailureClass(trial.failure)
        return f"{signs.failed} {wording.FAILURE_LETTERS[kind]} {wording.FAILURE_SHORT[kind]}{reroll}", "bad"
    if trial.earned is None:
        return f"{signs.stopped} no result", "dim"
    outcome = outcome_of(trial.earned)
    score = wording.score(trial.score) if trial.score is not None else wording.OUTCOME_SHORT[outcome]
    return f"{outcome_sign(outcome, signs)} {score}{reroll}", OUTCOME_ROLES[outcome]


def _signs(row: CompetitionTrials, drawing: Drawing) -> Pieces:
    """Return the sign of each trial, and of those to come."""
    drawn = [trial_text(trial, drawing.signs) for trial in row.trials]
    missing: Pieces = ((drawing.signs.queued, "dim"),) * (row.planned - len(drawn))
    return tuple((f"{text[0]} ", role) for text, role in (*drawn, *missing))


def _medals(row: CompetitionTrials, _drawing: Drawing) -> Cell:
    won = sum(trial.has(Measure.ANY_MEDAL) for trial in row.trials if trial.earned is not None)
    role: Role = "good" if won and won == row.counted else "text" if won else "dim"
    return ((f"{won}/{row.counted}" if row.counted else wording.UNKNOWN, role),)


def _bronze(row: CompetitionTrials, drawing: Drawing) -> str:
    """Return the score that bronze needs, with an arrow towards better ones."""
    cuts = thresholds(row.competition_id)
    return "" if cuts is None else f"{wording.score(cuts.bronze, 8)} {better_arrow(cuts, drawing.signs)}"


def _cost(row: CompetitionTrials, _drawing: Drawing) -> str:
    if row.costs is None or not row.costs.measured:
        return ""
    return "unknown cost" if row.costs.per_run is None else f"{money(row.costs.per_run)} a run"


def _tokens(row: CompetitionTrials, _drawing: Drawing) -> str:
    costs = row.costs
    return "" if costs is None or not costs.measured else f"{many(costs.tokens_per_run)} tokens"


def seed_field(place: int) -> NounField[CompetitionTrials]:
    """Return the field of the trial at a place."""

    def trial(row: CompetitionTrials, drawing: Drawing) -> Cell:
        return (trial_text(row.trials[place], drawing.signs),) if place < len(row.trials) else ()

    return NounField(f"seed {place + 1}", trial, TRIAL_WIDTH, gap=1, chosen=True)


COMPETITION_TRIALS = Noun[CompetitionTrials](
    "trials",
    key=lambda row: row.competition_id,
    fields=(
        NounField("competition", lambda row, _: row.competition_id, 14, grows=48),
        NounField("signs", _signs, 6, title=""),
        NounField("medals", _medals, 6, drop=1, right=True),
        NounField("bronze", _bronze, 10, drop=2, right=True, role="dim"),
        NounField("cost", _cost, 16, title="", drop=3, right=True, role="dim"),
        NounField("tokens", _tokens, 14, title="", drop=4, right=True, role="dim"),
    ),
)
