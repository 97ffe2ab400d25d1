"""What model calls use, in calls, tokens and US dollars, and the budgets that limit it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Amounts:
    """What some model calls used.

    Attributes:
        tokens: those of prompts and of answers.
    """

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        """Return the sum of both."""
        return Amounts(self.calls + other.calls, self.tokens + other.tokens, self.usd + other.usd)

    def fits(self, within: Budget) -> bool:
        """Return whether no limit of a budget is exceeded."""
        return not within.exceeded_by(self).is_limited

    def share_of(self, budget: Budget) -> float:
        """Return the used share of a budget, of the unit that is nearest to its limit; 0 without a limit."""
        return max(
            (getattr(self, unit) / limit for unit, limit in budget.limits.items() if limit), default=0.0
        )


# The used share of a budget from which people are warned.
MOST_OF_BUDGET = 0.8
_UNITS = {"calls": "calls", "tokens": "tokens", "usd": "USD"}


@dataclass(frozen=True)
class Budget:
    """Limits of what model calls may use; None for no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None

    @property
    def limits(self) -> dict[str, float]:
        """The limits that there are, by the names of the fields."""
        return {unit: limit for unit in _UNITS if (limit := getattr(self, unit)) is not None}

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return bool(self.limits)

    def exceeded_by(self, amounts: Amounts) -> Budget:
        """Return those of the limits that some amounts exceed."""
        return _of({unit: limit for unit, limit in self.limits.items() if getattr(amounts, unit) > limit})

    def changed_by(self, limits: Budget) -> Budget:
        """Return a budget with the limits of another one where it has some; one of 0 removes the limit."""
        return _of({unit: limit for unit, limit in {**self.limits, **limits.limits}.items() if limit})

    def in_words(self, used: Amounts | None = None) -> str:
        """Return the limits in words, each with what is used of it where that is given: `3 of 5 calls`."""
        parts = []
        for unit, limit in self.limits.items():
            written = dollars if unit == "usd" else "{:,}".format
            spent = "" if used is None else f"{written(getattr(used, unit))} of "
            parts.append(f"{spent}{written(limit)} {_UNITS[unit]}")
        return ", ".join(parts) or "no limit"


def _of(limits: dict[str, float]) -> Budget:
    return Budget(**limits)  # type: ignore[arg-type]  # each value was one of the same field


def dollars(amount: float) -> str:
    """Format an amount of US dollars, with cents or, below a dollar, with hundredths of cents."""
    return f"{amount:,.2f}" if amount >= 1 or amount == 0 else f"{amount:.4f}"
