"""Budgets of model calls that runs share: the engine hands out allowances, the gateways stay within them.

What an attempt is allowed is kept in the state before its gateway hears of it (`allowance.json`), and only grows while
its agent may live; what it has not used goes back when it has ended and all its calls are counted. So the allowances of
living attempts and the use of ended ones never exceed a budget together, whoever is killed at whatever moment, and no
gateway has to reach another's host. An allowance grows by what the gateway asks for (`allowance_wanted.json`) and
some more, so that few calls wait for the engine and little is set aside that others may need.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from environment.runner import protocol
from environment.runner.protocol import AllowanceWanted, CallAmounts, RunAllowance
from foundation import files
from foundation.clock import Clock
from foundation.daemon_log import Log
from foundation.problems import DataProblem
from state.database import Database
from state.usage import budgets, model_calls
from state.usage.budgets import Allowance, Budget, SharingAttempt, dollars
from state.usage.model_calls import ModelUse

MOST_OF_BUDGET = 0.8
# An allowance grows by this part of what is free, for each living attempt.
_AHEAD = 16
_MOST_AHEAD = 4
_LOOK_SECONDS = 1.0
# No run starts for less than this part of a budget.
_LEAST_ROOM = 0.02
_UNITS = ("calls", "tokens", "usd")


@dataclass(frozen=True)
class BudgetStanding:
    """How a shared budget stands.

    Attributes:
        used: by the calls that have ended.
        set_aside: beyond that, for runs at work.
    """

    budget: Budget
    used: CallAmounts
    set_aside: CallAmounts

    @property
    def share(self) -> float:
        """Which part is used, of whatever is nearest to its end."""
        return max((getattr(self.used, unit) / limit for unit, limit in _limited(self.budget)), default=0.0)

    def free(self, unit: str) -> float:
        """Compute what nobody has used or been allowed yet."""
        limit = getattr(self.budget, unit)
        if limit is None:
            return math.inf
        taken: float = getattr(self.used, unit) + getattr(self.set_aside, unit)
        return float(limit) - taken

    @property
    def has_room(self) -> bool:
        """Whether a run may start on it."""
        return _has_room(self.budget, {unit: self.free(unit) for unit in _UNITS})

    def document(self) -> dict[str, Any]:
        """Write it as JSON documents have it."""
        return {**asdict(self), "share": self.share, "has_room": self.has_room}

    def in_words(self) -> str:
        """Write how much is used, in what is limited."""
        parts = [
            f"{dollars(getattr(self.used, unit))} of {dollars(limit)} USD"
            if unit == "usd"
            else f"{getattr(self.used, unit):,} of {limit:,} {unit}"
            for unit, limit in _limited(self.budget)
        ]
        return ", ".join(parts)


def standings(database: Database, known: Sequence[Budget] | None = None) -> list[BudgetStanding]:
    """Compute how shared budgets stand, all of them if none are named."""
    found = []
    given, at_work = budgets.allowances(database), budgets.attempts_at_work(database)
    for budget in budgets.all_budgets(database) if known is None else known:
        members = budgets.sweeps_of(database, budget)
        living = {attempt.id for attempt in at_work if attempt.sweep_id in members}
        by_attempt: defaultdict[int, list[ModelUse]] = defaultdict(list)
        for sweep_id in members:
            for uses in model_calls.by_run(database, sweep_id).values():
                for use in uses:
                    by_attempt[use.attempt_id].append(use)
        used = {attempt: _amounts(uses) for attempt, uses in by_attempt.items()}
        set_aside = [
            _beyond(given[attempt], used.get(attempt, CallAmounts()))
            for attempt in living
            if attempt in given
        ]
        found.append(BudgetStanding(budget, _sum(used.values()), _sum(set_aside)))
    return found


class SharedBudgets:
    """Hands out allowances, tells of budgets that come to their end, and knows whose runs may start."""

    def __init__(
        self,
        database: Database,
        state_dir: Path,
        clock: Clock,
        log: Log,
        asked: Callable[[SharingAttempt], int | None],
    ) -> None:
        """Prepare.

        Args:
            database: the state.
            state_dir: where attempts' directories are.
            clock: of this host.
            log: takes what goes wrong.
            asked: returns a number that changes whenever a gateway asks for more; None where only its file can tell.
        """
        self._database = database
        self._state_dir = state_dir
        self._clock = clock
        self._log = log
        self._asked = asked
        self._wants: dict[int, tuple[int, AllowanceWanted]] = {}  # of those that tell when they ask
        self._told: dict[int, RunAllowance] = {}  # what each attempt's file says
        self._known: list[Budget] = []
        self._look_at = 0.0
        self._is_new = True
        self._without_room: frozenset[str] = frozenset()

    def has_room(self, sweep_id: str) -> bool:
        """Tell whether a sweep's runs may start, as far as budgets go."""
        return sweep_id not in self._without_room

    def first_allowance(self, sweep_id: str) -> RunAllowance | None:
        """Return what an attempt finds that is started now: nothing yet of what is shared; None without a budget."""
        known = budgets.of_sweep(self._database, sweep_id)
        return _as_told(Allowance(0), known, used_up=False) if known else None

    def step(self) -> None:
        """Answer the gateways that ask for more, and look now and then at how all budgets stand."""
        known = budgets.all_budgets(self._database)
        if not known and not self._told and not self._is_new:
            self._without_room = frozenset()
            return
        members = {budget: budgets.sweeps_of(self._database, budget) for budget in known}
        sweep_ids = {sweep_id for found in members.values() for sweep_id in found}
        living = [
            attempt
            for attempt in budgets.attempts_at_work(self._database)
            if attempt.sweep_id in sweep_ids or self._is_told(attempt)  # also of a budget that was taken away
        ]
        self._told = {attempt.id: self._told[attempt.id] for attempt in living if attempt.id in self._told}
        self._wants = {attempt.id: self._wants[attempt.id] for attempt in living if attempt.id in self._wants}
        wanted = {attempt.id: self._wanted(attempt) for attempt in living}
        is_due = self._clock.monotonic() >= self._look_at or [*known] != self._known
        if is_due or any(self._waits(attempt.id, wanted[attempt.id]) for attempt in living):
            self._look_at = self._clock.monotonic() + _LOOK_SECONDS
            self._known = known
            self._hand_out(known, members, living, wanted)
            self._is_new = False

    def _is_told(self, attempt: SharingAttempt) -> bool:
        """Tell whether an attempt has an allowance, perhaps of an engine before this one."""
        if self._is_new:
            return (self._state_dir / attempt.directory / protocol.ALLOWANCE).exists()
        return attempt.id in self._told

    def _wanted(self, attempt: SharingAttempt) -> AllowanceWanted:
        asked = self._asked(attempt)
        before = self._wants.get(attempt.id)
        if before is not None and before[0] == asked:
            return before[1]
        found = self._read_wanted(attempt)
        if asked is not None and found is not None:
            self._wants[attempt.id] = (asked, found)
        return found or AllowanceWanted(CallAmounts(), CallAmounts())

    def _read_wanted(self, attempt: SharingAttempt) -> AllowanceWanted | None:
        """Read what a gateway has asked for; None where that can't be read."""
        try:
            path = self._state_dir / attempt.directory / protocol.ALLOWANCE_WANTED
            found = protocol.read_if_there(path, AllowanceWanted)
        except (OSError, DataProblem) as problem:
            self._log(f"what model calls attempt {attempt.id} wants can't be read", problem)
            return None
        if found is None or not all(map(_is_amount, (*_values(found.least), *_values(found.wanted)))):
            return AllowanceWanted(CallAmounts(), CallAmounts())
        return found

    def _waits(self, attempt_id: int, wanted: AllowanceWanted) -> bool:
        """Tell whether a call waits for an answer of the engine."""
        told = self._told.get(attempt_id)
        return told is None or (not told.used_up and not _covers(told, wanted.least))

    def _hand_out(
        self,
        known: Sequence[Budget],
        members: Mapping[Budget, Sequence[str]],
        living: Sequence[SharingAttempt],
        wanted: Mapping[int, AllowanceWanted],
    ) -> None:
        found = {standing.budget: standing for standing in standings(self._database, known)}
        free = {(budget, unit): found[budget].free(unit) for budget in known for unit in _UNITS}
        given = budgets.allowances(self._database)
        allowed: dict[int, Allowance] = {}
        told: dict[int, RunAllowance] = {}
        short: set[Budget] = set()
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
            told[attempt.id] = _as_told(more, shared, used_up=bool(missing))
        if allowed:
            budgets.allow(self._database, allowed.values())
        for attempt in living:
            if self._told.get(attempt.id) != told[attempt.id]:
                place = self._state_dir / attempt.directory / protocol.ALLOWANCE
                try:
                    files.write_json(place, asdict(told[attempt.id]))
                except OSError as problem:  # it is written at the next look, and keeps no other waiting
                    self._log(f"what model calls attempt {attempt.id} may make can't be written", problem)
                else:
                    self._told[attempt.id] = told[attempt.id]
        for standing in found.values():
            self._tell(standing, is_short=standing.budget in short)
        self._without_room = frozenset(
            sweep_id
            for budget in known
            if budget in short or not _has_room(budget, {unit: free[budget, unit] for unit in _UNITS})
            for sweep_id in members[budget]
        )

    def _tell(self, standing: BudgetStanding, *, is_short: bool) -> None:
        """Tell of 80 % and of the end of a budget, each once until it is changed."""
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
    used: CallAmounts,
    wanted: AllowanceWanted,
    shared: Sequence[Budget],
    free: Mapping[tuple[Budget, str], float],
    at_work: int,
) -> tuple[Allowance, set[Budget]]:
    """Return what an attempt is allowed from now on, and the budgets that have not enough for its next call."""
    grown: dict[str, float] = {}
    missing: set[Budget] = set()
    for unit in _UNITS:
        holders = [budget for budget in shared if getattr(budget, unit) is not None]
        spent = getattr(used, unit)
        have = max(getattr(now, unit), spent)
        least, most = getattr(wanted.least, unit), getattr(wanted.wanted, unit)
        missing |= {budget for budget in holders if least > have and least - have > free[budget, unit]}
        room = max(0.0, min((free[budget, unit] for budget in holders), default=0.0))
        # By what is free without its own part, so that one that asks again gets no more of it.
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


