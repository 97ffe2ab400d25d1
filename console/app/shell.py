"""The command line as the console sees it: whoever opens a console hands it over, as it lies above the console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import TyperException
    from typer._click import Command


@dataclass(frozen=True)
class Shell:
    """The command line, whose names and arguments the `:` line has too.

    Attributes:
        root: makes the group of all commands.
        explain: writes an error of usage in the words of the command line.
    """

    root: Callable[[], Command]
    explain: Callable[[TyperException], str]
