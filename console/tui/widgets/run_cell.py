"""The short form of a run in lists and matrices: a sign, a colour and a few characters of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.roles import Role, Signs
from mlebench_console.engine.needs.waits import job_wait
from mlebench_console.engine.runs.causes import IDLE_SECONDS, CauseKind, cause_now
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from mlebench_console.state.records import Attempt, Run

if TYPE_CHECKING:
    from mlebench_console.competitions.model import Thresholds

# The letters behind the standing of a live run that should be looked at, where there is no room for words.
IDLE_LETTER, LATE_LETTER, UNGRADABLE_LETTER = "z", "t", "g"


@dataclass(frozen=True)
class Drawn:
    """A run's sign and short text; the standing is in brackets where it is not final.

    Attributes:
        shorter: a shorter text for narrow cells.
        letter: of a live run, why it should be looked at.
    """

    sign: str
    text: str
    standing: str
    role: Role
    standing_role: Role = "dim"
    shorter: str = ""
    letter: str = ""


def draw_kind(kind: Outcome | RunState, signs: Signs) -> Drawn:
    """Return the sign and colour for an outcome, or for the state of runs without one."""
    if isinstance(kind, Outcome):
        return Drawn(outcome_sign(kind, signs), "", "", outcome_role(kind))
    if kind is RunState.FAILED:
        return Drawn(signs.failed, "", "", "bad")
    if kind in (RunState.QUEUED, RunState.STOPPED):
        return Drawn(signs.queued if kind is RunState.QUEUED else signs.stopped, "", "", "dim")
    return Drawn(signs.running, "", "", "running")


def state_role(run: Run) -> Role:
    """Return the role (colour) of a run by its state and outcome."""
    if run.state is RunState.FINISHED:
        return outcome_role(run.outcome)
    if run.state is RunState.FAILED:
        return "bad"
    return "running" if run.is_live else "dim"


def draw_run(
    run: Run | None,
    signs: Signs,
    now: float,
    limit: float,
    elsewhere: Attempt | None = None,
    thresholds: Thresholds | None = None,
) -> Drawn:
    """Return the cell of a run; `elsewhere` is its attempt if a batch system runs it."""
    if run is None:
        return Drawn(" ", "", "", "faint")
    wait = None if elsewhere is None or not run.is_live else job_wait(elsewhere)
    if wait is not None:
        text, *others = wording.waits_short(wait, now)
        role: Role = "warn" if wait.needs_person else "dim"
        return Drawn(signs.queued, text, "", role, shorter=others[0] if others else "")
    reroll = signs.reroll if run.rerolls else ""
    if run.state is RunState.FINISHED and run.outcome is not None:
        text = wording.OUTCOME_SHORT[run.outcome]
        if run.score is not None:
            text = wording.score_beside(run.score, thresholds)
        return Drawn(outcome_sign(run.outcome, signs), text + reroll, "", outcome_role(run.outcome))
    if run.state is RunState.FAILED:
        kind = run.failure_class or FailureClass.UNKNOWN
        text = f"{wording.FAILURE_LETTERS[kind]} {wording.FAILURE_SHORT[kind]}"
        return Drawn(signs.failed, text + reroll, "", "bad")
    if run.state is RunState.STOPPED:
        return Drawn(signs.stopped, "stopped" + reroll, "", "dim")
    if run.state is RunState.QUEUED:
        return Drawn(signs.queued, f"queued{reroll}" if run.attempts else reroll, "", "dim")
    standing = f"[{outcome_sign(run.standing, signs) if run.standing else signs.dot}]"
    if run.state is RunState.STARTING and run.standing is None:
        standing = ""
    if run.state is RunState.RUNNING and run.started_at is not None:
        text = wording.elapsed_within(now - run.started_at, limit)
    else:
        text = run.state.value
    live: Role = "running"
    shorter = letter = ""
    if (trouble := cause_now(run, limit, now)) is not None:
        why, _text, since = trouble
        live = "warn"
        if why is CauseKind.IDLE:
            shorter, letter = "idle", IDLE_LETTER
            text = f"idle {wording.age(now - since + IDLE_SECONDS)}"
        elif why is CauseKind.LATE and run.started_at is not None:
            shorter, letter = "no valid", LATE_LETTER
            text = f"no valid, {wording.age(max(60.0, run.started_at + limit - now))} left"
            # Without a valid submission there is usually nothing to show, and the words need the room.
            standing = standing if run.standing else ""
        else:
            text, shorter, letter = "no grade", "no grade", UNGRADABLE_LETTER
    return Drawn(signs.running, text + reroll, standing, live, outcome_role(run.standing), shorter, letter)
