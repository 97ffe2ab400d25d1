"""The commands of the `:` line: those of the shell that a console can carry out, and some of its own.

Names, arguments, options and help are what the command line declares. For what a command would print the console opens
a screen; a command that changes something makes its action as in a shell, and the console asks about it and files it.
Where a command names no run and no sweep, those that are chosen on the screen stand in their place.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import typer

from mlebench_console.competitions import registry
from mlebench_console.console.actions import dataset as dataset_actions
from mlebench_console.console.actions.action import Action
from mlebench_console.console.app.shell import Shell
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.views.names import find_run
from mlebench_console.engine.requests import BuildImages, VerifyDatasets
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import sweeps
from mlebench_console.state.records import VerificationKind

if TYPE_CHECKING:
    from typer._click import Command, Context
    from typer._click.core import Parameter

    from mlebench_console.console.app.app import ConsoleApp
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.state.database import Database
    from mlebench_console.state.records import Run

# How alike a name has to be to what was typed to be suggested.
_ALIKE = 0.75
# A run's number, several of them, or SWEEP/COMPETITION/SEED.
_NAMES_RUNS = re.compile(r"\d+([,.@]\S*)?|\S+/\S+/\d+\S*")
# What only means something in a shell: its output, and whether it asks.
_OF_SHELLS = frozenset({"json", "yes"})

# The values of a command's arguments and options, by the names that the command line gives them.
Values = Mapping[str, Any]
Does = Callable[["ConsoleApp", Values], None]


@dataclass(frozen=True)
class CommandAction:
    """How the console carries a command out.

    Attributes:
        does: what it does instead of what a shell does; None where it carries out the action that the command makes.
        options: the names of the options that `does` takes; the others only mean something in a shell.
        key: the action of the key that does the same on the screens that have it.
        changes: whether it changes anything; a read-only console does not offer it.
    """

    does: Does | None = None
    options: tuple[str, ...] = ()
    key: str = ""
    changes: bool = False


@dataclass(frozen=True)
class ConsoleCommand:
    """A command as the command line declares it.

    Attributes:
        path: its name, such as `runs retry`.
        action: how the console carries it out; None for one of the console's own, which does it by itself.
    """

    path: str
    declared: Command
    action: CommandAction | None = None

    @property
    def help(self) -> str:
        """The first sentence of its help."""
        return self.declared.get_short_help_str(limit=200)

    @cached_property
    def arguments(self) -> list[Parameter]:
        """Its arguments, in order."""
        return [each for each in self.declared.params if each.param_type_name == "argument"]

    @cached_property
    def options(self) -> list[Parameter]:
        """The options that it takes here."""
        action = self.action
        if action is None:
            return []
        declared = [each for each in self.declared.params if each.param_type_name == "option"]
        if action.does is None:
            return [each for each in declared if each.name not in _OF_SHELLS]
        return [each for each in declared if each.name in action.options]

    @cached_property
    def about(self) -> Literal["", "runs", "sweep"]:
        """What its first argument names, if that may be left out where it is chosen on the screen."""
        first = metavar_of(self.arguments[0]) if self.arguments else ""
        if first.strip("[]").startswith("RUN"):
            return "runs"
        return "sweep" if first in ("SWEEP", "SOURCE") else ""

    @property
    def usage(self) -> str:
        """Its name with its arguments."""
        return " ".join([self.path, *map(metavar_of, self.arguments)])

    @property
    def ends_in_text(self) -> bool:
        """Whether all words after the others are one text, which needs no quotes here."""
        return bool(self.arguments) and metavar_of(self.arguments[-1]) in ("TEXT", "[TEXT]")


def metavar_of(parameter: Parameter) -> str:
    """Return how an argument is called in the help."""
    name = parameter.metavar or (parameter.name or "").upper()
    return name if parameter.required or name.startswith("[") else f"[{name}]"


# What the console does instead of what a shell does.


def _show(mode: str) -> Does:
    return lambda app, _values: app.show(mode)


def _show_run(pane: str = "log") -> Does:
    return _with_runs(lambda app, runs: app.show_run(runs[0].id, pane=pane))


def _show_logs(app: ConsoleApp, runs: Sequence[Run]) -> None:
    from mlebench_console.console.screens.logs import RunLogsScreen

    if len(runs) == 1:
        app.show_run(runs[0].id, pane="log")
    else:
        app.push_screen(RunLogsScreen([run.id for run in runs]))


def _with_runs(show: Callable[[ConsoleApp, Sequence[Run]], None]) -> Does:
    """Return what finds the named runs and shows them."""

    def find_and_show(app: ConsoleApp, values: Values) -> None:
        names = [values["run"]] if isinstance(values["run"], str) else values["run"]
        app.read_state(
            lambda database: [find_run(database, name) for name in names], lambda runs: show(app, runs)
        )

    return find_and_show


def _show_sweep(app: ConsoleApp, values: Values) -> None:
    app.read_state(lambda database: sweeps.get(database, values["sweep_id"]).id, app.show_sweep)


def _show_timeline(app: ConsoleApp, values: Values) -> None:
    from mlebench_console.console.screens.timeline import TimelineScreen

    app.push_screen(TimelineScreen(values["sweep_id"] or None))


def _show_integrity(app: ConsoleApp, _values: Values) -> None:
    from mlebench_console.console.screens.integrity import IntegrityScreen

    app.push_screen(IntegrityScreen("all runs", None))


def _show_code(app: ConsoleApp, values: Values) -> None:
    from mlebench_console.console.screens.code import CodeScreen

    name, submission = values["run"], values["submission"]
    wanted = f"{name}@{submission}" if submission else name
    app.read_state(partial(_version, name=wanted), lambda version: app.push_screen(CodeScreen(version)))


def _show_difference(app: ConsoleApp, values: Values) -> None:
    from mlebench_console.console.screens.code import DiffScreen

    names = values["left"], values["right"]
    app.read_state(
        lambda database: [_version(database, name) for name in names],
        lambda versions: app.push_screen(DiffScreen(*versions)),
    )


def _version(database: Database, name: str) -> Wanted:
    """Parse a reference to a submission of a run: `17`, `17.1`, `17@3`, `17@best`."""
    from mlebench_console.console.views.code import Wanted, split_name

    run, attempt, submission = split_name(name)
    return Wanted(find_run(database, run).id, attempt, submission)


def _launch(app: ConsoleApp, values: Values) -> None:
    file = values["file"]
    if file is None:
        app.show("launch")
    else:
        app.show_launch(file=Path(file).expanduser())


def _prepare(app: ConsoleApp, values: Values) -> None:
    ids, raw = _competitions_of(values), values["raw"]
    if raw is None:
        app.act(dataset_actions.prepare_named, ids)
    else:
        app.in_background(partial(dataset_actions.prepare_raw, ids, Path(raw)), app.carry_out)


def _verify(app: ConsoleApp, values: Values) -> None:
    kind = VerificationKind.DEEP if values["deep"] else VerificationKind.QUICK
    ids = tuple(_competitions_of(values))
    app.carry_out(Action((VerifyDatasets(competition_ids=ids, verification=kind),)))


def _prune(app: ConsoleApp, values: Values) -> None:
    from mlebench_console.console.nouns.dataset import dataset_rows

    ids, data_dir = _competitions_of(values), app.places.data_dir

    def plan(database: Database) -> Action:
        chosen = [row for row in dataset_rows(database) if row.competition_id in ids]
        return dataset_actions.prune(chosen, data_dir, everything=values["everything"])

    app.read_state(plan, app.carry_out)


def _competitions_of(values: Values) -> list[str]:
    ids = values["competition_id"]
    if not ids:
        raise UsageProblem("option --competition-id is missing")
    return [registry.get(name).id for name in ids]


def _build(app: ConsoleApp, values: Values) -> None:
    from mlebench_console.console.actions.image import start_build

    order = BuildImages(names=tuple(values["names"] or ()), heavy=values["heavy"], fresh=values["fresh"])
    app.in_background(
        partial(start_build, app.places, order), lambda _: app.say("the engine builds images; see Launch")
    )


_change = partial(CommandAction, changes=True)
ACTIONS: Mapping[str, CommandAction] = {
    "runs retry": _change(key="relaunch"),
    "runs stop": _change(key="stop"),
    "runs regrade": _change(key="regrade"),
    "runs classify": _change(key="classify"),
    "runs note": _change(key="note"),
    "runs tag": _change(key="tag"),
    "runs show": CommandAction(_show_run(), key="open"),
    "runs logs": CommandAction(_with_runs(_show_logs), key="log"),
    "runs calls": CommandAction(_show_run("calls")),
    "runs code": CommandAction(_show_code, ("submission",), key="code"),
    "runs diff": CommandAction(_show_difference, key="diff"),
    "runs acknowledge": _change(key="acknowledge"),
    "sweep show": CommandAction(_show_sweep),
    "sweep timeline": CommandAction(_show_timeline, key="timeline"),
    "sweep pause": _change(key="pause"),
    "sweep resume": _change(),
    "sweep stop": _change(),
    "sweep retry": _change(),
    "sweep concurrency": _change(),
    "sweep priority": _change(),
    "sweep budget": _change(),
    "sweep note": _change(key="note_sweep"),
    "sweep tag": _change(key="tag_sweep"),
    "sweep assign": _change(),
    "sweep rm": _change(),
    "sweep launch": CommandAction(_launch),
    "prepare": _change(_prepare, ("competition_id", "raw"), key="prepare"),
    "datasets stop": _change(),
    "datasets verify": _change(_verify, ("competition_id", "deep")),
    "datasets priority": _change(),
    "datasets prune": _change(_prune, ("competition_id", "everything"), key="prune"),
    "images build": _change(_build, ("heavy", "fresh"), key="build"),
    "grade-sample": CommandAction(
        lambda app, values: app.show_grade(values["competition_id"], values["submission"])
    ),
    "export row": CommandAction(lambda app, values: app.show_export(values["source"]), key="export"),
    "integrity show": CommandAction(_show_integrity, key="integrity"),
    "integrity review": _change(),
    "engine start": _change(lambda app, _values: app.start_engine()),
    "status": CommandAction(_show("overview")),
    "datasets list": CommandAction(_show("data")),
    "scoreboard": CommandAction(_show("board")),
    "events": CommandAction(_show("events")),
}


class Commands:
    """The commands of the `:` line, made when they are needed first."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    @cached_property
    def all(self) -> tuple[ConsoleCommand, ...]:
        """All of them: the shell's in the order of the table, then the console's own."""
        from mlebench_console.console.app.own_commands import own_commands

        root, own = self._shell.root(), own_commands()
        return (
            *(ConsoleCommand(path, _declared(root, path), action) for path, action in ACTIONS.items()),
            *(ConsoleCommand(name, command) for name, command in own.items()),
        )

    def here(self, app: ConsoleApp) -> list[ConsoleCommand]:
        """Return those that can be carried out now, first those about what is chosen on the screen."""
        able = [each for each in self.all if not (app.readonly and each.action and each.action.changes)]
        return sorted(able, key=lambda command: not subject_of(app, command))

    def named(self, app: ConsoleApp, line: str) -> tuple[ConsoleCommand, str]:
        """Return the command that a line begins with, in full or unambiguously shortened, and the rest of the line.

        Raises:
            UsageProblem: there is none, or several could be meant.
        """
        known = self.here(app)
        for command in known:
            if line == command.path or line.startswith(f"{command.path} "):
                return command, line[len(command.path) :].strip()
        short = [command for command in known if command.path.startswith(line)]
        if len(short) == 1:
            return short[0], ""
        if short:
            raise UsageProblem(f":{line} could be {', '.join(command.path for command in short)}")
        if any(line.startswith(command.path) for command in self.all):
            raise UsageProblem(f":{line} changes something, and this console is read-only")
        group, _, rest = line.partition(" ")
        members = [each.path for each in known if each.path.startswith(f"{group} ")] if rest else []
        # Of a group only the word behind it is compared: ':sweep mine' is not a mistyped ':sweep rm'.
        begin, word = (f"{group} ", rest.split()[0]) if members else ("", line)
        names = [path.removeprefix(begin) for path in members or [each.path for each in known]]
        alike = get_close_matches(word, names, n=1, cutoff=_ALIKE)
        step = f"Did you mean :{begin}{alike[0]}?" if alike else f"':{begin.strip()}' lists what can be said."
        raise UsageProblem(f"there is no command :{line}", "", step)

    def carry_out(self, app: ConsoleApp, line: str) -> None:
        """Carry out a line.

        Raises:
            Problem: the command is unknown, its arguments are wrong, or it can't be carried out.
        """
        command, rest = self.named(app, line)
        words = _with_subject(app, command, _split(app, command, rest))
        action, declared, made = command.action, command.declared, list[Action]()
        is_as_in_a_shell = action is not None and action.does is None
        caller = self._shell.invocation(app.places, made.append) if is_as_in_a_shell else app
        try:
            context = declared.make_context(command.path, words, obj=caller)
        except typer.TyperException as error:
            raise UsageProblem(f":{command.path}: {self._shell.explain(error)}", command.usage) from error
        _require_taken(command, context)
        if action is None:
            declared.invoke(context)
        elif action.does is not None:
            action.does(app, context.params)
        else:
            app.in_background(partial(_printed_by, declared, context), partial(_finish, app, made))


