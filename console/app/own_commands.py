"""The commands that only the `:` line has, declared as those of the command line are."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer
import typer.main

from mlebench_console.console.app.commands import chosen_sweep
from mlebench_console.console.nouns.run import RUN
from mlebench_console.console.tui.keys import SCREENS
from mlebench_console.console.tui.list_screen import FilteredScreen
from mlebench_console.console.tui.theme import THEME_NAMES
from mlebench_console.foundation.problems import UsageProblem

if TYPE_CHECKING:
    from typer._click import Command

    from mlebench_console.console.app.app import ConsoleApp

ScreenName = StrEnum("ScreenName", {name: name for name, *_ in SCREENS})  # type: ignore[misc]  # names of the table
ThemeName = StrEnum("ThemeName", {name: name for name in THEME_NAMES})  # type: ignore[misc]  # likewise

_commands = typer.Typer(rich_markup_mode=None, add_completion=False)


def own_commands() -> Mapping[str, Command]:
    """Return the commands by their names."""
    return cast("typer.core.TyperGroup", typer.main.get_command(_commands)).commands


def _app(context: typer.Context) -> ConsoleApp:
    return cast("ConsoleApp", context.obj)


@_commands.command("filter")
def filter_(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[NAME|WORD...]")] = None,
) -> None:
    """Show only some runs or lines; without words all."""
    app, text = _app(context), " ".join(words or ())
    if isinstance(app.screen, FilteredScreen) and (not text or app.screen.MODE != "sweep"):
        app.screen.filter_by(text)
    else:
        app.filter_runs(text if text in app.settings.filters else RUN.checked_filter(text).text)


@_commands.command()
def clone(context: typer.Context, sweep: Annotated[str, typer.Argument(metavar="[SWEEP]")] = "") -> None:
    """Fill the launch form in as a sweep was launched."""
    name = sweep or chosen_sweep(_app(context))
    if not name:
        raise UsageProblem("there is no sweep here", "", "Name one.")
    _app(context).show_launch(sweep_id=name)


@_commands.command()
def undo(context: typer.Context) -> None:
    """Take back a stop or a relaunch."""
    _app(context).action_undo()


@_commands.command()
def go(context: typer.Context, screen: Annotated[ScreenName, typer.Argument(metavar="SCREEN")]) -> None:
    """Go to a screen."""
    _app(context).show(screen)


@_commands.command()
def theme(context: typer.Context, name: Annotated[ThemeName, typer.Argument(metavar="THEME")]) -> None:
    """Change the theme of this console."""
    _app(context).use_theme(name)


@_commands.command("help")
def help_(context: typer.Context) -> None:
    """Show the keys of this screen."""
    _app(context).action_help()


@_commands.command("quit")
def quit_(context: typer.Context) -> None:
    """Close the console; the engine keeps running."""
    _app(context).action_leave()
