"""`completion`: print the script that makes a shell complete our commands."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from typer import Argument

from mlebench_console.console.cli.common import TextCommand, new_app

app = new_app()


@app.command(cls=TextCommand)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Argument(help="The shell to print a script for.")],
) -> None:
    """Print the completion script for a shell.

    For bash, put into ~/.bashrc: eval "$(mlebench-console completion bash)"
    """
    from mlebench_console.console.cli.program import COMPLETE_VARIABLE, answer_shell, root_command

    # The root command prints the script when it is asked as shells ask for completions.
    os.environ[COMPLETE_VARIABLE] = f"source_{shell}"
    answer_shell(root_command())
