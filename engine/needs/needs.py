"""Everything that needs a person, for `status`, `watch`, the overview, notifications and reports alike.

`read_needs` reads what may need a person, in 11 to 60 ms with 20,000 runs; `needs` derives from it what does now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mlebench_console.engine.needs.causes import CauseGroup, CauseKind, group_by_cause, retried
from mlebench_console.engine.needs.need import Need, NeedKind, host_needs, need_of
from mlebench_console.engine.needs.waits import Wait, job_wait, never_fits
from mlebench_console.foundation.conditions import HERE, MOST_OF_BUDGET
from mlebench_console.foundation.text import clock_time, date_and_time, plural
from mlebench_console.state import acknowledgements, datasets, runs, sweeps
from mlebench_console.state.causes import normalised
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import RunState
from mlebench_console.state.records import (
    Acknowledgement,
    Attempt,
    Dataset,
    DatasetState,
    KaggleState,
    Run,
    Sweep,
)
from mlebench_console.state.usage import outages
from mlebench_console.state.usage.budgets import BudgetScope, SharedBudget, all_budgets
from mlebench_console.state.usage.outages import ProviderOutage

if TYPE_CHECKING:
    from mlebench_console.engine.control import EngineStatus

# The states of datasets that stay until a person acts.
NOT_TO_BE_HAD = (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)
# Runs with these causes have not lost anything yet.
_NOT_LOST = frozenset({CauseKind.UNGRADABLE, CauseKind.LATE, CauseKind.IDLE})


@dataclass(frozen=True)
class NeedFacts:
    """What the state says about all that may need a person.

    Attributes:
        causes: runs that have failed or can't be graded, by cause.
        running: all running runs.
        limits: the time limit of the runs of each sweep.
        acknowledged: acknowledgements by the keys of their needs.
        held: attempts that a batch system won't run until a person acts, each with its sweep and the reason.
        queued_here: sweeps with queued runs for the engine's own host.
    """

    causes: tuple[CauseGroup, ...] = ()
    running: tuple[Run, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    acknowledged: Mapping[str, Acknowledgement] = field(default_factory=dict)
    datasets_failed: tuple[Dataset, ...] = ()
    kaggle: KaggleState = field(default_factory=KaggleState)
    outages: tuple[ProviderOutage, ...] = ()
    budgets: tuple[SharedBudget, ...] = ()
    held: tuple[tuple[str, Attempt, Wait], ...] = ()
    queued_here: tuple[Sweep, ...] = ()


@dataclass(frozen=True)
class Needs:
    """Everything that needs a person, the most urgent first.

    Attributes:
        needed: what somebody has to fix.
        own: agents' own failures, which are results.
        acknowledged: those of both kinds that are acknowledged.
    """

    needed: tuple[Need, ...] = ()
    own: tuple[Need, ...] = ()
    acknowledged: tuple[Need, ...] = ()

    @property
    def every(self) -> tuple[Need, ...]:
        """All of them."""
        return (*self.needed, *self.own, *self.acknowledged)

    def of_sweeps(self, sweep_ids: Collection[str]) -> tuple[Need, ...]:
        """What somebody has to fix in these sweeps."""
        return tuple(
            need
            for need in self.needed
            if need.sweep_id in sweep_ids
            or (need.group is not None and not set(sweep_ids).isdisjoint(need.group.sweep_ids))
        )


def read_needs(database: Database) -> NeedFacts:
    """Read everything that may need a person."""
    known = sweeps.all_sweeps(database)
    limits = {sweep.id: sweep.conditions.time_limit_seconds for sweep in known}
    acknowledged = acknowledgements.all_acknowledgements(database)
    found = runs.troubled(database)
    sweep_of = {run.id: run.sweep_id for run in found}
    # Grouped here, in the reader's thread: unlike live runs, ended ones don't depend on the time.
    ended = (run for run in found if run.state is RunState.FAILED or run.grading_problem)
    counts = sweeps.counts(database)
    queued = (sweep for sweep in known if sweep.id in counts and counts[sweep.id].queued)
    return NeedFacts(
        causes=group_by_cause(ended, limits, acknowledged, 0.0, retried(database)),
        running=tuple(run for run in found if run.state is RunState.RUNNING and not run.grading_problem),
        limits=limits,
        acknowledged=acknowledged,
        datasets_failed=tuple(each for state in NOT_TO_BE_HAD for each in datasets.in_state(database, state)),
        kaggle=datasets.kaggle(database),
        outages=tuple(outages.current(database)),
        budgets=tuple(
            one for one in all_budgets(database) if one.share >= MOST_OF_BUDGET or not one.has_room
        ),
        held=tuple(
            (sweep_of[run_id], attempt, wait)
            for run_id, attempt in runs.placed_elsewhere(database).items()
            if (wait := job_wait(attempt)) is not None and wait.needs_person
        ),
        queued_here=tuple(sweep for sweep in queued if sweep.conditions.placement == HERE),
    )


def needs(
    found: NeedFacts, engine: EngineStatus | None, now: float, *, has_state: bool = True, unread: str = ""
) -> Needs:
    """Return everything that needs a person now.

    Args:
        found: what the state says.
        engine: the engine's last status; None if it could not be read.
        now: the time, by which live runs become late or idle and snoozed needs come back.
        has_state: whether there is a state, which needs an engine.
        unread: why what was read of the state may be outdated; empty if it is current.
    """
    known = found.acknowledged
    of_runs = [
        _of_runs(group) for group in (*found.causes, *group_by_cause(found.running, found.limits, known, now))
    ]
    lost = [one for one in of_runs if one.group is not None and one.group.kind is CauseKind.INFRASTRUCTURE]
    others = (one for one in of_runs if one not in lost)
    every = [
        *host_needs(engine, now, has_state=has_state, unread=unread),
        *lost,
        *(need_of(NeedKind.PROVIDER, one.provider, outage_text(one), one.since) for one in found.outages),
        *map(_of_budget, found.budgets),
        *_of_kaggle(found.kaggle),
        *_of_jobs(found),
        *_without_room(found, engine),
        *others,
        *map(_of_dataset, found.datasets_failed),
    ]
    every = [one if one.group else replace(one, acknowledgement=known.get(one.key)) for one in every]
    shown = [one for one in every if not one.is_acknowledged(now)]
    return Needs(
        tuple(one for one in shown if not one.is_own),
        tuple(one for one in shown if one.is_own),
        tuple(one for one in every if one.is_acknowledged(now)),
    )


def outage_text(outage: ProviderOutage) -> str:
    """Write a provider's outage, its begin, and the number of waiting runs: `openai answers 429 since 03:12, ...`."""
    waiting = f"{plural(outage.waiting, 'run')} {'waits' if outage.waiting == 1 else 'wait'}"
    starts = "; no run that needs it is started" if outage.is_unreachable else ""
    return f"{outage.provider} {outage.answer} since {clock_time(outage.since)}, {waiting}{starts}"


