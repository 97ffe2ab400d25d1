"""The program `mlebench-console`: its table of commands, the flags before them, and the exit codes.

`run` is the only place of the command line where an error becomes text and an exit code.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
import typer.main
from typer import Option

from mlebench_console.console.cli.common import Appearance, Invocation, new_app, open_console
from mlebench_console.console.cli.output import say_on_stderr
from mlebench_console.foundation.problems import Problem

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

    from mlebench_console.console.app.shell import Shell

PROGRAM = "mlebench-console"
COMPLETE_VARIABLE = "_MLEBENCH_CONSOLE_COMPLETE"
INTERRUPTED = 130
BROKEN_PIPE = 141
UNEXPECTED = 1


# Typer's messages about wrong usage, and our words for them.
_IN_OUR_WORDS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"^No such command (.*?)\.", r"there is no command \1."),
        (r"\.$", ""),
        (r"^No such option: (\S+)", r"there is no option '\1'"),
        (r" \(Possible options: (.*)\)$", r". Did you mean \1?"),
        (r"^Missing argument '(.*)'$", r"argument \1 is missing"),
        (r"^Missing option '(.*)'$", r"option \1 is missing"),
        (r"^Got unexpected extra argument\(s\) \((.*)\)$", r"unexpected: \1"),
        (r"^Option '(.*)' requires an argument$", r"\1 needs a value"),
        (r"^Option '(.*)' does not take a value$", r"\1 takes no value"),
        (r"^Invalid value for '(.*?)'", r"\1"),
        (r" is not a valid int( range)?$", " is not a whole number"),
        (r" is not a valid float( range)?$", " is not a number"),
        (r" is not in the range (.*)$", r" is out of range (expected \1)"),
    )
)


# Every command, in the order in which an operator meets them: its module, imported when it is used, and its help.
COMMANDS = {
    "demo": ("demo", "Open the console on a demo sweep with synthetic data."),
    "doctor": ("host.doctor", "Check what this machine has and lacks, with next steps."),
    "status": ("status", "Show the state of the engine, the sweeps and the disks."),
    "watch": ("status", "Print a summary at intervals, in plain lines."),
    "serve": ("serve", "Show the console in a browser, on this machine only."),
    "engine": ("host.engine", "Start, stop and watch the engine that does the work."),
    "sweep": ("sweep", "Launch and steer sweeps: an agent on competitions and seeds."),
    "runs": ("run", "List, follow, retry, stop and classify runs, and the causes of failures."),
    "placements": (
        "host.placement",
        "List and check placements: this host, and the profiles of a batch system.",
    ),
    "events": ("event", "List what happened, newest last, filtered as on the Events screen."),
    "images": ("host.image", "Build, list and check container images."),
    "prepare": ("dataset.prepare", "Prepare datasets: download, verify, extract, split."),
    "datasets": ("dataset.group", "List, check, verify, examine, copy, stop and prune datasets."),
    "competitions": ("competition", "Show competitions and their defects; create and check your own."),
    "grade-sample": ("results.grading", "Grade one submission file."),
    "grade": ("results.grading", "Grade many submissions, listed in a JSONL file."),
    "make-submission": ("results.grading", "List a run group's submissions in a JSONL file for 'grade'."),
    "validate": (
        "results.grading",
        "Check whether a submission has the right form, as agents can while they work.",
    ),
    "scoreboard": ("results.scoreboard", "Show own experiments beside the published rows."),
    "aggregate": ("results.scoreboard", "Aggregate runs, grading reports or a table of outcomes."),
    "prices": ("prices", "Check the prices of models."),
    "compare": ("results.scoreboard", "Compare two experiments by competition."),
    "insight": ("results.scoreboard", "Show what an experiment says beyond its row."),
    "integrity": (
        "results.integrity",
        "Search runs for signs that scores were not earned, show and review them.",
    ),
    "report": ("results.export", "Write one self-contained HTML page of an experiment."),
    "verify": ("results.verify", "Check a bundle: its files, its scores, its row."),
    "export": ("results.export", "Export a row, its bundle, MLE-bench run groups, or plots."),
    "import": (
        "results.scoreboard",
        "Import reports of MLE-bench onto the scoreboard, or newer published rows.",
    ),
    "dev": ("dev", "Keep the benchmark's own facts up to date."),
    "completion": ("completion", "Print the completion script for a shell."),
}


class Root(typer.core.TyperGroup):
    """The commands of the table, listed without importing them, so that `--help` stays instant."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # Typer suggests from these names; the commands themselves come from `get_command`.
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # only the names are used

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  # the base class's signature
        """List the names in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002  # likewise
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, help_ = COMMANDS[cmd_name]
        command: Command = typer.main.get_command(importlib.import_module(f"{__package__}.{module}").app)
        # A module has one command or group, or several by their names.
        command = getattr(command, "commands", {}).get(cmd_name, command)
        command.name, command.help = cmd_name, command.help or help_
        _finish(command)
        return command

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:  # noqa: ARG002  # likewise
        """Write the table into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_module, help_) in COMMANDS.items()])


