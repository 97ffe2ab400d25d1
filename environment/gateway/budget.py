"""A run's budgets of model calls: what is spent, what is reserved for calls under way, and whether one more fits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from mlebench_console.environment.gateway.dialects import ErrorKind, RefusedCall, TokenUsage
from mlebench_console.environment.gateway.orders import SHARED_BUDGET, BudgetNotice
from mlebench_console.environment.gateway.prices import PriceTable, tier_of
from mlebench_console.environment.gateway.records import NOT_SENT, ModelCall, estimated_tokens
from mlebench_console.foundation import files
from mlebench_console.foundation.conditions import Amounts, Budget
from mlebench_console.foundation.problems import DataProblem

SILENCE_SECONDS = 600.0  # a killed engine may have been started again by then
# For calls that state no limit of their answer, in a run with a budget of tokens or money.
_LONGEST_OUTPUT_TOKENS = 131_072  # no model's answer is longer: where so much is left, no limit is set
_SET_OUTPUT_TOKENS = (
    16_384  # providers refuse limits above those of their models, and nearly all accept this one
)
_LEAST_OUTPUT_TOKENS = 256


class OverBudget(RefusedCall):
    """A call is not sent because of a budget; the message says which."""

    def __init__(self, text: str, *, is_shared: bool = False) -> None:
        # The status with which most providers report a used-up quota.
        super().__init__(text, ErrorKind.QUOTA, 429)
        self.is_shared = is_shared


class EngineSilent(RefusedCall):
    """A call is not sent, because the engine has not confirmed for too long that a shared budget is left."""

    def __init__(self) -> None:
        text = "the engine, which counts the budget that this run shares, does not answer"
        super().__init__(text, ErrorKind.SERVER, 503)


class NoticeReader:
    """Reads the engine's notices about the budgets that the run shares with others.

    The engine repeats them, so that silence means that it can count nothing. Silence is measured by the gateway's own
    clock, from when a notice was first seen, since the clocks of hosts may differ.
    """

    def __init__(self, attempt: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = attempt / SHARED_BUDGET
        self._clock = clock
        self._version: tuple[int, int] | None = None
        self._notice: BudgetNotice | None = None
        self._heard_at = clock()

    def look(self) -> bool:
        """Read the notice if it is new, and return whether a budget is shared; called regularly, to measure silence."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        except OSError:  # as on a shared disk that is away: nothing is heard
            return self._notice is not None
        version = (status.st_ino, status.st_mtime_ns)
        if version != self._version:
            # A damaged one says nothing, and is replaced by the next.
            with (
                suppress(OSError, DataProblem, msgspec.MsgspecError),
                files.reading_untrusted(self._path) as stream,
            ):
                self._notice = msgspec.json.decode(stream.read(), type=BudgetNotice)
                self._version, self._heard_at = version, self._clock()
        return True

    def latest(self) -> BudgetNotice | None:
        """Return the latest notice; None where the run shares no budget.

        Raises:
            EngineSilent: it is too old to be relied upon, or can't be read.
        """
        if not self.look():
            return None
        if self._notice is None or self._clock() - self._heard_at > SILENCE_SECONDS:
            raise EngineSilent
        return self._notice


def charge(call: ModelCall, prices: PriceTable) -> Amounts:
    """Return what a sent call costs its budgets, the cost that its provider reports or, without one, by its price.

    A model without a price is charged at the requested model's.
    """
    # A request for `model` is often answered by `model-2026-05-01`, which must not be free for lack of a price.
    is_known = call.model and prices.price_of(call.model) is not None
    amount = _amount(call.model if is_known else call.asked_model, call.usage, call.service_tier, prices)
    return amount if call.cost is None else replace(amount, usd=call.cost)


