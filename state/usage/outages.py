"""Outages of model providers: periods in which one rate-limited or failed calls, by the gateways of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from mlebench_console.state import events
from mlebench_console.state.database import Database, sql_list
from mlebench_console.state.event_records import EventKind, OutageChanged
from mlebench_console.state.lifecycle import LIVE

# So many failed calls of one run in a row make an outage: clients retry two or three times by themselves.
_CONFIRMING_CALLS = 3
# An outage is over when calls are answered and none has failed for so long; at a rate limit both alternate quickly.
_QUIET_SECONDS = 60.0
# It is also over when no call was made for so long.
_FORGOTTEN_SECONDS = 600.0
_PROBLEM_CHARACTERS = 300


class CallFailure(StrEnum):
    """How a provider failed a call."""

    LIMITED = "limited"  # rate-limited, status 429
    FAILED = "failed"  # an error of the provider, or an incomplete answer
    UNREACHABLE = "unreachable"  # no connection to its address


@dataclass(frozen=True)
class CallEnd:
    """How one call to a provider ended, as evidence whether the provider works.

    Attributes:
        failure: None where the provider answered.
        status: of its answer; 0 where there was none.
    """

    provider: str
    at: float
    failure: CallFailure | None = None
    status: int = 0
    problem: str = ""


@dataclass(frozen=True)
class ProviderOutage:
    """A period that lasts, in which a provider rate-limits or fails calls.

    Attributes:
        since: the first such call.
        last_at: the last such call.
        status, problem: the provider's newest such answer; status 0 where there was none.
        limited, failed, unreachable: the numbers of calls by kind of failure.
        runs: the number of runs that made these calls.
        waiting: the number of these runs that are live and whose newest call to the provider was one of them.
    """

    id: int
    provider: str
    since: float
    last_at: float
    status: int
    problem: str
    limited: int
    failed: int
    unreachable: int
    runs: int
    waiting: int

    @property
    def calls(self) -> int:
        """The number of failed calls."""
        return self.limited + self.failed + self.unreachable

    @property
    def is_unreachable(self) -> bool:
        """Whether connections to the provider failed."""
        return self.status == 0 and self.unreachable > 0

    @property
    def answer(self) -> str:
        """The provider's latest behaviour, as a predicate: `answers 429`."""
        return _does(self.status, is_reached=not self.unreachable)


@dataclass(frozen=True)
class AttemptOutage:
    """An attempt's part in an outage that its newest calls to the provider belong to.

    Attributes:
        calls: the number of its newest failed calls in a row.
        unreachable: the number of these without a connection.
        since, last_at: the first and the last of them.
        confirmed: whether enough calls failed in a row to report the outage.
    """

    provider: str
    status: int
    calls: int
    unreachable: int
    since: float
    last_at: float
    confirmed: bool

    @property
    def is_unreachable(self) -> bool:
        """Whether none of these calls had a connection."""
        return self.unreachable == self.calls

    @property
    def answer(self) -> str:
        """The provider's latest behaviour, as a predicate: `answers 429`."""
        return _does(self.status, is_reached=not self.is_unreachable)


def _does(status: int, *, is_reached: bool) -> str:
    if status:
        return f"answers {status}"
    return "breaks its answers off" if is_reached else "can't be reached"


_OUTAGES = (
    "SELECT outages.*, COUNT(DISTINCT runs.id) AS runs, COUNT(DISTINCT CASE WHEN in_a_row > 0"
    f" AND runs.state IN ({sql_list(LIVE)}) AND attempts.number = runs.attempts THEN runs.id END) AS waiting"
    " FROM outages LEFT JOIN outage_calls ON outage_id = outages.id"
    " LEFT JOIN attempts ON attempts.id = attempt_id LEFT JOIN runs ON runs.id = run_id"
    " WHERE confirmed AND until IS NULL GROUP BY outages.id ORDER BY since, outages.id"
)


def current(database: Database) -> list[ProviderOutage]:
    """Read the outages that last, the longest first."""
    return database.records(ProviderOutage, _OUTAGES)


def unreachable(database: Database) -> frozenset[str]:
    """Return the providers that can't be reached now; runs that need one should not be started."""
    return frozenset(outage.provider for outage in current(database) if outage.is_unreachable)


def met_at_last(database: Database, attempt_id: int) -> list[AttemptOutage]:
    """Read the outages to which the newest calls of an attempt belong, newest first."""
    return database.records(
        AttemptOutage,
        "SELECT provider, outage_calls.status, in_a_row AS calls, outage_calls.unreachable, outage_calls.since,"
        " outage_calls.last_at, confirmed FROM outage_calls JOIN outages ON outages.id = outage_id"
        " WHERE attempt_id = ? AND in_a_row > 0 ORDER BY outage_calls.last_at DESC",
        (attempt_id,),
    )


