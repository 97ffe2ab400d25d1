"""The list of everything that needs a person: machine, engine, runs by cause, providers, budgets, datasets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mlebench_console.console import wording
from mlebench_console.console.nouns.costs import sweep_budgets
from mlebench_console.engine.needs.waits import Wait, job_wait
from mlebench_console.engine.notifications.news import SILENT_SECONDS, troubles
from mlebench_console.engine.runs.budgets import BudgetStanding
from mlebench_console.engine.runs.causes import CauseGroup, CauseKind, group_by_cause, retried
from mlebench_console.foundation.amounts import MOST_OF_BUDGET
from mlebench_console.foundation.text import plural
from mlebench_console.state import acknowledgements, datasets, runs, sweeps
from mlebench_console.state.causes import cause_key, normalised
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import Acknowledgement, Attempt, Dataset, DatasetState, KaggleState, Run
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.budgets import BudgetScope
from mlebench_console.state.usage.outages import ProviderOutage

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus

NOT_TO_BE_HAD = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
_DAY = 86_400.0
# Runs with these causes have not lost anything yet.
_NOT_LOST = frozenset({CauseKind.UNGRADABLE, CauseKind.LATE, CauseKind.IDLE})


@dataclass(frozen=True)
class Concern:
    """One thing that needs a person.

    Attributes:
        key: identifies it in all consoles and over time; acknowledgements refer to it.
        place: the screen that it opens; `engine` starts the engine, `sweep` opens the sweep `sweep_id`.
        since: when it began; None if unknown.
        group: the runs concerned; None if it is not about runs.
        is_bad: whether something is already lost.
    """

    key: str
    text: str
    place: str
    since: float | None = None
    sweep_id: str | None = None
    group: CauseGroup | None = None
    acknowledgement: Acknowledgement | None = None
    is_bad: bool = False

    @property
    def newest(self) -> float | None:
        """Return when something was last added to it; None if unknown, so that it can only be snoozed."""
        return self.since if self.group is None else self.group.newest

    @property
    def is_own(self) -> bool:
        """Whether it is about agents' own failures, which are results."""
        return self.group is not None and self.group.is_own

    def is_acknowledged(self, now: float) -> bool:
        """Return whether it is acknowledged or snoozed, and nothing has been added since."""
        said, newest = self.acknowledgement, self.newest
        if said is None or (newest is None and said.until is None):
            return False
        return said.hides(newest or 0.0, now)


@dataclass(frozen=True)
class Troubles:
    """What the state says about all that may need a person; `concerns` derives from it what does at a given time.

    Attributes:
        causes: runs that have failed or can't be graded, by cause.
        running: all running runs.
        limits: the time limit of the runs of each sweep.
        acknowledged: acknowledgements by the keys of their concerns.
        held: attempts that a batch system won't run until a person acts, each with its sweep and the reason.
    """

    causes: tuple[CauseGroup, ...] = ()
    running: tuple[Run, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)
    datasets_failed: tuple[Dataset, ...] = ()
    kaggle: KaggleState = field(default_factory=KaggleState)
    outages: tuple[ProviderOutage, ...] = ()
    budgets: tuple[BudgetStanding, ...] = ()
    held: tuple[tuple[str, Attempt, Wait], ...] = ()

    @property
    def tight_budgets(self) -> tuple[BudgetStanding, ...]:
        """The shared budgets that are nearly used up, or that let no more runs start."""
        return tuple(one for one in self.budgets if one.share >= MOST_OF_BUDGET or not one.has_room)


def read_troubles(database: Database) -> Troubles:
    """Read everything that may need a person."""
    limits = {sweep.id: sweep.conditions.time_limit_seconds for sweep in sweeps.all_sweeps(database)}
    acknowledged = acknowledgements.all_acknowledgements(database)
    found = runs.troubled(database)
    sweep_of = {run.id: run.sweep_id for run in found}
    # Grouped here, in the reader's thread: unlike live runs, ended ones don't depend on the time.
    ended = (run for run in found if run.state is RunState.FAILED or run.grading_problem)
    standings = {
        (one.budget.scope, one.budget.name): one
        for of_sweep in sweep_budgets(database).values()
        for one in of_sweep
    }
    return Troubles(
        causes=group_by_cause(ended, limits, acknowledged, 0.0, retried(database)),
        running=tuple(run for run in found if run.state is RunState.RUNNING and not run.grading_problem),
        limits=limits,
        acknowledged=acknowledged,
        datasets_failed=tuple(each for state in NOT_TO_BE_HAD for each in datasets.in_state(database, state)),
        kaggle=datasets.kaggle(database),
        outages=tuple(outages.current(database)),
        budgets=tuple(standings.values()),
        held=tuple(
            (sweep_of[run_id], attempt, wait)
            for run_id, attempt in runs.placed_elsewhere(database).items()
            if (wait := job_wait(attempt)) is not None and wait.needs_person
        ),
    )


@dataclass(frozen=True)
class Concerns:
    """Everything that needs a person, the most urgent first.

    Attributes:
        needed: concerns that somebody has to fix.
        own: agents' own failures.
        acknowledged: those of both kinds that are acknowledged.
    """

    needed: tuple[Concern, ...] = ()
    own: tuple[Concern, ...] = ()
    acknowledged: tuple[Concern, ...] = ()

    @property
    def every(self) -> tuple[Concern, ...]:
        """Return all of them."""
        return (*self.needed, *self.own, *self.acknowledged)