def _as_told(allowance: Allowance, shared: Sequence[Budget], *, used_up: bool) -> RunAllowance:
    """Write an allowance for a gateway: of what no budget limits there is any amount."""
    limited = {unit for budget in shared for unit, _ in _limited(budget)}
    values = {unit: getattr(allowance, unit) if unit in limited else None for unit in _UNITS}
    names = [f"the {budget.scope} {budget.name}" for budget in shared]
    return RunAllowance(**values, used_up=used_up, of=" and ".join(names))


def _has_room(budget: Budget, free: Mapping[str, float]) -> bool:
    return all(free[unit] > _LEAST_ROOM * limit for unit, limit in _limited(budget))


def _covers(told: RunAllowance, needed: CallAmounts) -> bool:
    limits = ((getattr(told, unit), getattr(needed, unit)) for unit in _UNITS)
    return all(limit is None or amount <= limit for limit, amount in limits)


def _limited(budget: Budget) -> list[tuple[str, float]]:
    return [(unit, limit) for unit in _UNITS if (limit := getattr(budget, unit)) is not None]


def _amounts(uses: Iterable[ModelUse]) -> CallAmounts:
    return _sum(CallAmounts(use.calls, use.tokens, use.charged) for use in uses)


def _beyond(allowance: Allowance, used: CallAmounts) -> CallAmounts:
    return CallAmounts(
        max(0, allowance.calls - used.calls),
        max(0, allowance.tokens - used.tokens),
        max(0.0, allowance.usd - used.usd),
    )


def _sum(amounts: Iterable[CallAmounts]) -> CallAmounts:
    found = list(amounts)
    return CallAmounts(
        sum(one.calls for one in found), sum(one.tokens for one in found), sum(one.usd for one in found)
    )


def _values(amounts: CallAmounts) -> tuple[float, ...]:
    return tuple(asdict(amounts).values())


def _is_amount(value: float) -> bool:
    return math.isfinite(value) and 0 <= value < 1 << 50
