"""Group the runs that may need a person by cause: one outage is one group, however many runs it ended.

The engine records a failure's cause when the run ends (`state.causes`); whether a live run is late or idle depends on
the time. Infrastructure failures, suspicions and agents' own failures are never in one group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from mlebench_console.state import acknowledgements, runs, sweeps
from mlebench_console.state.causes import (
    UNGRADABLE,
    cause_key,
    cause_of,
    code_of,
    group_of,
    in_common,
    normalised,
)
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import FailureClass, RunState
from mlebench_console.state.records import Acknowledgement, Run
from mlebench_console.state.transitions import is_reroll

# A run without output, submission or processor use for this long should be looked at.
IDLE_SECONDS = 2 * 3600.0
# A run without a valid submission after this share of its time limit may end without one.
LATE_SHARE = 0.9


class CauseKind(StrEnum):
    """The kinds of groups, the most urgent first."""

    INFRASTRUCTURE = "infrastructure"
    SUSPECTED = "suspected"
    UNGRADABLE = UNGRADABLE
    LATE = "late"
    IDLE = "idle"
    BUDGET = "budget"
    UNKNOWN = "unknown"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    DISK = "disk"
    CRASH = "crash"


# Agents' own failures: they are results, and nobody has to fix them.
OWN_FAILURES = frozenset(CauseKind(each) for each in FailureClass) - {CauseKind.INFRASTRUCTURE}
_ORDER = {kind: place for place, kind in enumerate(CauseKind)}


@dataclass(frozen=True)
class CauseGroup:
    """Runs with one cause.

    Attributes:
        key: identifies the group, the same at every read and in every console.
        text: what happened: the text of its runs where it is the same for all, otherwise the normalised cause.
        runs: newest first.
        since: when the first of its runs was affected.
        newest: when the last of its runs was affected.
        acknowledgement: the last one, even if it does not hide the group any more.
        due: of late runs, when the first of them reaches its time limit.
        retrying: how many of its runs will be relaunched automatically.
    """

    key: str
    kind: CauseKind
    text: str
    runs: tuple[Run, ...]
    since: float
    newest: float
    acknowledgement: Acknowledgement | None = None
    due: float | None = None
    retrying: int = 0

    @property
    def is_own(self) -> bool:
        """Whether these are agents' own failures."""
        return self.kind in OWN_FAILURES

    @property
    def is_free(self) -> bool:
        """Whether all its runs have ended and relaunching them does not bias the results."""
        return all(run.has_ended and not is_reroll(run) for run in self.runs)

    @property
    def sweep_ids(self) -> tuple[str, ...]:
        """The sweeps of its runs, the one with the most runs first."""
        return tuple(
            sweep_id for sweep_id, _count in Counter(run.sweep_id for run in self.runs).most_common()
        )

    def is_acknowledged(self, now: float) -> bool:
        """Return whether somebody has acknowledged it, which hides it from the list."""
        return self.acknowledgement is not None and self.acknowledgement.hides(self.newest, now)


def read_causes(database: Database, now: float, sweep_id: str | None = None) -> tuple[CauseGroup, ...]:
    """Read all groups, or those of one sweep's runs, the most urgent first, including acknowledged ones."""
    limits = {sweep.id: sweep.conditions.time_limit_seconds for sweep in sweeps.all_sweeps(database)}
    known = acknowledgements.all_acknowledgements(database)
    found = [run for run in runs.troubled(database) if sweep_id in (None, run.sweep_id)]
    return group_by_cause(found, limits, known, now, retried(database))


def retried(database: Database) -> frozenset[int]:
    """Read the numbers of the runs that will be relaunched automatically."""
    return frozenset(run.id for run in runs.to_retry(database))