def budget_text(budget: SharedBudget) -> str:
    """Write how much of a shared budget is used."""
    room = "" if budget.has_room else "; no more runs start"
    return f"budget of {budget.scope} {budget.name}: {budget.in_words(budget.used)} used{room}"


def kaggle_text(kaggle: KaggleState) -> str:
    """Write since when and why Kaggle is unreachable, and when it is retried; empty if it is reachable."""
    if kaggle.unreachable_since is None:
        return ""
    again = "" if kaggle.retry_at is None else f"; asked again at {clock_time(kaggle.retry_at)}"
    return f"waiting for Kaggle since {date_and_time(kaggle.unreachable_since)}: {kaggle.problem}{again}"


def _of_runs(group: CauseGroup) -> Need:
    return Need(
        NeedKind.RUNS,
        group.key,
        group.text,
        group.since,
        group=group,
        acknowledgement=group.acknowledgement,
        is_bad=group.kind not in _NOT_LOST,
    )


def _of_budget(budget: SharedBudget) -> Need:
    about, sweep_id = f"{budget.scope} {budget.name}", budget.name
    return need_of(
        NeedKind.SHARED_BUDGET,
        about,
        budget_text(budget),
        sweep_id=sweep_id if budget.scope is BudgetScope.SWEEP else None,
    )


def _of_kaggle(kaggle: KaggleState) -> tuple[Need, ...]:
    text = kaggle_text(kaggle)
    return (need_of(NeedKind.KAGGLE, "", text, kaggle.unreachable_since),) if text else ()


def _of_jobs(found: NeedFacts) -> list[Need]:
    """Return the needs of jobs that wait in a batch system for a person, by sweep."""
    waiting: defaultdict[tuple[str, str, str], list[Attempt]] = defaultdict(list)
    for sweep_id, attempt, wait in found.held:
        waiting[sweep_id, wait.code, wait.text].append(attempt)
    return [
        need_of(
            NeedKind.JOB,
            f"{sweep_id} {code}",
            f"{plural(len(attempts), 'job')} of {sweep_id} {'waits' if len(attempts) == 1 else 'wait'}: {why}",
            min(attempt.created_at for attempt in attempts),
            sweep_id=sweep_id,
        )
        for (sweep_id, code, why), attempts in waiting.items()
    ]


def _without_room(found: NeedFacts, engine: EngineStatus | None) -> list[Need]:
    """Return a need for each sweep whose queued runs ask for more than the engine's host has: they never start."""
    if engine is None or not engine.running:
        return []
    lacking = ((sweep.id, never_fits(sweep.conditions.resources, engine)) for sweep in found.queued_here)
    return [
        need_of(
            NeedKind.NO_ROOM,
            sweep_id,
            f"the runs of {sweep_id} can never start here: {why}",
            sweep_id=sweep_id,
        )
        for sweep_id, why in lacking
        if why
    ]


def _of_dataset(dataset: Dataset) -> Need:
    text = f"data of {dataset.competition_id}: {dataset.problem_text or dataset.state}"
    about = f"{dataset.edition} {dataset.competition_id} {dataset.problem_code} {normalised(dataset.problem_text)}"
    return need_of(NeedKind.DATASET, about, text, dataset.updated_at, is_bad=True)