def concerns(found: Troubles, host: Iterable[Concern], now: float) -> Concerns:
    """Return everything that needs a person now; `host` are the concerns found by `host_concerns`."""
    known = found.acknowledged
    groups = (*found.causes, *group_by_cause(found.running, found.limits, known, now))
    of_runs = [
        Concern(
            group.key,
            group.text,
            "cause",
            group.since,
            None,
            group,
            group.acknowledgement,
            group.kind not in _NOT_LOST,
        )
        for group in groups
    ]
    lost = [one for one in of_runs if one.group is not None and one.group.kind is CauseKind.INFRASTRUCTURE]
    others = [one for one in of_runs if one not in lost]
    listed = [
        *host,
        *lost,
        *_of_services(found),
        *_of_jobs(found),
        *others,
        *(_of_dataset(one) for one in found.datasets_failed),
    ]
    listed = [one if one.group else _with_acknowledgement(one, known) for one in listed]
    shown = [one for one in listed if not one.is_acknowledged(now)]
    return Concerns(
        tuple(one for one in shown if not one.is_own),
        tuple(one for one in shown if one.is_own),
        tuple(one for one in listed if one.is_acknowledged(now)),
    )


def host_concerns(
    engine: EngineStatus | None, now: float, *, has_state: bool, unread: str = ""
) -> tuple[Concern, ...]:
    """Return the problems of the engine, its machine, and of reading the state.

    Args:
        engine: its last status; None if it could not be read.
        now: the time.
        has_state: whether there is a state, which needs an engine.
        unread: why the data shown may be outdated; empty if the state can be read.
    """
    found = [_of_host(unread, "host", is_bad=True)] if unread else []
    if engine is None or not engine.running:
        if has_state:
            since = None if engine is None else engine.heartbeat_at
            seen = ""
            if since is not None:
                at = wording.clock(since) if now - since < _DAY else wording.day_and_time(since)
                seen = f" (last sign of life {at})"
            text = f"the engine is not running{seen}: nothing starts, nothing is graded, agents go on; Enter starts it"
            found.append(_of_host(text, "engine", since, is_bad=True))
        return tuple(found)
    if engine.heartbeat_at is not None and now - engine.heartbeat_at > SILENT_SECONDS:
        text = "the engine gives no sign of life: what is shown may be outdated"
        found.append(_of_host(text, "host", engine.heartbeat_at, is_bad=True))
    found += [_of_host(text, "host", is_bad=True) for text in troubles(engine)]
    found += [_of_host(text, "host") for text in engine.problems]
    return tuple(found)


def _of_host(text: str, place: str, since: float | None = None, *, is_bad: bool = False) -> Concern:
    return Concern(cause_key("host", normalised(text)), text, place, since, is_bad=is_bad)


def _of_services(found: Troubles) -> list[Concern]:
    outages = [
        Concern(
            cause_key("provider", outage.provider), wording.provider_outage(outage), "events", outage.since
        )
        for outage in found.outages
    ]
    budgets = []
    for standing in found.tight_budgets:
        budget = standing.budget
        sweep_id = budget.name if budget.scope is BudgetScope.SWEEP else None
        key = cause_key("shared_budget", f"{budget.scope} {budget.name}")
        place = "sweep" if sweep_id else "board"
        budgets.append(Concern(key, wording.shared_budget(standing), place, sweep_id=sweep_id))
    waiting = wording.waiting_for_kaggle(found.kaggle)
    kaggle = [Concern(cause_key("kaggle", ""), waiting, "data", found.kaggle.unreachable_since)]
    return [*outages, *budgets, *(kaggle if waiting else ())]


def _of_jobs(found: Troubles) -> list[Concern]:
    """Return the concerns about jobs that wait in a batch system for a person, by sweep."""
    waiting: defaultdict[tuple[str, str, str], list[Attempt]] = defaultdict(list)
    for sweep_id, attempt, wait in found.held:
        waiting[sweep_id, wait.code, wait.text].append(attempt)
    return [
        Concern(
            cause_key("job", f"{sweep_id} {code}"),
            f"{plural(len(attempts), 'job')} of {sweep_id} {'waits' if len(attempts) == 1 else 'wait'}: {why}",
            "sweep",
            min(attempt.created_at for attempt in attempts),
            sweep_id,
        )
        for (sweep_id, code, why), attempts in waiting.items()
    ]


def _of_dataset(dataset: Dataset) -> Concern:
    text = f"data of {dataset.competition_id}: {dataset.problem_text or dataset.state}"
    problem = f"{dataset.problem_code} {normalised(dataset.problem_text)}"
    key = cause_key("dataset", f"{dataset.edition} {dataset.competition_id} {problem}")
    return Concern(key, text, "data", dataset.updated_at, is_bad=True)


def _with_acknowledgement(concern: Concern, known: Mapping[str, Acknowledgement]) -> Concern:
    return replace(concern, acknowledgement=known.get(concern.key))
