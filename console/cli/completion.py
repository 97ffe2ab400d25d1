"""`completion`: the script that teaches a shell to complete our commands, printed for the shell to read."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from console.cli.common import new_app

app = new_app()


class Shell(StrEnum):
    """The shells that can be taught."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command()
def completion(shell: Annotated[Shell, typer.Argument(help="Whose script.")]) -> None:
    """Print the completion script for a shell.

    For bash, put into ~/.bashrc: eval "$(mlebench-console completion bash)"
    """
    from console.cli.program import COMPLETE_VARIABLE, answer_shell, root_command

    # Asked in the way in which shells ask for completions, the root command prints it and leaves.
    os.environ[COMPLETE_VARIABLE] = f"source_{shell}"
    answer_shell(root_command())
