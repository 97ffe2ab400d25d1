"""The command line as the console sees it: whoever opens a console hands it over, as it lies above the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import TyperException
    from typer._click import Command

    from mlebench_console.console.actions.action import Action
    from mlebench_console.engine.places import Places


@dataclass(frozen=True)
class Shell:
    """The command line, whose names and arguments the `:` line has too.

    Attributes:
        root: makes the group of all commands.
        explain: writes an error of usage in the words of the command line.
        invocation: makes what a command finds its places in when a console runs it, and to what it hands its action.
    """

    root: Callable[[], Command]
    explain: Callable[[TyperException], str]
    invocation: Callable[[Places, Callable[[Action], None]], object]
