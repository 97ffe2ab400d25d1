"""Prices of tokens: the operator's own, then a dated table of the project, then genai-prices."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from mlebench_console.environment.gateway.dialects import TokenUsage
from mlebench_console.foundation.fields import read_fields

_MILLION = 1_000_000
# The names of the kinds of tokens in genai-prices.
_LISTED = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_hour": "cache_write_1h_mtok",
}


# Prompts longer than these cost more with some models. Usage is summed separately for them, so that prices can change
# later.
LONG_PROMPTS = (200_000, 272_000)
_ORDINARY_SERVICE = frozenset({"", "auto", "default", "on_demand", "standard", "standard_only"})


@dataclass(frozen=True)
class Tier:
    """The price tier of a call.

    Attributes:
        prompt_above: the greatest of `LONG_PROMPTS` that its prompt exceeds; 0 where it exceeds none.
        service: `flex`, `priority` or another tier that the provider reports; empty for ordinary service.
    """

    prompt_above: int = 0
    service: str = ""


def tier_of(usage: TokenUsage, service: str) -> Tier:
    """Return the price tier of a call, by its tokens and the service tier that its provider reports."""
    above = max((length for length in LONG_PROMPTS if (usage.input_tokens or 0) > length), default=0)
    return Tier(above, "" if service.lower() in _ORDINARY_SERVICE else service.lower())


@dataclass(frozen=True)
class TokenPrice:
    """US dollars per million tokens.

    Attributes:
        input: of the prompt.
        cached: of prompt tokens read from a cache; default `input`.
        cache_write: of prompt tokens written to a cache; default `input`.
        cache_write_hour: of prompt tokens kept in a cache for an hour; default `cache_write`.
        output: of the answer.
        reasoning: of reasoning tokens that are not shown; default `output`.
        long_prompt: the length of prompts, one of `LONG_PROMPTS`, beyond which the whole call costs more.
        long_input, long_output: the prices then; those of caches rise by the same factor as the prompt's.
        flex, priority: the factor for calls of that service tier; unknown where not given.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None
    reasoning: float | None = None
    long_prompt: float | None = None
    long_input: float | None = None
    long_output: float | None = None
    flex: float | None = None
    priority: float | None = None

    def cost(self, usage: TokenUsage, tier: Tier = Tier()) -> float | None:
        """Return the cost in US dollars; None where the price of the tier is unknown."""
        factor = {"": 1.0, "flex": self.flex, "priority": self.priority}.get(tier.service)
        if factor is None:
            return None
        is_long = self.long_prompt is not None and tier.prompt_above >= self.long_prompt
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        hour, reasoning = usage.cache_write_hour_tokens or 0, usage.reasoning_tokens or 0
        fresh = max(0, (usage.input_tokens or 0) - read - written)
        shown = max(0, (usage.output_tokens or 0) - reasoning)
        write = self.input if self.cache_write is None else self.cache_write
        prompt = (
            (fresh, self.input),
            (read, self.input if self.cached is None else self.cached),
            (max(0, written - hour), write),
            (hour, write if self.cache_write_hour is None else self.cache_write_hour),
        )
        answer = (
            (shown, self.output),
            (reasoning, self.output if self.reasoning is None else self.reasoning),
        )
        parts = (
            (prompt, _times(self.long_input, self.input) if is_long else 1.0),
            (answer, _times(self.long_output, self.output) if is_long else 1.0),
        )
        dollars = sum(more * sum(tokens * price for tokens, price in part) for part, more in parts)
        return factor * dollars / _MILLION


def _times(long: float | None, usual: float) -> float:
    return 1.0 if long is None or not usual else long / usual


def prices_given(price: TokenPrice) -> dict[str, float]:
    """Return a price as in a file, without the fields that are not given."""
    return {name: value for name, value in asdict(price).items() if value is not None}


class PriceSource(StrEnum):
    """The source of a model's price."""

    OPERATOR = "the operator"
    PROJECT = "the project"
    GENAI_PRICES = "genai-prices"


