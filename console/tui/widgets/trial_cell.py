"""The short form of a trial of an experiment: a sign, a colour and its score."""

from __future__ import annotations

from mlebench_console.console import wording
from mlebench_console.console.nouns.outcomes import OUTCOME_ROLES, outcome_sign
from mlebench_console.console.roles import Piece, Signs
from mlebench_console.engine.scoreboard.insight import ending_of
from mlebench_console.engine.scoreboard.model import Trial
from mlebench_console.state.lifecycle import FailureClass, Outcome


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
    outcome = Outcome(ending_of(trial).replace(" ", "_"))
    score = wording.score(trial.score) if trial.score is not None else wording.OUTCOME_SHORT[outcome]
    return f"{outcome_sign(outcome, signs)} {score}{reroll}", OUTCOME_ROLES[outcome]