def _finish(command: Command) -> None:
    """Give flags that are off no `--no-` form, and let help call a number N or NUMBER, with its range in words."""
    for inner in getattr(command, "commands", {}).values():
        _finish(inner)
    for parameter in command.params:
        if parameter.default is False:
            parameter.secondary_opts = []
        kind = parameter.type.name
        if parameter.metavar is None and kind.split()[0] in ("int", "float"):
            parameter.metavar = "N" if kind.startswith("int") else "NUMBER"
        # Typer has no public way to word a range: help and errors take it from this method of the parameter's type.
        ranged: Any = parameter.type
        if hasattr(ranged, "_describe_range"):
            words = f"{ranged.min:g} or more" if ranged.max is None else f"{ranged.min:g} to {ranged.max:g}"
            ranged._describe_range = partial(str, words)


app = new_app(
    "Prepare, run, watch and grade MLE-bench. Without a command: open the console.",
    cls=Root,
    invoke_without_command=True,
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad data, 4 unusable state, 5 missing from this"
    " machine, 130 interrupted.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mlebench-console {version('mlebench-console')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    state_dir: Annotated[
        Path | None, Option(metavar="DIR", help="The state directory (MLEBENCH_STATE_DIR).")
    ] = None,
    data_dir: Annotated[
        Path | None, Option(metavar="DIR", help="The datasets directory (MLEBENCH_DATA_DIR).")
    ] = None,
    config: Annotated[
        Path | None, Option(metavar="FILE", help="The configuration file (MLEBENCH_CONFIG).")
    ] = None,
    demo: Annotated[bool, Option("--demo", help="Work on the demo instead of your own state.")] = False,
    screen: Annotated[
        str | None,
        Option(metavar="NAME", help="What the console opens with: a screen, sweep:ID or run:NUMBER."),
    ] = None,
    readonly: Annotated[
        bool, Option("--readonly", help="Open the console without the keys that change anything.")
    ] = False,
    theme: Annotated[
        str | None, Option(metavar="NAME", help="The console's theme: dark, light, contrast, ansi or mono.")
    ] = None,
    ascii_only: Annotated[
        bool, Option("--ascii", help="Draw the console with ASCII characters only.")
    ] = False,
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Handle the flags before the command; without a command, open the console."""
    if theme is not None:
        from mlebench_console.console.tui.config import theme_named

        theme_named(theme)
    appearance = Appearance(screen, readonly, ascii_only, theme)
    invocation = Invocation(state_dir, data_dir, config, demo, appearance)
    context.obj = invocation
    if context.invoked_subcommand is None:
        open_console(invocation.places, appearance, demo=demo)


def root_command() -> Command:
    """Make the whole command line."""
    return typer.main.get_command(app)


def shell() -> Shell:
    """Return the command line for the console, whose `:` has the same names and arguments."""
    from mlebench_console.console.app.shell import Shell

    return Shell(
        root_command,
        explain_usage,
        lambda places, carry_out: Invocation(
            places.state_dir, places.data_dir, places.config_file, carry_out=carry_out
        ),
    )


def answer_shell(command: Command) -> None:
    """Print the completions that a shell asks for, and exit."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # documented, in no __all__

    completion_init()
    command.main(args=[], prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that can't show a character shows a question mark instead.
            stream.reconfigure(errors="replace")
    command = root_command()
    if COMPLETE_VARIABLE in os.environ:
        answer_shell(command)
    try:
        code = _run(command, arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of the pipe has closed it. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _run(command: Command, arguments: Sequence[str]) -> int:
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
        say_on_stderr(f"error: {problem}")
        return problem.exit_code
    except typer.TyperException as error:
        # A group without a command says what there is: its help.
        is_help = type(error).__name__ == "NoArgsIsHelpError"
        say_on_stderr(
            error.format_message() if is_help else f"error: {_usage_error(error, command, arguments)}"
        )
        return error.exit_code
    except Exception:  # noqa: BLE001  # the outermost layer: every other error ends here, logged
        invocation = None if context is None else context.find_object(Invocation)
        say_on_stderr(f"error: {_unexpected(invocation or Invocation())}")
        return UNEXPECTED


def _usage_error(error: typer.TyperException, command: Command, arguments: Sequence[str]) -> str:
    """Return the error of wrong usage in our own words, with the command whose help describes it."""
    context = getattr(error, "ctx", None)
    path = _path_of(command, arguments) if context is None else context.command_path
    return f"{explain_usage(error)}\nSee '{path} --help'."


def explain_usage(error: typer.TyperException) -> str:
    """Return an error of wrong usage in our own words."""
    text = " ".join(error.format_message().split())
    for pattern, words in _IN_OUR_WORDS:
        text = pattern.sub(words, text)
    return text


def _path_of(command: Command, arguments: Sequence[str]) -> str:
    """Return the names of the commands that arguments begin with."""
    names, inner = [PROGRAM], command
    for argument in arguments:
        if argument in getattr(inner, "commands", {}):
            names.append(argument)
            inner = inner.get_command(None, argument)  # type: ignore[attr-defined]  # a group's; it needs no context
    return " ".join(names)


def _unexpected(invocation: Invocation) -> str:
    """Append the traceback to the console's log, and return a message that names the error and the log."""
    import time
    import traceback

    from mlebench_console.foundation.daemons import open_log

    trace = traceback.format_exc()
    message = f"unexpected error: {trace.strip().splitlines()[-1]}"
    try:
        log = invocation.places.state_dir / "console.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        text = f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {' '.join(sys.argv)}\n{trace}\n"
        with open_log(log) as stream:
            stream.write(text.encode(errors="backslashreplace"))
    except (OSError, Problem) as error:
        return f"{message}\nThe traceback could not be saved ({error}):\n{trace}"
    return f"{message}\nThe traceback is in {log}."