def _declared(root: Any, path: str) -> Command:
    command = root
    for name in path.split():
        command = command.get_command(None, name)
    found: Command = command
    return found


# What a process prints is caught for one command at a time.
_PRINTING = Lock()


def _printed_by(command: Command, context: Context) -> str:
    """Run a command in a thread until it has made its action, and return what it has printed."""
    printed = io.StringIO()
    with _PRINTING, redirect_stdout(printed), context, suppress(typer.Exit):
        command.invoke(context)
    return printed.getvalue().strip()


def _finish(app: ConsoleApp, made: Sequence[Action], printed: str) -> None:
    """Show what a command has printed, and carry out the action that it has made."""
    if printed:
        app.say(printed)
    for action in made:
        app.carry_out(action)


def _with_subject(app: ConsoleApp, command: ConsoleCommand, words: list[str]) -> list[str]:
    """Return the words after a command, with what is chosen on the screen in place of a missing first argument."""
    first = next(iter(without_options(command, words)), "")
    # A single argument that was typed is what it is about, also if there is no such thing.
    if names_subject(app, command, first) or (first and len(command.arguments) == 1):
        return words
    # An argument that may be left out in a shell too is replaced by options, such as --cause.
    if words and command.arguments and not command.arguments[0].required:
        return words
    chosen, sweep_id = chosen_runs(app), chosen_sweep(app)
    if command.about == "runs" and chosen:
        ids = [str(run.id) for run in chosen]
        if metavar_of(command.arguments[0]) == "RUN,...":
            return [",".join(ids), *words]
        return [*(ids if command.arguments[0].nargs == -1 else ids[:1]), *words]
    # Before sweeps were read, a word may well be the name of one.
    if command.about == "sweep" and sweep_id and (app.known_sweeps or not first):
        return [sweep_id, *words]
    return words


