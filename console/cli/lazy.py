"""A command group that imports a command only when it is used, so that `--help` stays instant."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
import typer.core
import typer.main

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


@dataclass(frozen=True)
class Entry:
    """A command that need not be imported to be listed."""

    module: str
    help: str
    hidden: bool = False


class Commands(MutableMapping[str, "Command"]):
    """Commands by name, made when they are first asked for from their module's `app`."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self.entries = entries
        self._made: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._made:
            module = importlib.import_module(self.entries[name].module)
            command = typer.main.get_command(module.app)
            command.name = name
            self._made[name] = command
        return self._made[name]

    def __setitem__(self, name: str, command: Command) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class LazyGroup(typer.core.TyperGroup):
    """A group whose commands are listed from a table, without importing them."""

    entries: dict[str, Entry]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Commands(self.entries)

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  # the base class's signature
        """List the names in the table's order."""
        return list(self.entries)

    def format_commands(
        self,
        ctx: Context,  # noqa: ARG002  # the base class's signature
        formatter: HelpFormatter,
    ) -> None:
        """Write the table into the help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, entry.help) for name, entry in self.entries.items() if not entry.hidden]
            )


def new_app(help: str = "", **settings: Any) -> typer.Typer:
    """Make a command or a group of commands as all of ours are: plain help, errors left to `outermost`."""
    return typer.Typer(
        help=help,
        # Rich would cost more than the whole start-up, and plain text suits pipes and screen readers.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )


def new_group(help: str) -> typer.Typer:
    """Make a group of commands, which stays one even with a single command in it."""
    app = new_app(help, no_args_is_help=True)

    @app.callback()
    def group() -> None:
        pass

    return app
