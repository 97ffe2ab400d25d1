"""The settings of one console: theme, signs, keys and notifications, from config.toml and the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlebench_console.console.tui.keys import KeyTable, key_name, rebound_keys
from mlebench_console.console.tui.theme import DARK, MONOCHROME, PALETTE_NAMES, THEME_NAMES, Palette
from mlebench_console.engine.providers import all_providers, model_prices
from mlebench_console.engine.settings import (
    ConsoleSettings,
    NotificationSettings,
    read_filters,
    read_table,
    read_values,
    require_valid,
    unknown_settings,
)
from mlebench_console.foundation.problems import UsageProblem

# How often it may be looked whether the state has changed; the first is what counts if nothing is said.
REFRESH_CHOICES = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Settings:
    """The settings of one console.

    Attributes:
        unknown: messages about keys of config.toml that nothing reads.
    """

    palette: Palette = DARK
    ascii_only: bool = False
    keys: KeyTable = field(default_factory=KeyTable)
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    refresh_seconds: float = REFRESH_CHOICES[0]
    filters: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def name_of(self, key: str) -> str:
        """Return the name of a key as shown to people."""
        return key_name(key, ascii_only=self.ascii_only)

    def key_of(self, action: str) -> str:
        """Return the name of the first key of an action, given the action's id."""
        return self.name_of(self.keys.named(action).keys[0])


def require_usable(config_file: Path) -> None:
    """Check that the console, the engine and the commands can all use a config.toml.

    Raises:
        UsageProblem: one of them can't use it.
    """
    require_valid(config_file)
    all_providers(config_file)
    model_prices(config_file)
    read_settings(config_file, theme=None, ascii_only=False)


def theme_named(name: str) -> Palette:
    """Return a theme by its name.

    Raises:
        UsageProblem: there is none of this name.
    """
    if name not in PALETTE_NAMES:
        raise UsageProblem(f"there is no theme '{name}'", "", f"Choose one of {', '.join(THEME_NAMES)}.")
    return PALETTE_NAMES[name]


def read_settings(config_file: Path, *, theme: str | None, ascii_only: bool) -> Settings:
    """Read the settings; the command line overrides config.toml, and NO_COLOR overrides its theme.

    Raises:
        UsageProblem: the file can't be read or names a theme, an action or a key that does not exist.
    """
    console = read_table(config_file, ConsoleSettings)
    palette = theme_named(theme or console.theme)
    return Settings(
        palette=MONOCHROME if os.environ.get("NO_COLOR") else palette,
        ascii_only=ascii_only or console.ascii,
        keys=rebound_keys({action: str(key) for action, key in read_values(config_file, "keys").items()}),
        notifications=read_table(config_file, NotificationSettings),
        refresh_seconds=console.refresh,
        filters=read_filters(config_file),
        unknown=unknown_settings(config_file),
    )