def _amount(model: str, usage: TokenUsage, service_tier: str, prices: PriceTable) -> Amounts:
    tier = tier_of(usage, service_tier)
    cost = prices.cost_of(model, usage, tier)
    if cost is None:  # a service tier without a price is charged at the ordinary price
        cost = prices.cost_of(model, usage, replace(tier, service=""))
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return Amounts(1, tokens, cost or 0.0)


class Ledger:
    """Enforces the budget of one attempt, and refuses calls when a budget that it shares is used up.

    A call is admitted if the most that it may use fits beside what is spent and what is reserved for calls under
    way. So the attempt's own budget is exceeded at most by the error of estimated prompts.
    """

    def __init__(self, budget: Budget, prices: PriceTable, notices: NoticeReader | None = None) -> None:
        self._budget = budget
        self._prices = prices
        self._notices = notices
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
        answers: int = 1,
        service_tier: str = "",
    ) -> int | None:
        """Reserve the most that a call may cost.

        Args:
            call_id: its id, until it ends.
            model: the requested model.
            input_characters: the length of its prompt.
            most_output: the limit of each of its answers; None if it states none.
            answers: how many it requests.
            service_tier: the tier that it requests.

        Returns:
            The limit to set for each answer; None where the call may be sent as it is.

        Raises:
            OverBudget: it does not fit, or its price is unknown.
            EngineSilent: it is not known whether a shared budget has anything left.
        """
        notice = self._notices.latest() if self._notices is not None else None
        is_priced = self._budget.usd is not None or (notice is not None and notice.in_money)
        prompt_tokens = estimated_tokens(input_characters)
        prompt = TokenUsage(input_tokens=prompt_tokens)
        tier = tier_of(prompt, service_tier)
        if is_priced and self._prices.cost_of(model, TokenUsage(1, output_tokens=1), tier) is None:
            by = f" by service '{tier.service}'" if tier.service else ""
            text = f"this run has a budget in money, and the price of '{model[:100]}'{by} is not known"
            raise OverBudget(text)
        if notice is not None and notice.used_up:
            raise OverBudget(f"the budget of {notice.used_up} is used up", is_shared=True)
        taken = sum(self._reserved.values(), self._spent)
        least = taken + _amount(model, prompt, service_tier, self._prices)
        if not least.fits(self._budget):
            limits = self._budget.exceeded_by(least)
            raise OverBudget(f"the budget of this run is used up: {limits.in_words()}")

        def reserved(output_tokens: int) -> Amounts:
            usage = TokenUsage(input_tokens=prompt_tokens, output_tokens=output_tokens)
            return _amount(model, usage, service_tier, self._prices)

        limit = None
        if most_output is None:
            price = (reserved(_LONGEST_OUTPUT_TOKENS).usd - reserved(0).usd) / _LONGEST_OUTPUT_TOKENS
            most_output = int(min(self._output_left(least, price) / answers, _LONGEST_OUTPUT_TOKENS))
            if most_output < _LONGEST_OUTPUT_TOKENS:
                limit = most_output = min(most_output, _SET_OUTPUT_TOKENS)
        most = reserved(answers * most_output)
        is_too_short = limit is not None and limit < _LEAST_OUTPUT_TOKENS
        if is_too_short or not (taken + most).fits(self._budget):
            raise OverBudget(
                "the budget of this run does not cover the most that this call may use, a prompt of about"
                f" {prompt_tokens:,} tokens and {answers:,} x {most_output:,} tokens of answers: of it"
                f" {self._budget.in_words(taken)} are used, or reserved for calls under way"
            )
        self._reserved[call_id] = most
        return limit

    def _output_left(self, used: Amounts, price: float) -> float:
        """Return how many tokens of answers, each at a price in dollars, the attempt's budget still covers."""
        left = math.inf
        if self._budget.tokens is not None:
            left = self._budget.tokens - used.tokens
        if self._budget.usd is not None and price:
            left = min(left, (self._budget.usd - used.usd) / price - 1)  # one less, for errors of rounding
        return max(0.0, left)
