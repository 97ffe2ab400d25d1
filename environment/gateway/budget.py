"""A run's budget of model calls: what is spent, what is set aside for calls under way, and whether one more fits."""

from __future__ import annotations

from dataclasses import dataclass

from environment.gateway.dialects import Usage
from environment.gateway.prices import PriceTable
from environment.gateway.records import NOT_SENT, ModelCall, estimated_tokens

_USUAL_OUTPUT_TOKENS = 4096  # set aside for a call that names no limit


class OverBudget(Exception):
    """A call that is not sent because of the budget, and why."""


@dataclass(frozen=True)
class Budget:
    """What the calls of one attempt may come to; None for any amount."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None


@dataclass(frozen=True)
class _Amount:
    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0

    def plus(self, other: _Amount) -> _Amount:
        return _Amount(self.calls + other.calls, self.tokens + other.tokens, self.dollars + other.dollars)


class Ledger:
    """Holds the calls of one attempt to its budget.

    A call is let through while what is spent, what is set aside for those under way and its own prompt fit. Only the
    answer of the last one can so exceed the budget.
    """

    def __init__(self, budget: Budget, prices: PriceTable) -> None:
        self._budget = budget
        self._prices = prices
        self._spent = _Amount()
        self._set_aside: dict[str, _Amount] = {}

    def add(self, call: ModelCall) -> None:
        """Count a call that has ended."""
        self.release(call.id)
        if call.outcome not in NOT_SENT:
            self._spent = self._spent.plus(self._amount(call.model or call.asked_model, call.usage))

    def release(self, call_id: str) -> None:
        """Set nothing aside any more for a call that could not be sent."""
        self._set_aside.pop(call_id, None)

    def admit(self, call_id: str, model: str, input_characters: int, most_output: int | None) -> None:
        """Set aside what a call may come to.

        Raises:
            OverBudget: it does not fit, or nobody can say whether it would.
        """
        price = self._prices.price_of(model)
        if self._budget.dollars is not None and price is None:
            raise OverBudget(f"this run has a budget in money, and the price of '{model[:100]}' is not known")
        taken = self._spent
        for amount in self._set_aside.values():
            taken = taken.plus(amount)
        asked = estimated_tokens(input_characters)
        least = taken.plus(self._amount(model, Usage(input_tokens=asked), calls=1))
        limits = (
            ("calls", least.calls, self._budget.calls),
            ("tokens", least.tokens, self._budget.tokens),
            ("US dollars", least.dollars, self._budget.dollars),
        )
        for unit, needed, limit in limits:
            if limit is not None and needed > limit:
                raise OverBudget(f"the budget of this run is used up: {limit:,} {unit}")
        output = _USUAL_OUTPUT_TOKENS if most_output is None else max(0, most_output)
        self._set_aside[call_id] = self._amount(model, Usage(input_tokens=asked, output_tokens=output))

    def _amount(self, model: str, usage: Usage, *, calls: int = 1) -> _Amount:
        price = self._prices.price_of(model)
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return _Amount(calls, tokens, 0.0 if price is None else price.cost(usage))
