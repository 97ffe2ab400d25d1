"""Budgets of model calls that runs share: the engine grants allowances to attempts, and gateways stay within them.

An allowance is saved in the state before it is written to the attempt's `allowance.json`, and only grows while its
agent may be alive; the unused rest is freed when the attempt has ended and all its calls are counted. So the
allowances of live attempts and the use of ended ones together never exceed a budget, whichever process is killed at
whatever moment, and no gateway has to reach another host. An allowance grows by what the gateway requests
(`allowance_wanted.json`) and some more, so that few calls wait for the engine and little is reserved that other
attempts may need.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import AllowanceRequest, RunAllowance
from mlebench_console.foundation import files
from mlebench_console.foundation.amounts import Amounts
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.daemon_log import Log
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.state.database import Database
from mlebench_console.state.usage import budgets, model_calls
from mlebench_console.state.usage.budgets import Allowance, SharedBudget, SharingAttempt
from mlebench_console.state.usage.model_calls import ModelUse

MOST_OF_BUDGET = 0.8
# Beyond the request, an allowance grows by 1/16 of what is free, divided by the number of live attempts; at most 1/4.
_AHEAD = 16
_MOST_AHEAD = 4
_CHECK_SECONDS = 1.0
# Runs start only while more than this share of each budget is free.
_LEAST_ROOM = 0.02
_UNITS = ("calls", "tokens", "usd")


@dataclass(frozen=True)
class BudgetStanding:
    """How much of a shared budget is used.

    Attributes:
        used: by the calls that have ended.
        set_aside: allowed to live attempts and not used yet.
    """

    budget: SharedBudget
    used: Amounts
    set_aside: Amounts

    @property
    def share(self) -> float:
        """The used share of the unit that is nearest to its limit."""
        return self.used.share_of(self.budget)

    def free(self, unit: str) -> float:
        """Return how much of a unit is neither used nor set aside."""
        limit = getattr(self.budget, unit)
        if limit is None:
            return math.inf
        taken: float = getattr(self.used, unit) + getattr(self.set_aside, unit)
        return float(limit) - taken

    @property
    def has_room(self) -> bool:
        """Whether enough is free to start a run."""
        return _has_room(self.budget, {unit: self.free(unit) for unit in _UNITS})

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        return {**asdict(self), "share": self.share, "has_room": self.has_room}

    def in_words(self) -> str:
        """Return how much is used of each limited unit."""
        return self.budget.in_words(self.used)


def standings(database: Database, known: Sequence[SharedBudget] | None = None) -> list[BudgetStanding]:
    """Compute how much of some shared budgets is used; by default, of all."""
    found = []
    given, at_work = budgets.allowances(database), budgets.attempts_at_work(database)
    for budget in budgets.all_budgets(database) if known is None else known:
        members = budgets.sweeps_of(database, budget.scope, budget.name)
        living = {attempt.id for attempt in at_work if attempt.sweep_id in members}
        by_attempt: defaultdict[int, list[ModelUse]] = defaultdict(list)
        for sweep_id in members:
            for uses in model_calls.by_run(database, sweep_id).values():
                for use in uses:
                    by_attempt[use.attempt_id].append(use)
        used = {attempt: _amounts(uses) for attempt, uses in by_attempt.items()}
        set_aside = [
            _beyond(given[attempt], used.get(attempt, Amounts())) for attempt in living if attempt in given
        ]
        found.append(BudgetStanding(budget, sum(used.values(), Amounts()), sum(set_aside, Amounts())))
    return found


class SharedBudgets:
    """Grants allowances, records events when budgets run out, and says which sweeps may start runs."""

    def __init__(
        self,
        database: Database,
        state_dir: Path,
        clock: Clock,
        log: Log,
        request_number: Callable[[SharingAttempt], int | None],
    ) -> None:
        """Create it without reading the state.

        Args:
            database: the state.
            state_dir: where attempts' directories are.
            clock: of this host.
            log: for problems.
            request_number: returns a number that changes with each request of a gateway for more; None where the
                request file has to be read each time.
        """
        self._database = database
        self._state_dir = state_dir
        self._clock = clock
        self._log = log
        self._request_number = request_number
        # The last request of each attempt that has request numbers, with its number.
        self._requests: dict[int, tuple[int, AllowanceRequest]] = {}
        self._written: dict[int, RunAllowance] = {}  # the content of each attempt's allowance file
        self._unwritable: set[int] = set()
        self._known: list[SharedBudget] = []
        self._check_at = 0.0
        self._is_new = True
        self._without_room: frozenset[str] = frozenset()

    def has_room(self, sweep_id: str) -> bool:
        """Return whether the budgets of a sweep allow more of its runs to start."""
        return sweep_id not in self._without_room

    def first_allowance(self, sweep_id: str) -> RunAllowance | None:
        """Return the allowance of a new attempt: zero of each limited unit; None without a shared budget."""
        known = budgets.of_sweep(self._database, sweep_id)
        return _run_allowance(Allowance(0), known, used_up=False) if known else None

    def step(self) -> None:
        """Answer the requests of gateways, and recompute all budgets once per second."""
        known = budgets.all_budgets(self._database)
        if not known and not self._written and not self._is_new:
            self._without_room = frozenset()
            return
        members = {budget: budgets.sweeps_of(self._database, budget.scope, budget.name) for budget in known}
        sweep_ids = {sweep_id for found in members.values() for sweep_id in found}
        living = [
            attempt
            for attempt in budgets.attempts_at_work(self._database)
            if attempt.sweep_id in sweep_ids or self._has_allowance(attempt)  # also of a removed budget
        ]
        self._written = {
            attempt.id: self._written[attempt.id] for attempt in living if attempt.id in self._written
        }
        self._requests = {
            attempt.id: self._requests[attempt.id] for attempt in living if attempt.id in self._requests
        }
        wanted = {attempt.id: self._request_of(attempt) for attempt in living}
        is_due = self._clock.monotonic() >= self._check_at or [*known] != self._known
        if is_due or any(self._is_waiting(attempt.id, wanted[attempt.id]) for attempt in living):
            self._check_at = self._clock.monotonic() + _CHECK_SECONDS
            self._known = known
            self._grant(known, members, living, wanted)
            self._is_new = False

    def _has_allowance(self, attempt: SharingAttempt) -> bool:
        """Return whether an attempt has an allowance file, perhaps written by an earlier engine."""
        if self._is_new:
            return (self._state_dir / attempt.directory / protocol.ALLOWANCE).exists()
        return attempt.id in self._written

    def _request_of(self, attempt: SharingAttempt) -> AllowanceRequest:
        number = self._request_number(attempt)
        before = self._requests.get(attempt.id)
        if before is not None and before[0] == number:
            return before[1]
        found = self._read_request(attempt)
        if number is not None and found is not None:
            self._requests[attempt.id] = (number, found)
        return found or AllowanceRequest(Amounts(), Amounts())

    def _read_request(self, attempt: SharingAttempt) -> AllowanceRequest | None:
        """Read the request of a gateway; None where it can't be read."""
        try:
            path = self._state_dir / attempt.directory / protocol.ALLOWANCE_REQUEST
            found = protocol.read_if_there(path, AllowanceRequest)
        except (OSError, DataProblem) as problem:
            self._log(f"{protocol.ALLOWANCE_REQUEST} of attempt {attempt.id} can't be read", problem)
            return None
        if found is None or not all(map(_is_amount, (*_values(found.least), *_values(found.wanted)))):
            return AllowanceRequest(Amounts(), Amounts())
        return found

    def _is_waiting(self, attempt_id: int, wanted: AllowanceRequest) -> bool:
        """Return whether a call waits for the engine to raise the allowance."""
        written = self._written.get(attempt_id)
        return written is None or (not written.used_up and not _covers(written, wanted.least))

    def _grant(
        self,
        known: Sequence[SharedBudget],
        members: Mapping[SharedBudget, Sequence[str]],
        living: Sequence[SharingAttempt],
        wanted: Mapping[int, AllowanceRequest],
    ) -> None:
        found = {standing.budget: standing for standing in standings(self._database, known)}
        free = {(budget, unit): found[budget].free(unit) for budget in known for unit in _UNITS}
        given = budgets.allowances(self._database)
        allowed: dict[int, Allowance] = {}
        current: dict[int, RunAllowance] = {}
        short: set[SharedBudget] = set()
        for attempt in living:
            shared = [budget for budget in known if attempt.sweep_id in members[budget]]
            now = given.get(attempt.id, Allowance(attempt.id))
            used = _amounts(model_calls.of_attempt(self._database, attempt.id))
            more, missing = _more(now, used, wanted[attempt.id], shared, free, len(living))
            if more != now:
                for budget in shared:
                    for unit in _UNITS:
                        before = max(getattr(now, unit), getattr(used, unit))
                        free[budget, unit] -= max(0, getattr(more, unit) - before)
                allowed[attempt.id] = more
            short |= missing
            current[attempt.id] = _run_allowance(more, shared, used_up=bool(missing))
        if allowed:
            budgets.allow(self._database, allowed.values())
        unwritable, self._unwritable = self._unwritable, set()
        for attempt in living:
            if self._written.get(attempt.id) != current[attempt.id]:
                path = self._state_dir / attempt.directory / protocol.ALLOWANCE
                try:
                    files.write_json(path, asdict(current[attempt.id]))
                except OSError as problem:  # tried again in the next step, without delaying other attempts
                    self._unwritable.add(attempt.id)
                    if attempt.id not in unwritable:
                        self._log(f"{protocol.ALLOWANCE} of attempt {attempt.id} can't be written", problem)
                else:
                    self._written[attempt.id] = current[attempt.id]
        for standing in found.values():
            self._report(standing, is_short=standing.budget in short)
        self._without_room = frozenset(
            sweep_id
            for budget in known
            if budget in short or not _has_room(budget, {unit: free[budget, unit] for unit in _UNITS})
            for sweep_id in members[budget]
        )

    def _report(self, standing: BudgetStanding, *, is_short: bool) -> None:
        """Record an event at 80 % of a budget and one when it is used up, each once until the budget is changed."""
        budget = standing.budget
        reached = (
            1.0
            if is_short or standing.share >= 1
            else MOST_OF_BUDGET
            if standing.share >= MOST_OF_BUDGET
            else 0.0
        )
        if reached > budget.told:
            text = f"{standing.share:.0%} of its budget of model calls is used: {standing.in_words()}"
            if reached == 1.0:
                text = (
                    f"its budget of model calls is used up: {standing.in_words()}; no more of its runs start"
                )
            budgets.note_told(self._database, budget, reached, text, now=self._clock.now())