def note(database: Database, attempt_id: int, ends: Sequence[CallEnd], *, now: float) -> None:
    """Record how calls of an attempt ended, in order; an outage is reported once, after enough failures in a row."""
    with database.transaction():
        for end in ends:
            if end.failure is None:
                _note_answer(database, attempt_id, end)
            else:
                _note_failure(database, attempt_id, end, now)


def settle(database: Database, *, now: float) -> None:
    """Close the outages that are over, with events, and drop failures that never became an outage."""
    over = "until IS NULL AND ((answered_at > last_at AND last_at < :now - :quiet) OR last_at < :now - :forgotten)"
    when = {"now": now, "quiet": _QUIET_SECONDS, "forgotten": _FORGOTTEN_SECONDS}
    rows = database.rows(f"SELECT id, confirmed, answered_at, last_at FROM outages WHERE {over}", when)
    if not rows:
        return
    known = {outage.id: outage for outage in current(database)}
    with database.transaction():
        for row in rows:
            if not row["confirmed"]:
                database.execute("DELETE FROM outage_calls WHERE outage_id = ?", (row["id"],))
                database.execute("DELETE FROM outages WHERE id = ?", (row["id"],))
                continue
            outage = known[row["id"]]
            has_answered = row["answered_at"] is not None and row["answered_at"] > outage.last_at
            until = row["answered_at"] if has_answered else outage.last_at
            database.update("outages", outage.id, until=until)
            minutes = max(1, round((until - outage.since) / 60))
            how = "answers again" if has_answered else "is not asked any more"
            text = (
                f"the provider {outage.provider} {how}; calls put off or failed in {minutes} min:"
                f" {outage.calls:,} of {outage.runs:,} runs"
            )
            detail = OutageChanged(outage.id, outage.provider)
            events.append(database, now, EventKind.PROVIDER_WORKS, text, detail=detail)


def _note_answer(database: Database, attempt_id: int, end: CallEnd) -> None:
    open_now = "SELECT id FROM outages WHERE provider = ? AND until IS NULL"
    database.execute(
        "UPDATE outage_calls SET in_a_row = 0, unreachable = 0 WHERE attempt_id = ?"
        " AND outage_id IN (SELECT id FROM outages WHERE provider = ?)",
        (attempt_id, end.provider),
    )
    database.execute(
        f"UPDATE outages SET answered_at = MAX(COALESCE(answered_at, 0), ?) WHERE id IN ({open_now})",
        (end.at, end.provider),
    )


def _note_failure(database: Database, attempt_id: int, end: CallEnd, now: float) -> None:
    assert end.failure is not None
    problem = end.problem[:_PROBLEM_CHARACTERS]
    row = database.row(
        "SELECT id, confirmed FROM outages WHERE provider = ? AND until IS NULL", (end.provider,)
    )
    if row is None:
        begun = {"provider": end.provider, "since": end.at, "last_at": end.at, "status": end.status}
        outage_id, confirmed = database.insert("outages", begun), False
    else:
        outage_id, confirmed = row["id"], bool(row["confirmed"])
    database.execute(
        f"UPDATE outages SET {end.failure} = {end.failure} + 1, since = MIN(since, :at),"
        " last_at = MAX(last_at, :at), status = :status, problem = :problem WHERE id = :id",
        {"at": end.at, "status": end.status, "problem": problem, "id": outage_id},
    )
    database.execute(
        "INSERT INTO outage_calls (outage_id, attempt_id, in_a_row, unreachable, status, since, last_at)"
        " VALUES (:outage, :attempt, 1, :unreachable, :status, :at, :at) ON CONFLICT (outage_id, attempt_id)"
        " DO UPDATE SET since = CASE WHEN in_a_row = 0 THEN excluded.since ELSE since END,"
        " in_a_row = in_a_row + 1, unreachable = unreachable + excluded.unreachable,"
        " status = excluded.status, last_at = MAX(last_at, excluded.last_at)",
        {
            "outage": outage_id,
            "attempt": attempt_id,
            "unreachable": int(end.failure is CallFailure.UNREACHABLE),
            "status": end.status,
            "at": end.at,
        },
    )
    in_a_row = database.row(
        "SELECT in_a_row FROM outage_calls WHERE outage_id = ? AND attempt_id = ?", (outage_id, attempt_id)
    )
    if not confirmed and in_a_row is not None and in_a_row["in_a_row"] >= _CONFIRMING_CALLS:
        database.update("outages", outage_id, confirmed=1)
        does = _does(end.status, is_reached=end.failure is not CallFailure.UNREACHABLE)
        text = f"the provider {end.provider} {does}: {problem}"
        detail = OutageChanged(outage_id, end.provider)
        events.append(database, now, EventKind.PROVIDER_OUTAGE, text, detail=detail)