def _split(app: ConsoleApp, command: ConsoleCommand, rest: str) -> list[str]:
    """Split the text after a command into words.

    Raises:
        UsageProblem: a quote is not closed, or the words ask for help, which it has.
    """
    first, _, text = rest.partition(" ")
    if command.ends_in_text and rest and not rest.startswith("-") and not text.startswith("--"):
        if not names_subject(app, command, first):
            return [rest]
        return [first, *([text] if text else [])]
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageProblem(f":{command.path}: a quote is not closed") from error
    if {"-h", "--help"} & {*words}:
        raise UsageProblem(command.usage, command.help)
    return words


def names_subject(app: ConsoleApp, command: ConsoleCommand, word: str) -> bool:
    """Return whether a first word names what a command is about, so that nothing that is chosen stands for it."""
    if command.about == "runs":
        return _NAMES_RUNS.fullmatch(word) is not None
    if command.about == "sweep" and metavar_of(command.arguments[0]) == "SWEEP":
        return bool(word) and any(known.startswith(word) for known in app.known_sweeps)
    return bool(word)


def option_named(command: ConsoleCommand, word: str) -> Parameter | None:
    """Return the option that a word names; None if it names none that the command takes here."""
    return next((each for each in command.options if word in each.opts), None)


def takes_value(option: Parameter) -> bool:
    """Return whether a word has to follow an option."""
    return not getattr(option, "is_flag", False)


