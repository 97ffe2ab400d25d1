"""The outermost layer: the only place of the command line where an error becomes text and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

import typer
import typer.main

from foundation.problems import Problem

if TYPE_CHECKING:
    from typer._click import Command, Context

    from console.cli.invocation import Invocation

PROGRAM = "mlebench-console"
COMPLETE_VARIABLE = "_MLEBENCH_CONSOLE_COMPLETE"
INTERRUPTED = 130
BROKEN_PIPE = 141
UNEXPECTED = 1


def root_command() -> Command:
    """The whole command line."""
    from console.cli.root import app

    return typer.main.get_command(app)


def answer_shell(command: Command) -> None:
    """Print what a shell that completes a line asks for, and leave."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # documented, in no __all__

    completion_init()
    command.main(args=[], prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that can't show a sign shows a question mark; that is no reason to end.
            stream.reconfigure(errors="replace")
    command = root_command()
    if COMPLETE_VARIABLE in os.environ:
        answer_shell(command)
    try:
        code = _run(command, arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read us has enough. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(command: Command, arguments: Sequence[str]) -> int:
    from console.cli.invocation import Invocation
    from console.cli.output import complain

    context: Context | None = None
    try:
        context = command.make_context(PROGRAM, list(arguments))
        with context:
            command.invoke(context)
        return 0
    except typer.Exit as leaving:
        return leaving.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Problem as problem:
        complain(str(problem))
        return problem.exit_code
    except typer.TyperException as error:
        complain(_usage_error(error))
        return error.exit_code
    except Exception:  # noqa: BLE001  # the outermost layer: whatever it is ends here, logged
        invocation = None if context is None else context.find_object(Invocation)
        complain(_unforeseen(invocation or Invocation()))
        return UNEXPECTED


def _usage_error(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = PROGRAM if context is None else context.command_path
    return f"{' '.join(error.format_message().split())}\nSee '{path} --help'."


def _unforeseen(invocation: Invocation) -> str:
    """Append the traceback to the console's log; tell in two lines what it was and where that is."""
    import time
    import traceback

    trace = traceback.format_exc()
    told = f"{PROGRAM} met an error that it did not foresee: {trace.strip().splitlines()[-1]}"
    try:
        log = invocation.places.state_dir / "console.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(sys.argv)}\n{trace}\n")
    except (OSError, Problem) as error:
        return f"{told}\nIts traceback could not be kept ({error}):\n{trace}"
    return f"{told}\nThe traceback is in {log}."
