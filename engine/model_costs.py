"""Tokens and costs of model calls, by model, including how much of them is estimated or unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.environment.gateway.prices import PriceTable, Tier, added
from mlebench_console.state.usage.model_calls import ModelUse

CURRENCY = "USD"
_TOKENS = tuple(field.name for field in fields(TokenUsage))
_MOST_NAMED = 4
_CALLS = ("calls", "errors", "limited", "refused", "estimated")


@dataclass(frozen=True)
class ModelTotal:
    """All calls to one model.

    Attributes:
        charged: the US dollars charged to budgets.
        cost: in US dollars; None where its price is not known.
    """

    provider: str
    model: str
    calls: int
    errors: int
    limited: int
    refused: int
    estimated: int
    usage: TokenUsage
    charged: float
    cost: float | None


@dataclass(frozen=True)
class Spending:
    """The total of some calls, of one run or of many."""

    models: tuple[ModelTotal, ...] = ()

    def _sum(self, count: Callable[[ModelTotal], int | None]) -> int:
        return sum(count(total) or 0 for total in self.models)

    @property
    def calls(self) -> int:
        """How many calls were sent to providers."""
        return self._sum(lambda total: total.calls)

    @property
    def errors(self) -> int:
        """How many of them have no complete answer."""
        return self._sum(lambda total: total.errors)

    @property
    def limited(self) -> int:
        """How many of these a provider has rate-limited (status 429)."""
        return self._sum(lambda total: total.limited)

    @property
    def refused(self) -> int:
        """How many further calls the gateway did not send."""
        return self._sum(lambda total: total.refused)

    @property
    def estimated(self) -> int:
        """How many calls have estimated tokens."""
        return self._sum(lambda total: total.estimated)

    @property
    def usage(self) -> TokenUsage:
        """The tokens of all of them."""
        return _added(total.usage for total in self.models)

    @property
    def tokens(self) -> int:
        """All tokens of prompts and answers."""
        return self._sum(lambda total: (total.usage.input_tokens or 0) + (total.usage.output_tokens or 0))

    @property
    def charged(self) -> float:
        """US dollars charged to budgets, including answers whose price is not known."""
        return sum(total.charged for total in self.models)

    @property
    def cost(self) -> float | None:
        """US dollars; None where the price of a model is not known."""
        return None if self.unpriced else self.least_cost

    @property
    def least_cost(self) -> float:
        """US dollars for the models whose price is known."""
        return _cost(self.models)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The used models whose price is not known."""
        return tuple(dict.fromkeys(total.model for total in self.models if total.cost is None))

    def document(self) -> dict[str, Any]:
        """Return it as it stands in JSON documents."""
        return {
            "calls": self.calls,
            "errors": self.errors,
            "limited": self.limited,
            "refused": self.refused,
            "estimated": self.estimated,
            **asdict(self.usage),
            "cost": self.cost,
            "least_cost": self.least_cost,
            "currency": CURRENCY,
            "models_without_price": list(self.unpriced),
        }


def spending_of(uses: Iterable[ModelUse], prices: PriceTable) -> Spending:
    """Add up and price the model calls of some attempts."""
    by_model: defaultdict[tuple[str, str], list[ModelUse]] = defaultdict(list)
    for use in uses:
        by_model[use.provider, use.model].append(use)
    totals = []
    for (provider, model), found in by_model.items():
        usage = TokenUsage(**_sums(_TOKENS, found))
        cost = added(_cost_of(use, prices) for use in found)
        charged = sum(use.charged for use in found)
        totals.append(
            ModelTotal(provider, model, **_sums(_CALLS, found), usage=usage, charged=charged, cost=cost)
        )
    return Spending(tuple(totals))


def known_cost(uses: Iterable[ModelUse], prices: PriceTable) -> float:
    """Return the cost of model calls as far as prices are known; faster than a whole `Spending`, for many runs."""
    return sum(_cost_of(use, prices) or 0.0 for use in uses)


def together(parts: Iterable[Spending]) -> Spending:
    """Add up several totals."""
    by_model: defaultdict[tuple[str, str], list[ModelTotal]] = defaultdict(list)
    for part in parts:
        for total in part.models:
            by_model[total.provider, total.model].append(total)
    return Spending(
        tuple(
            ModelTotal(
                provider,
                model,
                **_sums(_CALLS, found),
                usage=_added(total.usage for total in found),
                charged=sum(total.charged for total in found),
                cost=None if any(total.cost is None for total in found) else _cost(found),
            )
            for (provider, model), found in by_model.items()
        )
    )


def named(models: Sequence[str]) -> str:
    """List a few models as text; an agent may have requested any number of them."""
    more = len(models) - _MOST_NAMED
    return ", ".join(models[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _cost_of(use: ModelUse, prices: PriceTable) -> float | None:
    usage = TokenUsage(*(getattr(use, name) for name in _TOKENS))
    return prices.cost_of(use.model, usage, Tier(use.prompt_above, use.service))


def _cost(totals: Iterable[ModelTotal]) -> float:
    return sum(total.cost or 0.0 for total in totals)


def _added(usages: Iterable[TokenUsage]) -> TokenUsage:
    return TokenUsage(**_sums(_TOKENS, list(usages)))


def _sums(names: Sequence[str], counted: Sequence[ModelUse | ModelTotal | TokenUsage]) -> dict[str, int]:
    return {name: sum(getattr(one, name) or 0 for one in counted) for name in names}
