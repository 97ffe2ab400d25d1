"""What a gateway and its attempt share: the names of its files, the providers that it serves, and budget notices."""

from __future__ import annotations

from dataclasses import dataclass

MODEL_CALLS = "model_calls.jsonl"
OPEN_CALLS = "model_calls.open.jsonl"
SHARED_BUDGET = "shared_budget.json"
GATEWAY_LOCK = "gateway.lock"


@dataclass(frozen=True)
class ModelProvider:
    """A provider of models that an attempt's gateway serves.

    Attributes:
        name: its name in the agent's addresses and in records.
        dialect: `openai`, `anthropic` or `gemini`.
        url: its address; of an OpenAI-compatible server the base address for its clients.
        key: the operator's variable with the key; empty where none is needed, or it comes from elsewhere.
        key_file, key_command: the file with the key, or a command that prints it, for keys that expire.
        key_header: the header that carries it; empty for the usual one of the dialect.
        headers, query: what is added to each call; not secret.
        include_usage: whether streams may be requested to report usage (`stream_options`).
        reports_cost: whether the `cost` in its usage, in US dollars, is what a call costs.
        requests_per_minute, tokens_per_minute: the limits of all runs of a host together; None for no limit.
    """

    name: str
    dialect: str
    url: str
    key: str = ""
    key_file: str = ""
    key_command: str = ""
    key_header: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    include_usage: bool = True
    reports_cost: bool = False
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True)
class BudgetNotice:
    """shared_budget.json: whether the budgets that the attempt shares with other runs have anything left.

    Attributes:
        at: when the engine wrote it, by its clock.
        used_up: whose budget is used up, in words, so that calls are refused; empty: calls may go on.
        in_money: whether money is limited, so that models without a price are refused.
    """

    at: float
    used_up: str
    in_money: bool
