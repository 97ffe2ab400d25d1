"""The providers of models that a run's gateway can serve: the known ones, and those of config.toml."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any
from urllib.parse import urlsplit

from mlebench_console.engine.settings import read_values
from mlebench_console.environment.gateway.dialects import Dialect
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.gateway.prices import LONG_PROMPTS, PriceTable, TokenPrice, price_table
from mlebench_console.environment.runner import layout
from mlebench_console.foundation.fields import Bounds, FieldError, convert, read_fields
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem

TABLE = "providers"
PRICES = "model_prices"
_LEAST_KEY_CHARACTERS = 8  # shorter texts occur in others by chance
_Rate = Annotated[float, Bounds("a number above 0", above=0)]
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Headers of the connection and of the body, which are the gateway's.
_OWN_HEADERS = frozenset(
    {
        *("accept-encoding", "connection", "content-encoding", "content-length", "content-type", "host"),
        *("expect", "te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_KNOWN = (
    ModelProvider("openai", "openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    ModelProvider("anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    ModelProvider("gemini", "gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ModelProvider(
        "openrouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", reports_cost=True
    ),
)


# The settings of a table [providers.NAME]; missing values are those of the known provider of that name.
_SETTINGS = {
    "dialect": Dialect,
    "url": str,
    "key": str,
    "key_file": str,
    "key_command": str,
    "key_header": str,
    "headers": Mapping[str, str],
    "query": Mapping[str, str],
    "include_usage": bool,
    "reports_cost": bool,
    "requests_per_minute": _Rate,
    "tokens_per_minute": _Rate,
}


def all_providers(config_file: Path) -> dict[str, ModelProvider]:
    """Read all providers by name.

    Raises:
        UsageProblem: config.toml can't be read, or is not valid.
    """
    found = {provider.name: provider for provider in _KNOWN}
    for name, values in read_values(config_file, TABLE).items():
        where = f"{config_file}: [{TABLE}.{name}]"
        if not _NAME.fullmatch(name) or not isinstance(values, dict):
            raise UsageProblem(f"{where} is not valid", "", f"Write it as [{TABLE}.name], in lower case.")
        with _naming_settings(where):
            given = convert(_SETTINGS, values)
        _check_key(where, given)
        if given.get("key_file") or given.get("key_command"):
            given["key"] = ""  # not that of the known provider
        given |= {table: tuple(given[table].items()) for table in ("headers", "query") if table in given}
        found[name] = replace(found.get(name, ModelProvider(name, "openai", "")), **given)
        parts = urlsplit(found[name].url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise UsageProblem(
                f"{where} has no valid url", "", 'Write url = "https://host/v1", as for its clients.'
            )
    return found


def _check_key(where: str, given: Mapping[str, Any]) -> None:
    """Refuse more than one source of a key, and headers that a call can't have."""
    if sum(bool(given.get(name)) for name in ("key", "key_file", "key_command")) > 1:
        raise UsageProblem(f"{where} has several keys", "", "Give one of key, key_file and key_command.")
    headers = dict(given.get("headers", {}))
    names = [*headers, given["key_header"]] if given.get("key_header") else [*headers]
    for name in names:
        value = headers.get(name, "")
        is_header = _HEADER.fullmatch(name) and name.lower() not in _OWN_HEADERS
        if not is_header or not value.isascii() or (value and not value.isprintable()):
            raise UsageProblem(f"{where} is not valid", f"the gateway can't send the header {name!r}")


def model_prices(config_file: Path) -> PriceTable:
    """Read the prices of models from config.toml; for other models the project's prices are used.

    Raises:
        UsageProblem: config.toml can't be read, or is not valid.
    """
    own: dict[str, TokenPrice] = {}
    for pattern, values in read_values(config_file, PRICES).items():
        where = f'{config_file}: [{PRICES}."{pattern}"]'
        if not isinstance(values, dict):
            raise UsageProblem(f"{where} is not a table", "", "Write input and output, for a million tokens.")
        with _naming_settings(where):
            own[pattern] = read_fields(TokenPrice, values)
        if any(price < 0 or price == math.inf for price in values.values()):
            raise UsageProblem(f"{where} is not valid", "a price is 0 or more")
        if own[pattern].long_prompt not in (None, *LONG_PROMPTS):
            lengths = " or ".join(f"{length:,}" for length in LONG_PROMPTS)
            raise UsageProblem(f"{where} is not valid", f"long_prompt is not {lengths}")
    return price_table(own)


@contextmanager
def _naming_settings(where: str) -> Iterator[None]:
    """Turn the error of a setting into a problem of its table."""
    try:
        yield
    except FieldError as error:
        known = ", ".join(sorted(error.known))
        why = f"{error.name} is not {error.expected}" if error.expected else f"{error.name} is missing"
        why = f"there is no setting '{error.name}'" if known else why
        raise UsageProblem(
            f"{where} is not valid", why, f"Choose one of {known}." if known else ""
        ) from error


def providers_of(names: Iterable[str], config_file: Path) -> tuple[ModelProvider, ...]:
    """Return some providers by name.

    Raises:
        UsageProblem: one of them is not known, or config.toml is not valid.
    """
    names = tuple(dict.fromkeys(names))
    known = all_providers(config_file) if names else {}
    for name in names:
        if name not in known:
            raise UsageProblem(
                f"there is no provider '{name}'",
                "",
                f"Choose one of {', '.join(known)}, or add it to config.toml.",
            )
    return tuple(known[name] for name in names)


def keys_of(providers: Iterable[ModelProvider], operator: Mapping[str, str]) -> dict[str, str]:
    """Return the keys of providers from the operator's environment, by their variables.

    Raises:
        EnvironmentProblem: one is missing.
    """
    names = [provider.key for provider in providers if provider.key]
    for name in names:
        if not operator.get(name):
            raise EnvironmentProblem(
                "the model gateway has no key",
                f"the environment variable {name} is not set",
                f"export {name}=... where the engine is started",
            )
    return {name: operator[name] for name in names}


def new_token() -> str:
    """Return a token that an agent uses in place of keys, with the prefix that some clients require."""
    return f"sk-mlebench-{token_hex(24)}"


def without_keys(
    providers: Iterable[ModelProvider], operator: Mapping[str, str], token: str
) -> dict[str, str]:
    """Return the operator's environment with a run's token in place of each key, so that agents may get parts of it.

    A key may occur in several variables, also as a part of their values, and the usual variable of a provider's
    clients may have another key.
    """
    providers = tuple(providers)
    own = {provider.key for provider in providers if provider.key}
    usual = {name for provider in providers for name in layout.key_variables(provider) if name in operator}
    given = dict(operator)
    keys = {operator[name] for name in own | usual if operator.get(name)}
    for key in sorted(keys, key=len, reverse=True):
        is_long = len(key) >= _LEAST_KEY_CHARACTERS
        for name, value in given.items():
            if value == key or is_long:
                given[name] = value.replace(key, token)
    return {**given, **dict.fromkeys(own | usual, token)}
