"""What config.toml says about the console itself: theme, signs and keys; where things are is `engine.places`."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.tui.keys import KeyTable, rebound
from console.tui.theme import (
    DARK,
    MONOCHROME,
    PALETTE_NAMES,
    THEME_NAMES,
    Palette,
)
from engine.notifications.news import TABLE as NOTIFICATIONS
from engine.notifications.news import Calls, calls_of
from foundation.problems import UsageProblem

# How often it may be looked whether the state has changed; the first is what counts if nothing is said.
REFRESH_CHOICES = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Settings:
    """How one console looks and which keys it has."""

    palette: Palette = DARK
    ascii_only: bool = False
    keys: KeyTable = field(default_factory=KeyTable)
    calls: Calls = field(default_factory=Calls)
    refresh_seconds: float = REFRESH_CHOICES[0]


def read_settings(config_file: Path, *, theme: str | None, ascii_only: bool) -> Settings:
    """Read the settings; what was asked for on the command line wins, NO_COLOR wins over a theme.

    Raises:
        UsageProblem: the file can't be read or names a theme, an action or a key that does not exist.
    """
    values = _read(config_file)
    console = _table(values, "console", config_file)
    keys = _table(values, "keys", config_file)
    return Settings(
        palette=MONOCHROME if os.environ.get("NO_COLOR") else _palette(theme or console.get("theme", "dark")),
        ascii_only=ascii_only or bool(console.get("ascii", False)),
        keys=rebound({name: str(value) for name, value in keys.items()}),
        refresh_seconds=_refresh(console.get("refresh", REFRESH_CHOICES[0]), config_file),
        calls=calls_of(values.get(NOTIFICATIONS, {}), config_file),
    )


def _refresh(value: Any, config_file: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.1 <= value <= 3600:
        raise UsageProblem(f"{config_file}: [console] refresh is not a number of seconds from 0.1 to 3600")
    return float(value)


def _palette(name: str) -> Palette:
    if name not in PALETTE_NAMES:
        raise UsageProblem(f"there is no theme '{name}'", "", f"Themes: {', '.join(THEME_NAMES)}.")
    return PALETTE_NAMES[name]


def _read(config_file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageProblem(f"{config_file} can't be read", str(error), "Mend or remove it.") from error


def _table(values: dict[str, Any], name: str, config_file: Path) -> dict[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, dict):
        raise UsageProblem(f"{config_file} can't be used", f"'{name}' must be a table, [{name}]")
    return table
