"""Tokens and costs of model calls, by model, including how much of them is estimated or unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from mlebench_console.environment.gateway.budget import charge
from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import PriceTable, Tier, added, tier_of
from mlebench_console.environment.gateway.records import NOT_SENT, CallOutcome, ModelCall
from mlebench_console.state.usage.model_calls import CallCounts, ModelUse, counts_of

CURRENCY = "USD"
TOKENS = tuple(field.name for field in fields(TokenUsage))
CALLS = ("calls", "errors", "limited", "refused", "estimated")
# In place of the service tier where providers report the costs of calls, as `charged`. No tier's name is as long.
_REPORTED_COST = "cost reported by its provider"
_MOST_NAMED = 4
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class ModelTotal(CallCounts):
    """All calls to one model.

    Attributes:
        cost: in US dollars; None where its price is not known.
        is_reported: whether the provider reports the cost, at least of some of them.
    """

    provider: str
    model: str
    cost: float | None
    is_reported: bool = False

    @property
    def usage(self) -> TokenUsage:
        """The tokens of all of them."""
        return usage_of(self)

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        return {**asdict(self), "usage": asdict(self.usage)}


@dataclass(frozen=True)
class Spending(CallCounts):
    """The total of some calls, of one run or of many."""

    models: tuple[ModelTotal, ...] = ()

    @property
    def cost(self) -> float | None:
        """US dollars; None where the price of a model is not known."""
        return None if self.unpriced else self.least_cost

    @property
    def least_cost(self) -> float:
        """US dollars for the models whose price is known."""
        return sum(total.cost or 0.0 for total in self.models)

    @property
    def reported(self) -> tuple[str, ...]:
        """The used models whose provider reports their cost."""
        return tuple(dict.fromkeys(total.model for total in self.models if total.is_reported))

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The used models whose price is not known."""
        return tuple(dict.fromkeys(total.model for total in self.models if total.cost is None))

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        return {
            **{name: getattr(self, name) for name in (*CALLS, *TOKENS)},
            "cost": self.cost,
            "least_cost": self.least_cost,
            "currency": CURRENCY,
            "models_without_price": list(self.unpriced),
        }


def use_of(attempt_id: int, call: ModelCall, prices: PriceTable) -> ModelUse:
    """Return one call as it is counted, charged at the prices of its attempt."""
    usage = call.usage
    is_sent = call.outcome not in NOT_SENT
    tier = tier_of(usage, call.service_tier)
    return ModelUse(
        attempt_id,
        call.provider,
        call.model or call.asked_model,
        tier.prompt_above,
        tier.service if call.cost is None else _REPORTED_COST,
        calls=int(is_sent),
        errors=int(is_sent and call.outcome is not CallOutcome.OK),
        limited=int(call.outcome is CallOutcome.ERROR and call.status == _TOO_MANY_REQUESTS),
        refused=int(not is_sent),
        estimated=int(call.estimated),
        **{name: getattr(usage, name) or 0 for name in TOKENS},
        charged=charge(call, prices).usd if is_sent else 0.0,
        last_at=call.at,
    )


def spending_of(uses: Iterable[ModelUse], prices: PriceTable) -> Spending:
    """Add up and price the model calls of some attempts."""
    return _spending((use, _cost_of(use, prices)) for use in uses)


def known_cost(uses: Iterable[ModelUse], prices: PriceTable) -> float:
    """Return the cost of model calls as far as prices are known; faster than a whole `Spending`, for many runs."""
    return sum(_cost_of(use, prices) or 0.0 for use in uses)


def sum_of(parts: Iterable[Spending]) -> Spending:
    """Add up several totals."""
    return _spending((total, total.cost) for part in parts for total in part.models)


def usage_of(counts: CallCounts) -> TokenUsage:
    """Return the tokens of some calls."""
    return TokenUsage(*(getattr(counts, name) for name in TOKENS))


def named(models: Sequence[str]) -> str:
    """List a few models as text; an agent may have requested any number of them."""
    more = len(models) - _MOST_NAMED
    return ", ".join(models[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _spending(parts: Iterable[tuple[ModelUse | ModelTotal, float | None]]) -> Spending:
    """Add up the calls to each model, each part with its cost."""
    by_model: defaultdict[tuple[str, str], list[tuple[ModelUse | ModelTotal, float | None]]] = defaultdict(
        list
    )
    for part, cost in parts:
        by_model[part.provider, part.model].append((part, cost))
    models = tuple(
        ModelTotal(
            *key,
            added(cost for _, cost in found),
            any(_is_reported(part) for part, _ in found),
            **counts_of(part for part, _ in found),
        )
        for key, found in by_model.items()
    )
    return Spending(models, **counts_of(models))


def _is_reported(part: ModelUse | ModelTotal) -> bool:
    return part.is_reported if isinstance(part, ModelTotal) else part.service == _REPORTED_COST


def _cost_of(use: ModelUse, prices: PriceTable) -> float | None:
    if _is_reported(use):
        return use.charged
    return prices.cost_of(use.model, usage_of(use), Tier(use.prompt_above, use.service))