def _more(
    now: Allowance,
    used: Amounts,
    wanted: AllowanceRequest,
    shared: Sequence[SharedBudget],
    free: Mapping[tuple[SharedBudget, str], float],
    at_work: int,
) -> tuple[Allowance, set[SharedBudget]]:
    """Return the new allowance of an attempt, and the budgets that have not enough left for its next call."""
    grown: dict[str, float] = {}
    missing: set[SharedBudget] = set()
    for unit in _UNITS:
        holders = [budget for budget in shared if getattr(budget, unit) is not None]
        spent = getattr(used, unit)
        have = max(getattr(now, unit), spent)
        least, most = getattr(wanted.least, unit), getattr(wanted.wanted, unit)
        missing |= {budget for budget in holders if least > have and least - have > free[budget, unit]}
        room = max(0.0, min((free[budget, unit] for budget in holders), default=0.0))
        # Its own unused allowance counts as free, so that repeated requests don't raise the allowance further.
        own = room + have - spent
        ahead = max(most - least, own / (_AHEAD * at_work))
        ahead = max(0.0, min(ahead, (own - (least - spent)) / (_MOST_AHEAD * at_work)))
        total = have
        if holders and most > have:
            total = min(max(have, least + ahead), have + room)
        grown[unit] = total if unit == "usd" else int(total)
    if missing:
        grown = {unit: max(getattr(now, unit), getattr(used, unit)) for unit in _UNITS}
    return Allowance(now.attempt_id, int(grown["calls"]), int(grown["tokens"]), grown["usd"]), missing