def group_by_cause(
    found: Iterable[Run],
    limits: Mapping[str, float],
    acknowledged: Mapping[str, Acknowledgement],
    now: float,
    retried: Set[int] = frozenset(),
) -> tuple[CauseGroup, ...]:
    """Group the runs that may need a person; others are left out.

    Args:
        found: the runs.
        limits: the time limit of each sweep, in seconds.
        acknowledged: acknowledgements by key.
        now: decides which live runs are late or idle.
        retried: the numbers of the runs that will be relaunched automatically.
    """
    members: defaultdict[tuple[CauseKind, str], list[tuple[float, Run]]] = defaultdict(list)
    for run in found:
        why = cause_now(run, limits.get(run.sweep_id), now)
        if why is not None:
            kind, cause, at = why
            members[kind, cause].append((at, run))
    groups = []
    for (kind, cause), of in members.items():
        of.sort(key=lambda member: (-member[0], member[1].id))
        together = tuple(run for _at, run in of)
        due = None
        if kind is CauseKind.LATE:
            due = min((run.started_at or 0.0) + limits[run.sweep_id] for run in together)
        key, text = cause_key(kind, cause), _text(kind, cause, together)
        groups.append(
            CauseGroup(
                *(key, kind, text, together),
                since=of[-1][0],
                newest=of[0][0],
                acknowledgement=acknowledged.get(key),
                due=due,
                retrying=sum(run.id in retried for run in together),
            )
        )
    return tuple(
        sorted(groups, key=lambda group: (_ORDER[group.kind], -len(group.runs), group.since, group.key))
    )


def recorded_cause(run: Run) -> tuple[str, str]:
    """Return the key and the text of the cause of a run that has failed or can't be graded; both empty for others."""
    why = cause_now(run, None, 0.0) if run.state is RunState.FAILED or run.grading_problem else None
    if why is None:
        return "", ""
    key = cause_key(why[0], why[1])
    if run.state is RunState.FAILED and code_of(run.problem, run.suspected) is not None:
        return key, _text_of_code([run])
    return key, why[1]


def idle_since(run: Run, now: float) -> float | None:
    """Return since when a running run has shown no activity; None where that is not long enough."""
    active = run.last_activity_at or run.started_at or now
    return active if now - active > IDLE_SECONDS else None


def cause_now(run: Run, limit: float | None, now: float) -> tuple[CauseKind, str, float] | None:
    """Return the kind of a run's problem, its cause, and since when; None where it has none.

    Whether a live run is late or idle depends on the time limit and the time; without a limit no run is late.
    """
    if run.state is RunState.FAILED:
        kind = run.failure_class or FailureClass.UNKNOWN
        return CauseKind(group_of(kind, run.suspected)), run.cause, run.ended_at or now
    if run.grading_problem:
        cause = normalised(run.grading_problem, (run.sweep_id, run.competition_id))
        return CauseKind.UNGRADABLE, cause, run.grading_fails_since or now
    if run.state is not RunState.RUNNING:
        return None
    started = run.started_at or now
    if run.valid is not True and limit is not None and now - started > LATE_SHARE * limit:
        return CauseKind.LATE, "no valid submission", started + LATE_SHARE * limit
    quiet = idle_since(run, now)
    return None if quiet is None else (CauseKind.IDLE, "idle", quiet + IDLE_SECONDS)


def _text(kind: CauseKind, cause: str, found: Sequence[Run]) -> str:
    """Return the text of the runs where it is the same for all and tells their cause; else what tells it."""
    first = found[0]
    names = (first.sweep_id, first.competition_id)
    if kind is CauseKind.UNGRADABLE:
        return _same(run.grading_problem for run in found) or cause
    if kind not in OWN_FAILURES | {CauseKind.INFRASTRUCTURE, CauseKind.SUSPECTED}:
        return cause  # of live runs
    text = _same(run.failure_text for run in found)
    if kind is CauseKind.SUSPECTED and first.suspected is not None:
        return f"suspected: {first.suspected.words}" + (f"; {text}" if text else "")
    if code_of(first.problem, first.suspected) is not None:
        return text or _text_of_code(found)
    # What a failed program printed last may tell more than the text.
    is_source = text and first.failure_class and cause_of(first.failure_class, text, names=names) == cause
    return text if is_source else in_common([(cause, names)])


def _text_of_code(found: Sequence[Run]) -> str:
    """Return the text of runs that failed by the problem of one code: what their texts have in common, or its words."""
    first = found[0]
    if first.suspected is not None or first.problem is None:
        return first.suspected.words if first.suspected is not None else first.failure_text
    texts = [(run.failure_text, (run.sweep_id, run.competition_id)) for run in found]
    return in_common(texts) or first.problem.words


def _same(texts: Iterable[str]) -> str:
    """Return the common text; empty where the texts differ."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""
