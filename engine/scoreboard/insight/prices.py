"""What an experiment has cost in money, by the prices that an operator has written into config.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.scoreboard.insight.effort import Effort
from foundation.problems import UsageProblem

TABLE = "prices"
_KNOWN = ("run_hour", "gpu_hour", "currency")


@dataclass(frozen=True)
class Prices:
    """What an hour costs; None where no price is known, which then stands for nothing.

    Attributes:
        run_hour: an hour of a run: its machine, without GPUs.
        gpu_hour: an hour of one GPU.
    """

    run_hour: float | None = None
    gpu_hour: float | None = None
    currency: str = "USD"


@dataclass(frozen=True)
class Cost:
    """What the runs of an experiment have cost, by hours; what a model's provider charged is not in it."""

    total: float
    per_medal: float | None
    currency: str

    def __str__(self) -> str:
        """Write it for people."""
        each = "" if self.per_medal is None else f", {self.per_medal:,.2f} for a medal"
        return f"{self.total:,.2f} {self.currency}{each}"


def cost_of(effort: Effort, prices: Prices) -> Cost | None:
    """What the hours have cost; None without a price, or where a price is for GPUs and their hours are not known."""
    parts: list[float] = []
    if prices.run_hour is not None:
        parts.append(effort.run_hours * prices.run_hour)
    if prices.gpu_hour is not None:
        if effort.gpu_hours is None:
            return None
        parts.append(effort.gpu_hours * prices.gpu_hour)
    if not parts or not effort.runs:
        return None
    total = sum(parts)
    return Cost(total, total / effort.medals if effort.medals else None, prices.currency)


def read_prices(config_file: Path) -> Prices:
    """Read the `[prices]` table.

    Raises:
        UsageProblem: the file or the table can't be understood.
    """
    try:
        table: Any = tomllib.loads(config_file.read_text(encoding="utf-8")).get(TABLE, {})
    except FileNotFoundError:
        return Prices()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be read", str(error), "Mend or remove it.") from error
    if not isinstance(table, dict):
        raise UsageProblem(f"{config_file} can't be used", f"'{TABLE}' must be a table, [{TABLE}]")
    for name, value in table.items():
        if name not in _KNOWN:
            raise UsageProblem(
                f"{config_file}: [{TABLE}] has no '{name}'", "", f"Known are: {', '.join(_KNOWN)}."
            )
        is_price = not isinstance(value, bool) and isinstance(value, int | float) and value >= 0
        if not (isinstance(value, str) if name == "currency" else is_price):
            wanted = "a text" if name == "currency" else "a price, 0 or more"
            raise UsageProblem(f"{config_file}: [{TABLE}] {name} is not {wanted}")
    return Prices(table.get("run_hour"), table.get("gpu_hour"), table.get("currency", Prices().currency))
