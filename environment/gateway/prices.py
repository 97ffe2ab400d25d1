"""What tokens cost: a dated table of the project, and the operator's own prices, which win."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from environment.gateway.dialects import Usage
from foundation.fields import read_fields

_MILLION = 1_000_000


@dataclass(frozen=True)
class TokenPrice:
    """US dollars for a million tokens; None where a kind of tokens costs what its whole does.

    Attributes:
        input: of the prompt.
        cached: of the prompt, what was read from a cache; as `input` where not given.
        cache_write: likewise, what was written to one; as `input`.
        cache_write_hour: likewise, what stays there for an hour; as `cache_write`.
        output: of the answer.
        reasoning: of the answer, what is not shown; as `output`.
    """

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_hour: float | None = None
    reasoning: float | None = None

    def cost(self, usage: Usage) -> float:
        """Compute the price of a use in US dollars."""
        read, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        hour, reasoning = usage.cache_write_hour_tokens or 0, usage.reasoning_tokens or 0
        fresh = max(0, (usage.input_tokens or 0) - read - written)
        shown = max(0, (usage.output_tokens or 0) - reasoning)
        write = self.input if self.cache_write is None else self.cache_write
        parts = (
            (fresh, self.input),
            (read, self.input if self.cached is None else self.cached),
            (max(0, written - hour), write),
            (hour, write if self.cache_write_hour is None else self.cache_write_hour),
            (shown, self.output),
            (reasoning, self.output if self.reasoning is None else self.reasoning),
        )
        return sum(tokens * price for tokens, price in parts) / _MILLION


def prices_given(price: TokenPrice) -> dict[str, float]:
    """Write a price as a file has it, without what is not given."""
    return {name: value for name, value in asdict(price).items() if value is not None}


@dataclass(frozen=True)
class PriceTable:
    """Prices by patterns of models' names.

    Attributes:
        checked: when the project's own prices were last compared with those of the providers.
    """

    checked: date
    own: Mapping[str, TokenPrice]
    known: Mapping[str, TokenPrice]
    # Matching all patterns takes longer than all else that is done with a call, and there are few models.
    _found: dict[str, TokenPrice | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def price_of(self, model: str) -> TokenPrice | None:
        """Find the price of a model by the name that its provider answers with; None where nothing is known."""
        if model not in self._found:
            self._found[model] = self._match(model)
        return self._found[model]

    def _match(self, model: str) -> TokenPrice | None:
        # OpenRouter and LiteLLM put the maker's name before the model's.
        for name in dict.fromkeys((model, model.rpartition("/")[2])):
            for prices in (self.own, self.known):
                found = [pattern for pattern in prices if fnmatchcase(name, pattern)]
                if found:
                    return prices[max(found, key=len)]
        return None

    def cost(self, uses: Iterable[tuple[str, Usage]]) -> float | None:
        """Compute what uses of models come to; None where the price of one of them is not known."""
        total = 0.0
        for model, usage in uses:
            if not usage.input_tokens and not usage.output_tokens:
                continue
            price = self.price_of(model)
            if price is None:
                return None
            total += price.cost(usage)
        return total


def price_table(own: Mapping[str, TokenPrice]) -> PriceTable:
    """Put the operator's prices before those of the project."""
    checked, known = _known()
    return PriceTable(checked, own, known)


@cache
def _known() -> tuple[date, Mapping[str, TokenPrice]]:
    text = files("environment.gateway").joinpath("prices.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    prices: dict[str, TokenPrice] = {}
    for entry in table["price"]:
        patterns = entry.pop("models")
        prices |= dict.fromkeys(patterns, read_fields(TokenPrice, entry))
    return table["checked"], prices
