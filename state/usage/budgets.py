"""Budgets of model calls that the runs of a sweep or an experiment share."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from mlebench_console.foundation.conditions import Amounts, Budget
from mlebench_console.state import events
from mlebench_console.state.database import Database
from mlebench_console.state.event_records import EventKind, ExperimentBudget
from mlebench_console.state.usage import model_calls


class BudgetScope(StrEnum):
    """The kind of group whose runs share a budget."""

    SWEEP = "sweep"
    EXPERIMENT = "experiment"


@dataclass(frozen=True, kw_only=True)
class SharedBudget(Budget):
    """A budget that several runs share, and how much of it is used by the calls that have ended.

    Attributes:
        name: of the sweep or the experiment.
        told: the used share that was last reported; 0 for none.
    """

    scope: BudgetScope
    name: str
    told: float = 0.0
    used: Amounts = Amounts()  # noqa: RUF009 - it is immutable

    @property
    def share(self) -> float:
        """The used share of the unit that is nearest to its limit."""
        return self.used.share_of(self)

    @property
    def has_room(self) -> bool:
        """Whether it is not used up, so that runs may start and call models."""
        return self.share < 1

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        budget = asdict(self)
        used = budget.pop("used")
        return {"budget": budget, "used": used, "share": self.share, "has_room": self.has_room}


def all_budgets(database: Database, sweep_id: str | None = None) -> list[SharedBudget]:
    """Read all budgets, or those that a sweep's runs share: its own, and those of its experiments."""
    found = []
    for budget in database.records(SharedBudget, "SELECT * FROM budgets ORDER BY scope, name"):
        members = sweeps_of(database, budget.scope, budget.name)
        if sweep_id is None or sweep_id in members:
            used = (model_calls.amounts_of_sweep(database, member) for member in members)
            found.append(replace(budget, used=sum(used, Amounts())))
    return found


def of_group(database: Database, scope: BudgetScope, name: str) -> Budget:
    """Read the limits of a sweep or an experiment, which may be none."""
    found = database.record(Budget, "SELECT * FROM budgets WHERE scope = ? AND name = ?", (scope, name))
    return Budget() if found is None else found


def sweeps_of(database: Database, scope: BudgetScope, name: str) -> tuple[str, ...]:
    """Return the sweeps whose runs share a budget."""
    if scope is BudgetScope.SWEEP:
        return (name,)
    rows = database.rows("SELECT sweep_id FROM experiment_sweeps WHERE experiment_id = ?", (name,))
    return tuple(row["sweep_id"] for row in rows)


def set_limits(
    database: Database, scope: BudgetScope, name: str, limits: Budget, *, now: float, by: str = ""
) -> None:
    """Set the budget that the runs of a sweep or an experiment share; empty limits remove it."""
    with database.transaction():
        database.execute("DELETE FROM budgets WHERE scope = ? AND name = ?", (scope, name))
        if limits.is_limited:
            database.insert("budgets", {"scope": scope, "name": name, **limits.limits, "told": 0.0})
        who = f" by {by}" if by else ""
        text = f"budget of model calls set to {limits.in_words()}{who}"
        _append(database, scope, name, EventKind(f"{scope}.budget"), text, now)


def note_told(database: Database, budget: SharedBudget, share: float, text: str, *, now: float) -> None:
    """Add an event about the used share of a budget, and record that it was reported."""
    with database.transaction():
        database.execute(
            "UPDATE budgets SET told = ? WHERE scope = ? AND name = ?", (share, budget.scope, budget.name)
        )
        kind = EventKind(f"{budget.scope}.budget_{'used_up' if share >= 1 else 'warning'}")
        _append(database, budget.scope, budget.name, kind, text, now)


def _append(
    database: Database, scope: BudgetScope, name: str, kind: EventKind, text: str, now: float
) -> None:
    if scope is BudgetScope.SWEEP:
        events.append(database, now, kind, text, sweep_id=name)
    else:
        events.append(database, now, kind, f"experiment {name}: {text}", detail=ExperimentBudget(name))
