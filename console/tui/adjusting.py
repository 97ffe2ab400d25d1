"""Changing a setting while the console is open: config.toml first, then everything that is seen of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from console.tui.config import Settings, read_settings
from console.tui.config_edit import Value, write_value
from console.tui.theme import PALETTE_NAMES, THEME_NAMES
from foundation.problems import UsageProblem

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp


def change(app: ConsoleApp, table: str, name: str, value: Value) -> None:
    """Write a setting, or take it out of config.toml if the value is None, and let it count.

    Raises:
        UsageProblem: config.toml can't be changed, or can't be used as it is; then nothing has changed here.
    """
    config_file = app.places.config_file
    write_value(config_file, table, name, value)
    # What the command line said goes on counting until it is changed itself.
    theme = None if (table, name) == ("console", "theme") else app.palette.name
    ascii_only = app.settings.ascii_only and (table, name) != ("console", "ascii")
    apply(app, read_settings(config_file, theme=theme, ascii_only=ascii_only))


def choose_palette(app: ConsoleApp, name: str) -> None:
    """Let a theme count in this console, and leave config.toml as it is.

    Raises:
        UsageProblem: there is no such theme.
    """
    if name not in PALETTE_NAMES:
        raise UsageProblem(f"there is no theme '{name}'", "", f"Themes: {', '.join(THEME_NAMES)}.")
    apply(app, replace(app.settings, palette=PALETTE_NAMES[name]))


def apply(app: ConsoleApp, settings: Settings) -> None:
    """Let settings count from now on."""
    app.settings = settings
    app.theme = settings.palette.name
    app.set_keymap(settings.keys.keymap())
    app.reader.look_every = settings.refresh_seconds
    app.caller.begin()
    for screen in app.screen_stack:
        for widget in screen.walk_children():
            widget.refresh()
    app.drawing.everything()
