"""Whom to call, how and for what: the `[notifications]` table of config.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.notifications.news import Kind
from foundation.problems import UsageProblem

TABLE = "notifications"


@dataclass(frozen=True)
class Calls:
    """What an operator wants to be called for, and how.

    Attributes:
        urls: addresses as apprise knows them (webhooks, Slack, mail); they may hold secrets, so no repr shows them.
    """

    on: frozenset[Kind] = frozenset({Kind.FAILED, Kind.IDLE, Kind.DISK})
    bell: bool = False
    desktop: bool = False
    urls: tuple[str, ...] = field(default=(), repr=False)

    @property
    def rings_here(self) -> bool:
        """Whether the terminal of an open console is to call."""
        return self.bell or self.desktop


def read_calls(config_file: Path) -> Calls:
    """Read the table.

    Raises:
        UsageProblem: the file or its table can't be understood.
    """
    try:
        values = tomllib.loads(config_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Calls()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be read", str(error), "Mend or remove it.") from error
    return calls_of(values.get(TABLE, {}), config_file)


def calls_of(table: Any, config_file: Path) -> Calls:
    """Understand the table; `config_file` is what a problem names.

    Raises:
        UsageProblem: it can't be understood.
    """
    if not isinstance(table, dict):
        raise UsageProblem(f"{config_file} can't be used", f"'{TABLE}' must be a table, [{TABLE}]")
    try:
        on = frozenset(Kind(name) for name in table.get("on", Calls().on))
    except (TypeError, ValueError) as error:
        known = ", ".join(Kind)
        raise UsageProblem(f"{config_file}: [{TABLE}] on", str(error), f"Known are: {known}.") from error
    urls = table.get("urls", [])
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise UsageProblem(f"{config_file}: [{TABLE}] urls must be a list of addresses")
    return Calls(on, bool(table.get("bell", False)), bool(table.get("desktop", False)), tuple(urls))
