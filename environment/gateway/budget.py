"""A run's budgets of model calls: what is spent, what is set aside for calls under way, and whether one more fits."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from environment.gateway.dialects import Usage
from environment.gateway.prices import PriceTable, tier_of
from environment.gateway.records import NOT_SENT, ModelCall, estimated_tokens
from environment.runner import protocol
from environment.runner.protocol import AllowanceWanted, CallAmounts, RunAllowance
from foundation import files
from foundation.problems import DataProblem

_USUAL_OUTPUT_TOKENS = 4096  # set aside for a call that names no limit


class OverBudget(Exception):
    """A call that is not sent because of a budget, and why.

    Attributes:
        is_shared: whether the budget is that of a sweep or an experiment.
    """

    def __init__(self, text: str, *, is_shared: bool = False) -> None:
        super().__init__(text)
        self.is_shared = is_shared


class AllowanceNeeded(Exception):
    """A call that waits until the engine allows more of a shared budget, or says that there is no more."""


@dataclass(frozen=True)
class Budget:
    """What model calls may come to; None for any amount."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None

    def exceeded_by(self, amounts: CallAmounts) -> str:
        """Name the limit that is exceeded; empty where none is."""
        pairs = (
            ("calls", amounts.calls, self.calls),
            ("tokens", amounts.tokens, self.tokens),
            ("US dollars", amounts.usd, self.dollars),
        )
        for unit, amount, limit in pairs:
            if limit is not None and amount > limit:
                return f"{limit:,} {unit}"
        return ""


class SharedAllowance:
    """The run's part of the budgets of its sweep and its experiments, as the engine hands it out in small amounts."""

    def __init__(self, attempt: Path) -> None:
        self._given = attempt / protocol.ALLOWANCE
        self._wanted = attempt / protocol.ALLOWANCE_WANTED
        self._seen: tuple[int, int] | None = None
        self._allowance: RunAllowance | None = None
        self._asked: AllowanceWanted | None = None

    def read(self) -> RunAllowance | None:
        """Return what the run may use by now; None where it shares no budget."""
        try:
            status = self._given.stat()
        except FileNotFoundError:
            return None
        seen = (status.st_ino, status.st_mtime_ns)
        if seen != self._seen:
            try:
                self._allowance = protocol.read(self._given, RunAllowance)
            except DataProblem:
                # Nobody can say what is left; the engine puts another file in its place.
                return RunAllowance(0, 0, 0.0, used_up=False, of="its sweep")
            self._seen = seen
        return self._allowance

    def ask(self, wanted: AllowanceWanted) -> None:
        """Tell the engine what is wanted, where that is news."""
        if wanted != self._asked:
            files.write_json(self._wanted, asdict(wanted), durable=False)
            self._asked = wanted


def _plus(one: CallAmounts, other: CallAmounts) -> CallAmounts:
    return CallAmounts(one.calls + other.calls, one.tokens + other.tokens, one.usd + other.usd)


def charge(call: ModelCall, prices: PriceTable) -> CallAmounts:
    """Return what a call that was sent takes from budgets, which is never nothing where its price is in doubt."""
    # Asking for `model` is often answered by `model-2026-05-01`: without a price that must not be for free.
    is_known = call.model and prices.price_of(call.model) is not None
    return _amount(call.model if is_known else call.asked_model, call.usage, call.service_tier, prices)


def _amount(model: str, usage: Usage, service_tier: str, prices: PriceTable) -> CallAmounts:
    tier = tier_of(usage, service_tier)
    cost = prices.cost_of(model, usage, tier)
    if cost is None:  # of a service that nobody asked for: better by the ordinary price than not at all
        cost = prices.cost_of(model, usage, replace(tier, service=""))
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return CallAmounts(1, tokens, cost or 0.0)


class Ledger:
    """Holds the calls of one attempt to its budget, and to its part of those that it shares.

    A call is let through while what is spent, what is set aside for those under way and its own prompt fit. Only the
    answer of the last one can so exceed the budget.
    """

    def __init__(self, budget: Budget, prices: PriceTable, shared: SharedAllowance | None = None) -> None:
        self._budget = budget
        self._prices = prices
        self._shared = shared
        self._spent = CallAmounts()
        self._set_aside: dict[str, CallAmounts] = {}

    def add(self, call: ModelCall) -> None:
        """Count a call that has ended."""
        self.release(call.id)
        if call.outcome not in NOT_SENT:
            self._spent = _plus(self._spent, charge(call, self._prices))

    def release(self, call_id: str) -> None:
        """Set nothing aside any more for a call that could not be sent."""
        self._set_aside.pop(call_id, None)

    def admit(
        self,
        call_id: str,
        model: str,
        input_characters: int,
        most_output: int | None,
        *,
        service_tier: str = "",
    ) -> None:
        """Set aside what a call may come to.

        Raises:
            OverBudget: it does not fit, or nobody can say whether it would.
            AllowanceNeeded: it may fit into what is shared, which the engine has been asked.
        """
        shared = self._shared.read() if self._shared is not None else None
        is_priced = self._budget.dollars is not None or (shared is not None and shared.usd is not None)
        asked = estimated_tokens(input_characters)
        prompt = Usage(input_tokens=asked)
        tier = tier_of(prompt, service_tier)
        if is_priced and self._prices.cost_of(model, Usage(1, output_tokens=1), tier) is None:
            by = f" by service '{tier.service}'" if tier.service else ""
            text = f"this run has a budget in money, and the price of '{model[:100]}'{by} is not known"
            raise OverBudget(text)
        taken = self._spent
        for amount in self._set_aside.values():
            taken = _plus(taken, amount)
        least = _plus(taken, _amount(model, prompt, service_tier, self._prices))
        if over := self._budget.exceeded_by(least):
            raise OverBudget(f"the budget of this run is used up: {over}")
        output = _USUAL_OUTPUT_TOKENS if most_output is None else max(0, most_output)
        usage = Usage(input_tokens=asked, output_tokens=output)
        whole = _amount(model, usage, service_tier, self._prices)
        if self._shared is not None and shared is not None:
            self._hold_to_share(self._shared, shared, least, _plus(_plus(taken, whole), whole))
        self._set_aside[call_id] = whole

    def _hold_to_share(
        self, source: SharedAllowance, shared: RunAllowance, least: CallAmounts, wanted: CallAmounts
    ) -> None:
        limits = Budget(shared.calls, shared.tokens, shared.usd)
        if limits.exceeded_by(wanted):
            source.ask(AllowanceWanted(least, wanted))
        if limits.exceeded_by(least):
            if shared.used_up:
                raise OverBudget(f"the budget of {shared.of} is used up", is_shared=True)
            raise AllowanceNeeded
