"""A run's budgets of model calls: what is spent, what is reserved for calls under way, and whether one more fits."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from mlebench_console.environment.gateway.dialects import Usage
from mlebench_console.environment.gateway.prices import PriceTable, tier_of
from mlebench_console.environment.gateway.records import NOT_SENT, ModelCall, estimated_tokens
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import AllowanceRequest, RunAllowance
from mlebench_console.foundation import files
from mlebench_console.foundation.amounts import Amounts, Budget
from mlebench_console.foundation.problems import DataProblem

_USUAL_OUTPUT_TOKENS = 4096  # reserved for a call that states no limit


class OverBudget(Exception):
    """A call is not sent because of a budget; the message says which.

    Attributes:
        is_shared: whether the budget is that of a sweep or an experiment.
    """

    def __init__(self, text: str, *, is_shared: bool = False) -> None:
        super().__init__(text)
        self.is_shared = is_shared


class AllowanceNeeded(Exception):
    """A call must wait until the engine allows more of a shared budget, or declares it used up."""


class SharedAllowance:
    """The run's share of the budgets of its sweep and its experiments, which the engine grants in small amounts."""

    def __init__(self, attempt: Path) -> None:
        self._allowance_path = attempt / protocol.ALLOWANCE
        self._request_path = attempt / protocol.ALLOWANCE_REQUEST
        self._version: tuple[int, int] | None = None
        self._allowance: RunAllowance | None = None
        self._last_request: AllowanceRequest | None = None

    def read(self) -> RunAllowance | None:
        """Return what the run may use by now; None where it shares no budget."""
        try:
            status = self._allowance_path.stat()
        except FileNotFoundError:
            return None
        version = (status.st_ino, status.st_mtime_ns)
        if version != self._version:
            try:
                self._allowance = protocol.read(self._allowance_path, RunAllowance)
            except DataProblem:
                # Allow nothing until the engine has replaced the damaged file.
                return RunAllowance(0, 0, 0.0, used_up=False, of="its sweep")
            self._version = version
        return self._allowance

    def request(self, request: AllowanceRequest) -> None:
        """Write a request to the engine unless it repeats the last one."""
        if request != self._last_request:
            files.write_json(self._request_path, asdict(request), durable=False)
            self._last_request = request


def charge(call: ModelCall, prices: PriceTable) -> Amounts:
    """Return what a sent call costs its budgets; a model without a price is charged at the requested model's."""
    # A request for `model` is often answered by `model-2026-05-01`, which must not be free for lack of a price.
    is_known = call.model and prices.price_of(call.model) is not None
    return _amount(call.model if is_known else call.asked_model, call.usage, call.service_tier, prices)


def _amount(model: str, usage: Usage, service_tier: str, prices: PriceTable) -> Amounts:
    tier = tier_of(usage, service_tier)
    cost = prices.cost_of(model, usage, tier)
    if cost is None:  # a service tier without a price is charged at the ordinary price
        cost = prices.cost_of(model, usage, replace(tier, service=""))
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return Amounts(1, tokens, cost or 0.0)


class Ledger:
    """Enforces the budget of one attempt, and its share of the budgets that it shares.

    A call is admitted while the sum of what is spent, what is reserved for calls under way and its own prompt
    fits. So only the answer of the last call can exceed the budget.
    """

    def __init__(self, budget: Budget, prices: PriceTable, shared: SharedAllowance | None = None) -> None:
        self._budget = budget
        self._prices = prices
        self._shared = shared
        self._spent = Amounts()
        self._reserved: dict[str, Amounts] = {}

    def add(self, call: ModelCall) -> None:
        """Count a call that has ended."""
        self.release(call.id)
        if call.outcome not in NOT_SENT:
            self._spent += charge(call, self._prices)

    def release(self, call_id: str) -> None:
        """Drop the reservation of a call that could not be sent."""
        self._reserved.pop(call_id, None)

    def admit(
        self,
        call_id: str,
        model: str,
        input_characters: int,
        most_output: int | None,
        *,
        service_tier: str = "",
    ) -> None:
        """Reserve the most that a call may cost.

        Raises:
            OverBudget: it does not fit, or its price is unknown.
            AllowanceNeeded: more of a shared budget has been requested from the engine.
        """
        shared = self._shared.read() if self._shared is not None else None
        is_priced = self._budget.usd is not None or (shared is not None and shared.usd is not None)
        prompt_tokens = estimated_tokens(input_characters)
        prompt = Usage(input_tokens=prompt_tokens)
        tier = tier_of(prompt, service_tier)
        if is_priced and self._prices.cost_of(model, Usage(1, output_tokens=1), tier) is None:
            by = f" by service '{tier.service}'" if tier.service else ""
            text = f"this run has a budget in money, and the price of '{model[:100]}'{by} is not known"
            raise OverBudget(text)
        taken = self._spent
        for amount in self._reserved.values():
            taken += amount
        least = taken + _amount(model, prompt, service_tier, self._prices)
        if not least.fits(self._budget):
            limits = self._budget.exceeded_by(least)
            raise OverBudget(f"the budget of this run is used up: {limits.in_words()}")
        output = _USUAL_OUTPUT_TOKENS if most_output is None else max(0, most_output)
        usage = Usage(input_tokens=prompt_tokens, output_tokens=output)
        whole = _amount(model, usage, service_tier, self._prices)
        if self._shared is not None and shared is not None:
            self._check_shared(self._shared, shared, least, taken + whole + whole)
        self._reserved[call_id] = whole

    def _check_shared(
        self, source: SharedAllowance, shared: RunAllowance, least: Amounts, wanted: Amounts
    ) -> None:
        limits = Budget(shared.calls, shared.tokens, shared.usd)
        if not wanted.fits(limits):
            source.request(AllowanceRequest(least, wanted))
        if not least.fits(limits):
            if shared.used_up:
                raise OverBudget(f"the budget of {shared.of} is used up", is_shared=True)
            raise AllowanceNeeded