@dataclass(frozen=True)
class PriceTable:
    """Prices by patterns of models' names.

    Attributes:
        checked: when the project's prices were last compared with the providers'.
    """

    checked: date
    own: Mapping[str, TokenPrice]
    known: Mapping[str, TokenPrice]
    # A cache: matching all patterns takes longer than the rest of a call's accounting, and there are few models.
    _found: dict[str, tuple[PriceSource, TokenPrice] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def price_of(self, model: str) -> TokenPrice | None:
        """Return the price of a model by the name in its provider's answers; None where it is unknown."""
        found = self._find(model)
        return None if found is None else found[1]

    def source_of(self, model: str) -> PriceSource | None:
        """Return the source of a model's price; None where it is unknown."""
        found = self._find(model)
        return None if found is None else found[0]

    def _find(self, model: str) -> tuple[PriceSource, TokenPrice] | None:
        if model not in self._found:
            self._found[model] = self._match(model)
        return self._found[model]

    def _match(self, model: str) -> tuple[PriceSource, TokenPrice] | None:
        # OpenRouter and LiteLLM prefix the model with its maker.
        names = tuple(dict.fromkeys((model, model.rpartition("/")[2])))
        for name in names:
            for source, prices in ((PriceSource.OPERATOR, self.own), (PriceSource.PROJECT, self.known)):
                found = [pattern for pattern in prices if fnmatchcase(name, pattern)]
                if found:
                    return source, prices[max(found, key=len)]
        for name in names:
            if (price := _listed_price(name)) is not None:
                return PriceSource.GENAI_PRICES, price
        return None

    def cost_of(self, model: str, usage: TokenUsage, tier: Tier = Tier()) -> float | None:
        """Return the cost of a model's calls of one tier; None where the price is unknown."""
        if not usage.input_tokens and not usage.output_tokens:
            return 0.0
        price = self.price_of(model)
        return None if price is None else price.cost(usage, tier)

    def cost(self, uses: Iterable[tuple[str, TokenUsage]]) -> float | None:
        """Return the total cost of uses of models; None where one of the prices is unknown."""
        return added(self.cost_of(model, usage) for model, usage in uses)


def added(costs: Iterable[float | None]) -> float | None:
    """Return the sum of costs; None where one of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def price_table(own: Mapping[str, TokenPrice]) -> PriceTable:
    """Return a table of the operator's prices before those of the project."""
    checked, known = _known()
    return PriceTable(checked, own, known)


def _listed_price(model: str) -> TokenPrice | None:
    """Return a price from genai-prices, an optional extra, which is imported only for models without another price."""
    try:
        from genai_prices.data_snapshot import get_snapshot
    except ImportError:
        return None
    try:
        _provider, found = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return None
    prices = vars(found.get_prices(datetime.now(UTC)))
    usual, long = (
        {name: _in_dollars(prices.get(key), is_long) for name, key in _LISTED.items()} for is_long in (0, 1)
    )
    others = {key for key, price in prices.items() if price is not None and key.endswith("_mtok")}
    read, answered = usual.pop("input"), usual.pop("output")
    if read is None or answered is None or others - set(_LISTED.values()):
        return None  # a kind of tokens, such as sound, that costs more and is not counted separately
    lengths = {tier.start for price in prices.values() for tier in getattr(price, "tiers", ())}
    price = TokenPrice(read, answered, **usual)
    if not lengths:
        return price
    (length, *further) = sorted(lengths)
    if (
        further
        or length not in LONG_PROMPTS
        or not _are_in_proportion(usual, long, (long["input"] or 0.0) / (read or 1.0))
    ):
        return None  # prices of a form that `TokenPrice` cannot express
    return replace(price, long_prompt=length, long_input=long["input"], long_output=long["output"])


def _in_dollars(listed: Any, is_long: int) -> float | None:
    """Return one price, which may depend on the length of the prompt."""
    if tiers := getattr(listed, "tiers", None):
        return float(tiers[0].price if is_long else listed.base)
    return None if listed is None else float(getattr(listed, "base", listed))


def _are_in_proportion(
    usual: Mapping[str, float | None], long: Mapping[str, float | None], more: float
) -> bool:
    """Return whether prices of caches rise for long prompts by the same factor as the prompt's."""
    return all(math.isclose((price or 0.0) * more, long[name] or 0.0) for name, price in usual.items())


@cache
def _known() -> tuple[date, Mapping[str, TokenPrice]]:
    text = files("mlebench_console.environment.gateway").joinpath("prices.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    prices: dict[str, TokenPrice] = {}
    for entry in table["price"]:
        patterns = entry.pop("models")
        prices |= dict.fromkeys(patterns, read_fields(TokenPrice, entry))
    return table["checked"], prices