def _run_allowance(allowance: Allowance, shared: Sequence[SharedBudget], *, used_up: bool) -> RunAllowance:
    """Return the content of an attempt's allowance file; a unit that no budget limits is None."""
    limited = {unit for budget in shared for unit in budget.limits}
    values = {unit: getattr(allowance, unit) if unit in limited else None for unit in _UNITS}
    names = [f"the {budget.scope} {budget.name}" for budget in shared]
    return RunAllowance(**values, used_up=used_up, of=" and ".join(names))


def _has_room(budget: SharedBudget, free: Mapping[str, float]) -> bool:
    return all(free[unit] > _LEAST_ROOM * limit for unit, limit in budget.limits.items())


def _covers(allowance: RunAllowance, needed: Amounts) -> bool:
    limits = ((getattr(allowance, unit), getattr(needed, unit)) for unit in _UNITS)
    return all(limit is None or amount <= limit for limit, amount in limits)


def _amounts(uses: Iterable[ModelUse]) -> Amounts:
    return sum((use.amounts for use in uses), Amounts())


def _beyond(allowance: Allowance, used: Amounts) -> Amounts:
    return Amounts(
        max(0, allowance.calls - used.calls),
        max(0, allowance.tokens - used.tokens),
        max(0.0, allowance.usd - used.usd),
    )


def _values(amounts: Amounts) -> tuple[float, ...]:
    return tuple(asdict(amounts).values())


def _is_amount(value: float) -> bool:
    return math.isfinite(value) and 0 <= value < 1 << 50