def without_options(command: ConsoleCommand, words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor values of options."""
    options = [None, *(option_named(command, word) for word in words)]
    return [
        word
        for word, before in zip(words, options, strict=False)
        if not word.startswith("-") and (before is None or not takes_value(before))
    ]


def _require_taken(command: ConsoleCommand, context: Context) -> None:
    """Refuse options that only mean something in a shell, such as `--json`."""
    if command.action is None:
        return
    for parameter in command.declared.params:
        source = context.get_parameter_source(parameter.name or "")
        is_typed = source is not None and source.name == "COMMANDLINE"
        if is_typed and parameter not in (*command.arguments, *command.options):
            raise UsageProblem(f":{command.path} takes no {parameter.opts[0]} here; in a shell it does")


# What is chosen on the screen.


def chosen_runs(app: ConsoleApp) -> Sequence[Run]:
    """Return the runs that are marked or under the cursor."""
    return app.screen.chosen_runs() if isinstance(app.screen, ConsoleScreen) else ()


def chosen_sweep(app: ConsoleApp) -> str:
    """Return the sweep under the cursor or of the screen, else the one shown last."""
    sweep = app.screen.chosen_sweep() if isinstance(app.screen, ConsoleScreen) else None
    return sweep.id if sweep is not None else app.sweep_id or ""


def subject_of(app: ConsoleApp, command: ConsoleCommand) -> str:
    """Return what a command is about if it names nothing, such as `3 runs`; empty if it has to name something."""
    chosen, sweep_id = chosen_runs(app), chosen_sweep(app)
    if command.about == "runs" and len(chosen) == 1:
        return f"run {chosen[0].id} s{chosen[0].seed} {chosen[0].competition_id}"
    if command.about == "runs" and chosen:
        return plural(len(chosen), "run")
    return f"sweep {sweep_id}" if command.about == "sweep" and sweep_id else ""
