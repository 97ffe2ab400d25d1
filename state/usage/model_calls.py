"""Usage of attempts' model calls, by provider and model; the calls themselves stay in run directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from mlebench_console.foundation.conditions import Amounts
from mlebench_console.state.database import Database


@dataclass(frozen=True, kw_only=True)
class CallCounts:
    """How many calls were made, and what they used.

    Attributes:
        calls: calls sent to the provider, including failed ones.
        errors: those of them without a complete answer.
        limited: those of them that the provider rate-limited (status 429).
        refused: calls that the gateway did not send, not part of `calls`.
        estimated: calls whose tokens are an estimate.
        input_tokens: of all prompts, including tokens read from caches and written to them.
        output_tokens: of all answers, including reasoning.
        charged: the US dollars charged to budgets for them; an answer of a model version without a price is charged
            at the requested model's price.
    """

    calls: int = 0
    errors: int = 0
    limited: int = 0
    refused: int = 0
    estimated: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cache_write_hour_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    charged: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens, those of prompts and of answers."""
        return self.input_tokens + self.output_tokens

    @property
    def amounts(self) -> Amounts:
        """What budgets count."""
        return Amounts(self.calls, self.tokens, self.charged)


_COUNTS = tuple(field.name for field in fields(CallCounts))


def counts_of(parts: Iterable[CallCounts]) -> dict[str, Any]:
    """Return the sums of all counts, by the names of the fields."""
    found = list(parts)
    return {name: sum(getattr(part, name) for part in found) for name in _COUNTS}


@dataclass(frozen=True)
class ModelUse(CallCounts):
    """The calls of one attempt to one model, in one price tier.

    Attributes:
        model: the provider's name for it; the requested one where the provider never answered.
        prompt_above: the price threshold, in tokens, that each of their prompts exceeds; 0 for none.
        service: the service tier, such as `priority`; empty for the ordinary one. Of calls whose costs their provider
            reports, a text that says so: these costs are `charged`.
        last_at: the time of the last of them.
    """

    attempt_id: int
    provider: str
    model: str
    prompt_above: int = 0
    service: str = ""
    last_at: float = 0.0


@dataclass(frozen=True)
class UseOfRun(ModelUse):
    """A `ModelUse` with its run, and whether it is of the run's latest attempt, whose result counts."""

    run_id: int = 0
    is_latest: bool = True


_KEY = ("attempt_id", "provider", "model", "prompt_above", "service")
_OF_RUN = "SELECT model_use.* FROM model_use JOIN attempts ON attempts.id = attempt_id"


def offset(database: Database, attempt_id: int) -> int:
    """Read how far an attempt's file of calls has been read into the state."""
    row = database.row("SELECT calls_offset FROM attempts WHERE id = ?", (attempt_id,))
    return 0 if row is None else int(row["calls_offset"])


def add(database: Database, attempt_id: int, uses: Sequence[ModelUse], new_offset: int) -> None:
    """Add the usage up to an offset of an attempt's file of calls, and record the offset."""
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)
    names = [field.name for field in fields(ModelUse)]
    with database.transaction():
        database.execute_many(
            f"INSERT INTO model_use ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"
            f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {added}, last_at = MAX(last_at, excluded.last_at)",
            [asdict(use) for use in uses],
        )
        database.update("attempts", attempt_id, calls_offset=new_offset)


def of_run(database: Database, run_id: int) -> list[ModelUse]:
    """Read the usage of all attempts of a run."""
    return database.records(
        ModelUse, f"{_OF_RUN} WHERE run_id = ? ORDER BY attempt_id, provider, model", (run_id,)
    )


def of_attempt(database: Database, attempt_id: int) -> list[ModelUse]:
    """Read the usage of one attempt."""
    return database.records(ModelUse, "SELECT * FROM model_use WHERE attempt_id = ?", (attempt_id,))


def amounts_of_sweep(database: Database, sweep_id: str) -> Amounts:
    """Read what the runs of a sweep have used, with all their attempts."""
    found = database.record(
        Amounts,
        "SELECT COALESCE(SUM(calls), 0) AS calls, COALESCE(SUM(input_tokens + output_tokens), 0) AS tokens,"
        " TOTAL(charged) AS usd FROM model_use JOIN attempts ON attempts.id = attempt_id"
        " JOIN runs ON runs.id = run_id WHERE sweep_id = ?",
        (sweep_id,),
    )
    return Amounts() if found is None else found


def by_run(database: Database, sweep_id: str | None = None) -> dict[int, list[UseOfRun]]:
    """Read the usage of attempts by run, of one sweep or all, without runs that made no model calls."""
    only = "" if sweep_id is None else " WHERE sweep_id = ?"
    found: dict[int, list[UseOfRun]] = {}
    for use in database.records(
        UseOfRun,
        "SELECT model_use.*, run_id, attempts.number = runs.attempts AS is_latest FROM model_use"
        f" JOIN attempts ON attempts.id = attempt_id JOIN runs ON runs.id = run_id{only}",
        () if sweep_id is None else (sweep_id,),
    ):
        found.setdefault(use.run_id, []).append(use)
    return found


def of_all(database: Database) -> list[ModelUse]:
    """Read the usage of all attempts."""
    return database.records(ModelUse, "SELECT * FROM model_use ORDER BY provider, model, attempt_id")
