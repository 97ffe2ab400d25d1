"""Signs and roles of outcomes, the same for runs, submissions, trials and events."""

from __future__ import annotations

from mlebench_console.console.roles import Role, Signs
from mlebench_console.state.lifecycle import Outcome

OUTCOME_ROLES: dict[Outcome, Role] = {
    Outcome.GOLD: "gold",
    Outcome.SILVER: "silver",
    Outcome.BRONZE: "bronze",
    Outcome.ABOVE_MEDIAN: "good",
    Outcome.BELOW_MEDIAN: "dim",
    Outcome.INVALID: "invalid",
    Outcome.NO_SUBMISSION: "invalid",
}


def outcome_sign(outcome: Outcome, signs: Signs) -> str:
    """Return the letter or sign of an outcome."""
    return {
        Outcome.GOLD: "G",
        Outcome.SILVER: "S",
        Outcome.BRONZE: "B",
        Outcome.ABOVE_MEDIAN: signs.above_median,
        Outcome.BELOW_MEDIAN: signs.below_median,
        Outcome.INVALID: signs.invalid,
        Outcome.NO_SUBMISSION: signs.no_submission,
    }[outcome]


def outcome_role(outcome: Outcome | None) -> Role:
    """Return the role (colour) of an outcome."""
    return "dim" if outcome is None else OUTCOME_ROLES[outcome]
