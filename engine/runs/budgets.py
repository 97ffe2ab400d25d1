"""Budgets of model calls that runs share: how much of them is used, and what happens when one is used up.

The engine adds up the calls of all runs. When a budget is used up, no more of its runs start, and the gateways of its
live runs are told to refuse calls (`shared_budget.json`). So a budget is exceeded at most by the calls under way then,
and by those that were made until they were counted and the gateways told. The engine repeats its notices: a gateway
that hears nothing for ten minutes refuses calls until it hears again, since nobody counts them then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from mlebench_console.environment.gateway.orders import BudgetNotice
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation import files
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.conditions import MOST_OF_BUDGET
from mlebench_console.foundation.daemons import Log
from mlebench_console.state import runs
from mlebench_console.state.database import Database
from mlebench_console.state.usage import budgets
from mlebench_console.state.usage.budgets import SharedBudget

# Directories may be on a network file system, and there may be thousands: what has not changed is repeated rarely.
_REPEAT_SECONDS = 60.0


class SharedBudgets:
    """Writes the notices to gateways, records events when budgets run out, and says which sweeps may start runs."""

    def __init__(self, database: Database, state_dir: Path, clock: Clock, log: Log) -> None:
        self._database = database
        self._state_dir = state_dir
        self._clock = clock
        self._log = log
        # The notice in the directory of each attempt; None until this engine has written or removed it.
        self._written: dict[int, BudgetNotice | None] = {}
        self._unwritable: set[int] = set()
        # Whether no attempt has a notice, since no budget is shared: thousands need not be looked at then.
        self._is_clear = False
        self._used_up: frozenset[str] = frozenset()

    def has_room(self, sweep_id: str) -> bool:
        """Return whether the budgets of a sweep allow more of its runs to start."""
        return sweep_id not in self._used_up

    def notice_for(self, sweep_id: str) -> BudgetNotice | None:
        """Return the notice for a new attempt; None where its sweep shares no budget."""
        return self._notice(budgets.all_budgets(self._database, sweep_id))

    def step(self) -> None:
        """Add up what is used, record what has been reached, and write the notices that changed or are old."""
        by_sweep: defaultdict[str, list[SharedBudget]] = defaultdict(list)
        for budget in budgets.all_budgets(self._database):
            self._report(budget)
            for sweep_id in budgets.sweeps_of(self._database, budget.scope, budget.name):
                by_sweep[sweep_id].append(budget)
        self._used_up = frozenset(
            sweep_id for sweep_id, shared in by_sweep.items() if not all(one.has_room for one in shared)
        )
        self._write_notices(by_sweep)

    def _notice(self, shared: Sequence[SharedBudget]) -> BudgetNotice | None:
        if not shared:
            return None
        used_up = [f"the {one.scope} {one.name}" for one in shared if not one.has_room]
        in_money = any(one.usd is not None for one in shared)
        return BudgetNotice(self._clock.now(), " and ".join(used_up), in_money)

    def _write_notices(self, by_sweep: Mapping[str, Sequence[SharedBudget]]) -> None:
        """Write the notices of the live attempts, and remove those of budgets that were removed."""
        if self._is_clear and not by_sweep:
            return
        written, self._written = self._written, {}
        unwritable, self._unwritable = self._unwritable, set()
        for attempt, (directory, sweep_id) in runs.occupying_attempts(self._database).items():
            notice = self._notice(by_sweep.get(sweep_id, ()))
            if attempt in written and not _is_due(written[attempt], notice):
                self._written[attempt] = written[attempt]
                continue
            path = self._state_dir / directory / protocol.SHARED_BUDGET
            try:
                if notice is None:
                    path.unlink(missing_ok=True)
                else:
                    files.write_json(path, asdict(notice), durable=False)
            except FileNotFoundError:
                continue  # its directory, in which it gets its first notice, is not written yet
            except OSError as problem:  # tried again in the next step, without delaying other attempts
                self._unwritable.add(attempt)
                if attempt not in unwritable:
                    self._log(f"{protocol.SHARED_BUDGET} of attempt {attempt} can't be written", problem)
            else:
                self._written[attempt] = notice
        self._is_clear = not by_sweep and not self._unwritable

    def _report(self, budget: SharedBudget) -> None:
        """Record an event at 80 % of a budget and one when it is used up, each once until the budget is changed."""
        share, used = budget.share, budget.in_words(budget.used)
        reached = 1.0 if share >= 1 else MOST_OF_BUDGET if share >= MOST_OF_BUDGET else 0.0
        if reached > budget.told:
            text = f"{share:.0%} of its budget of model calls is used: {used}"
            if reached == 1.0:
                text = f"its budget of model calls is used up: {used}; no more of its runs start"
            budgets.note_told(self._database, budget, reached, text, now=self._clock.now())


def _is_due(before: BudgetNotice | None, notice: BudgetNotice | None) -> bool:
    """Return whether a notice has to be written in place of another one, or removed."""
    if before is None or notice is None:
        return before is not notice
    # The clock may be set back.
    return replace(before, at=notice.at) != notice or abs(notice.at - before.at) >= _REPEAT_SECONDS
