"""Attempts of a run: when each began, how it ended, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mlebench_console.console import wording
from mlebench_console.console.fields import REST, Cell, Forms, Noun, NounField
from mlebench_console.console.nouns.outcomes import outcome_role
from mlebench_console.console.nouns.run import state_role
from mlebench_console.console.roles import Drawing, Role
from mlebench_console.engine.needs.waits import job_wait
from mlebench_console.state.records import Attempt, Run


@dataclass(frozen=True)
class AttemptRow:
    """One attempt of a run; the latest one may be live, or wait for a node."""

    attempt: Attempt
    run: Run
    is_live: bool


def attempt_rows(run: Run, attempts: Sequence[Attempt]) -> list[AttemptRow]:
    """Join the attempts of a run with it, the oldest first."""
    return [
        AttemptRow(each, run, run.is_live and each.ended_at is None and each is attempts[-1])
        for each in attempts
    ]


def _took(row: AttemptRow, drawing: Drawing) -> str:
    ended, started = drawing.now if row.is_live else row.attempt.ended_at, row.attempt.started_at
    return "" if ended is None or started is None else wording.span(ended - started)


def _what(row: AttemptRow, drawing: Drawing) -> Cell:
    """Return what came of it: the outcome, the text of a failure or else its class, or how a live one stands."""
    attempt = row.attempt
    if row.is_live:
        wait = job_wait(attempt)
        if wait is None:
            return ((row.run.state.value, state_role(row.run)),)
        role: Role = "warn" if wait.needs_person else "text"
        return Forms([((form, role),) for form in (wording.waits(wait, drawing.now), "waits")])
    reroll = " (re-roll)" if attempt.reroll else ""
    if attempt.outcome:
        return ((wording.OUTCOME_WORDS[attempt.outcome] + reroll, outcome_role(attempt.outcome)),)
    kind = "" if attempt.failure_class is None else wording.FAILURE_WORDS[attempt.failure_class]
    forms = dict.fromkeys((attempt.failure_text or kind, kind or attempt.failure_text))
    return Forms([((form + reroll, "bad"),) for form in forms])


ATTEMPT = Noun[AttemptRow](
    "attempt",
    key=lambda row: row.attempt.number,
    document=lambda row, _now: asdict(row.attempt),
    fields=(
        NounField("attempt", lambda row, _: str(row.attempt.number), 7),
        NounField("began", lambda row, _: wording.day_and_time(row.attempt.created_at), 11, role="dim"),
        NounField("took", _took, 6, role="dim"),
        NounField("ended", lambda row, _: wording.how_it_ended(row.attempt), 8, grows=22, drop=1, role="dim"),
        NounField("what", _what, 10, grows=REST),
    ),
)
