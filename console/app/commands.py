"""The commands of the `:` line: those of the shell that a console can carry out, and some of its own.

Names, arguments, options and help are what the command line declares; the table here says what the console does for
each: it acts through the same actions as keys do, or opens a screen. The runs or the sweep that are chosen on the
screen are what a command is about that names none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typer import TyperException

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.actions import dataset as dataset_actions
from mlebench_console.console.actions import integrity
from mlebench_console.console.actions import need as need_actions
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.actions import sweep as sweep_actions
from mlebench_console.console.actions.action import Action
from mlebench_console.console.app.shell import Shell
from mlebench_console.console.nouns.run import RUN_FILTERS, filter_words
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.views.names import find_cause, find_run
from mlebench_console.engine.needs.causes import recorded_cause
from mlebench_console.engine.requests import (
    AssignExperiment,
    PauseSweep,
    PrioritizeDatasets,
    ResumeSweep,
    SetConcurrency,
    SetPriority,
    StopDatasets,
    SweepRequest,
    VerifyDatasets,
)
from mlebench_console.foundation.problems import UsageProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import sweeps as known_sweeps
from mlebench_console.state.lifecycle import FailureClass
from mlebench_console.state.records import VerificationKind

if TYPE_CHECKING:
    from typer._click import Command, Context
    from typer._click.core import Parameter

    from mlebench_console.console.app.app import ConsoleApp
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.engine.sweeps.removal import Loss
    from mlebench_console.state.database import Database
    from mlebench_console.state.records import Run

# More run numbers would slow down every keystroke, and nobody picks a run from a longer list.
_MOST_RUNS = 2000
# How alike a name has to be to what was typed to be suggested.
_ALIKE = 0.75
# A run's number, several of them, or SWEEP/COMPETITION/SEED.
_NAMES_RUNS = re.compile(r"\d+([,.@]\S*)?|\S+/\S+/\d+\S*")


@dataclass(frozen=True)
class Given:
    """The arguments of a command as typed, by the names that the command line gives them, and what it is about.

    Attributes:
        runs: the runs that were named, or else chosen.
        sweep_id: the sweep, likewise.
    """

    values: Mapping[str, Any]
    runs: Sequence[Run] = ()
    sweep_id: str = ""


Does = Callable[["ConsoleApp", Given], None]


@dataclass(frozen=True)
class CommandAction:
    """What the console does for one command.

    Attributes:
        options: the names of the options that it takes here; the others only mean something in a shell.
        about: what its first argument names, which may be left out where that is chosen on the screen.
        key: the action of the key that does the same on the screens that have it.
        changes: whether it changes anything; a read-only console does not offer it.
    """

    does: Does
    options: tuple[str, ...] = ()
    about: Literal["", "runs", "sweep"] = ""
    key: str = ""
    changes: bool = False


@dataclass(frozen=True)
class ConsoleCommand:
    """A command as the command line declares it.

    Attributes:
        path: its name, such as `runs retry`.
        action: what the console does for it; None for one of the console's own, which does it by itself.
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
        known = () if self.action is None else self.action.options
        return [each for each in self.declared.params if each.name in known]

    @property
    def about(self) -> str:
        """What its first argument names, if that may be left out."""
        return "" if self.action is None else self.action.about

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


# What commands do.


def _act_on_runs(plan: Callable[[Sequence[Run]], Action]) -> Does:
    return lambda app, given: app.act(plan, given.runs)


def _change_sweep(request: Callable[..., SweepRequest], value: str = "", argument: str = "value") -> Does:
    """Return what asks for a change of a sweep, with the value of an argument."""

    def change(app: ConsoleApp, given: Given) -> None:
        more = {argument: given.values[value]} if value else {}
        app.carry_out(Action((request(sweep_id=given.sweep_id, **more),)))

    return change


def _stop_sweep(app: ConsoleApp, given: Given) -> None:
    app.act(sweep_actions.stop, given.sweep_id)


def _retry_sweep(app: ConsoleApp, given: Given) -> None:
    from mlebench_console.state import runs as known

    kinds = [FailureClass(each) for each in given.values["failure_class"] or (FailureClass.INFRASTRUCTURE,)]
    app.read_state(
        lambda database: [run for kind in kinds for run in known.failed(database, given.sweep_id, kind)],
        lambda failed: app.act(run_actions.relaunch, failed),
    )


def _remove_sweep(app: ConsoleApp, given: Given) -> None:
    from mlebench_console.engine.sweeps.removal import loss_of, refuse_removal

    name, with_results = given.values["sweep_id"], given.values["with_results"]

    def loss(database: Database) -> Loss:
        if known_sweeps.find(database, name) is None:
            raise UsageProblem(f"there is no sweep '{name}'", "", "Give the whole name.")
        found = loss_of(database, name)
        refuse_removal(found, with_results=with_results)
        return found

    app.read_state(loss, lambda found: app.act(sweep_actions.remove, found, with_results=with_results))


def _classify(app: ConsoleApp, given: Given) -> None:
    app.act(
        run_actions.classify,
        given.runs,
        FailureClass(given.values["failure_class"]),
        note=given.values["note"],
    )


def _note(app: ConsoleApp, given: Given) -> None:
    text, remove = given.values["text"], given.values["remove"]
    if bool(text) is remove:
        raise UsageProblem("give either a text or --remove")
    _annotate(app, given, note=text)


def _tag(app: ConsoleApp, given: Given) -> None:
    tags = given.values["tags"]
    if not tags:
        raise UsageProblem("argument TAG... is missing")
    if given.values["remove"]:
        _annotate(app, given, remove=tags)
    else:
        _annotate(app, given, add=tags)


def _annotate(app: ConsoleApp, given: Given, **change: Any) -> None:
    if given.sweep_id:
        app.act(sweep_actions.annotate, given.sweep_id, **change)
    else:
        app.act(run_actions.annotate, given.runs, **change)


def _acknowledge(app: ConsoleApp, given: Given) -> None:
    if given.values["undo"]:
        plan: Callable[[str], Action] = need_actions.take_back
    else:
        plan = partial(need_actions.acknowledge, reason=given.values["reason"])
    wanted, now = given.values["cause"], app.now()
    app.read_state(lambda database: find_cause(database, wanted, now), lambda found: app.act(plan, found.key))


def _review(app: ConsoleApp, given: Given) -> None:
    values = given.values
    finding, cleared, reason = values["finding"], values["cleared"], values["reason"]
    app.act(integrity.review, given.runs[0].id, finding, cleared=cleared, reason=reason)


def _show_logs(app: ConsoleApp, given: Given) -> None:
    from mlebench_console.console.screens.logs import RunLogsScreen

    if len(given.runs) == 1:
        app.show_run(given.runs[0].id, pane="log")
    else:
        app.push_screen(RunLogsScreen([run.id for run in given.runs]))


def _show_code(app: ConsoleApp, given: Given) -> None:
    from mlebench_console.console.screens.code import CodeScreen

    name, submission = given.values["run"], given.values["submission"]
    wanted = f"{name}@{submission}" if submission else name
    app.read_state(partial(_version, name=wanted), lambda version: app.push_screen(CodeScreen(version)))


def _show_difference(app: ConsoleApp, given: Given) -> None:
    from mlebench_console.console.screens.code import DiffScreen

    names = given.values["left"], given.values["right"]
    app.read_state(
        lambda database: [_version(database, name) for name in names],
        lambda versions: app.push_screen(DiffScreen(*versions)),
    )


def _version(database: Database, name: str) -> Wanted:
    """Parse a reference to a submission of a run: `17`, `17.1`, `17@3`, `17@best`."""
    from mlebench_console.console.views.code import Wanted, split_name

    run, attempt, submission = split_name(name)
    return Wanted(find_run(database, run).id, attempt, submission)


def _launch(app: ConsoleApp, given: Given) -> None:
    file = given.values["file"]
    if file is None:
        app.show("launch")
    else:
        app.show_launch(file=Path(file).expanduser())


def _prepare(app: ConsoleApp, given: Given) -> None:
    ids, raw = _competitions_of(given), given.values["raw"]
    if raw is None:
        app.act(dataset_actions.prepare_named, ids)
    else:
        app.in_background(partial(dataset_actions.prepare_raw, ids, Path(raw)), app.carry_out)


def _ask_of_datasets(request: Callable[..., Any], **more: Callable[[Given], object]) -> Does:
    """Return what asks for work on the named datasets; `more` reads further arguments of the request."""

    def ask(app: ConsoleApp, given: Given) -> None:
        arguments = {name: read(given) for name, read in more.items()}
        app.carry_out(Action((request(competition_ids=tuple(_competitions_of(given)), **arguments),)))

    return ask


def _competitions_of(given: Given) -> list[str]:
    ids = given.values["competition_id"]
    if not ids:
        raise UsageProblem("option --competition-id is missing")
    return [registry.get(name).id for name in ids]


def _verification_of(given: Given) -> VerificationKind:
    return VerificationKind.DEEP if given.values["deep"] else VerificationKind.QUICK


def _show_export(app: ConsoleApp, given: Given) -> None:
    app.show_export("" if given.sweep_id else given.values["source"], given.sweep_id)


def _show(mode: str) -> Does:
    return lambda app, _given: app.show(mode)


_change = partial(CommandAction, changes=True)
ACTIONS: Mapping[str, CommandAction] = {
    "runs retry": _change(_act_on_runs(run_actions.relaunch), about="runs", key="relaunch"),
    "runs stop": _change(_act_on_runs(run_actions.stop), about="runs", key="stop"),
    "runs regrade": _change(_act_on_runs(run_actions.regrade), about="runs", key="regrade"),
    "runs classify": _change(_classify, ("failure_class", "note"), "runs", "classify"),
    "runs note": _change(_note, ("remove",), "runs", "note"),
    "runs tag": _change(_tag, ("remove",), "runs", "tag"),
    "runs show": CommandAction(lambda app, given: app.show_run(given.runs[0].id), about="runs", key="open"),
    "runs logs": CommandAction(_show_logs, about="runs", key="log"),
    "runs calls": CommandAction(
        lambda app, given: app.show_run(given.runs[0].id, pane="calls"), about="runs"
    ),
    "runs code": CommandAction(_show_code, ("submission",), key="code"),
    "runs diff": CommandAction(_show_difference, key="diff"),
    "runs acknowledge": _change(_acknowledge, ("reason", "undo"), key="acknowledge"),
    "sweep show": CommandAction(lambda app, given: app.show_sweep(given.sweep_id), about="sweep"),
    "sweep timeline": CommandAction(
        lambda app, given: app.show_timeline(given.values["sweep_id"] or None), key="timeline"
    ),
    "sweep pause": _change(_change_sweep(PauseSweep), about="sweep", key="pause"),
    "sweep resume": _change(_change_sweep(ResumeSweep), about="sweep"),
    "sweep stop": _change(_stop_sweep, about="sweep"),
    "sweep retry": _change(_retry_sweep, ("failure_class",), "sweep"),
    "sweep concurrency": _change(_change_sweep(SetConcurrency, "runs"), about="sweep"),
    "sweep priority": _change(_change_sweep(SetPriority, "value"), about="sweep"),
    "sweep note": _change(_note, ("remove",), "sweep", "note_sweep"),
    "sweep tag": _change(_tag, ("remove",), "sweep", "tag_sweep"),
    "sweep assign": _change(_change_sweep(AssignExperiment, "experiment", "experiment_id"), about="sweep"),
    "sweep rm": _change(_remove_sweep, ("with_results",)),
    "sweep launch": CommandAction(_launch),
    "prepare": _change(_prepare, ("competition_id", "raw"), key="prepare"),
    "datasets stop": _change(_ask_of_datasets(StopDatasets), ("competition_id",)),
    "datasets verify": _change(
        _ask_of_datasets(VerifyDatasets, verification=_verification_of), ("competition_id", "deep")
    ),
    "datasets priority": _change(
        _ask_of_datasets(PrioritizeDatasets, value=lambda given: given.values["value"]), ("competition_id",)
    ),
    "grade-sample": CommandAction(
        lambda app, given: app.show_grade(given.values["competition_id"], given.values["submission"])
    ),
    "export row": CommandAction(_show_export, about="sweep", key="export"),
    "integrity show": CommandAction(lambda app, _given: app.show_integrity("all runs"), key="integrity"),
    "integrity review": _change(_review, ("reason", "cleared"), "runs"),
    "engine start": _change(lambda app, _given: app.start_engine()),
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
        words, given = _with_subject(app, command, rest)
        try:
            context = command.declared.make_context(command.path, words, obj=app)
        except TyperException as error:
            raise UsageProblem(f":{command.path}: {self._shell.explain(error)}", command.usage) from error
        _require_taken(command, context)
        if command.action is None:
            command.declared.invoke(context)
            return
        does, values = command.action.does, context.params
        if command.about == "runs" and not given.runs:
            names = _first(command, values)
            wanted = names.split(",") if isinstance(names, str) else names
            app.read_state(
                lambda database: [find_run(database, name) for name in wanted],
                lambda found: does(app, Given(values, found)),
            )
        elif command.about == "sweep" and not given.sweep_id and _names_sweep(command):
            name = str(_first(command, values))
            app.read_state(
                lambda database: known_sweeps.get(database, name).id,
                lambda found: does(app, Given(values, sweep_id=found)),
            )
        else:
            does(app, Given(values, given.runs, given.sweep_id))


def _declared(root: Any, path: str) -> Command:
    command = root
    for name in path.split():
        command = command.get_command(None, name)
    found: Command = command
    return found


def _first(command: ConsoleCommand, values: Mapping[str, Any]) -> str | Sequence[str]:
    """Return what was typed as the first argument: a text, or several where it takes several."""
    found: str | Sequence[str] = values[command.arguments[0].name or ""]
    return found


def _names_sweep(command: ConsoleCommand) -> bool:
    """Return whether its first argument is a sweep's name, and nothing else."""
    return metavar_of(command.arguments[0]) == "SWEEP"


def _with_subject(app: ConsoleApp, command: ConsoleCommand, rest: str) -> tuple[list[str], Given]:
    """Return the words after a command, with what is chosen on the screen in place of a first argument that is missing.

    Raises:
        UsageProblem: a quote is not closed.
    """
    words = _split(command, app, rest)
    first = next(iter(_without_options(command, words)), "")
    # A single argument that was typed is what it is about, also if there is no such thing.
    if _names_subject(app, command, first) or (first and len(command.arguments) == 1):
        return words, Given({})
    chosen, sweep_id = chosen_runs(app), chosen_sweep(app)
    if command.about == "runs" and chosen:
        return [str(chosen[0].id), *words], Given({}, chosen)
    # Before sweeps were read, a word may well be the name of one.
    if command.about == "sweep" and sweep_id and (app.known_sweeps or not first):
        return [sweep_id, *words], Given({}, sweep_id=sweep_id)
    return words, Given({})


def _split(command: ConsoleCommand, app: ConsoleApp, rest: str) -> list[str]:
    first, _, text = rest.partition(" ")
    if command.ends_in_text and rest and not rest.startswith("-") and not text.startswith("--"):
        if not _names_subject(app, command, first):
            return [rest]
        return [first, *([text] if text else [])]
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageProblem(f":{command.path}: a quote is not closed") from error
    if {"-h", "--help"} & {*words}:
        raise UsageProblem(command.usage, command.help)
    return words


def _names_subject(app: ConsoleApp, command: ConsoleCommand, word: str) -> bool:
    if command.about == "runs":
        return _NAMES_RUNS.fullmatch(word) is not None
    if command.about == "sweep" and _names_sweep(command):
        return bool(word) and any(known.startswith(word) for known in app.known_sweeps)
    return bool(word)


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


# Completion.


@dataclass(frozen=True)
class Word:
    """A possible argument of a command, with a description.

    Attributes:
        goes_on: whether it is only the beginning of a word, such as `seed:`.
        wants_value: whether another word has to follow, as after an option.
    """

    text: str
    about: str = ""
    goes_on: bool = False
    wants_value: bool = False


def matching(known: Sequence[ConsoleCommand], typed: str) -> list[ConsoleCommand]:
    """Return the commands in which each typed word begins the name, is in it, or begins a word of the help."""
    ranks = {}
    for place, command in enumerate(known):
        rank = 0 if command.path.startswith(typed.lower()) else 1
        for word in typed.lower().split():
            in_help = any(each.startswith(word) for each in command.help.lower().split())
            rank = max(rank, 1 if word in command.path else 2 if in_help else 3)
        if rank < 3 or command.path.startswith(typed.lower()):
            ranks[place] = rank
    return [known[place] for place in sorted(ranks, key=lambda place: (ranks[place], place))]


@dataclass(frozen=True)
class Completion:
    """What may come next on a line that begins with a command.

    Attributes:
        head: the text before the word that is being typed.
        typed: what is typed of that word.
        words: what it may become, the best match first.
        is_path: whether a path on this disk is expected.
        is_last: whether the command has all that it needs with this word.
    """

    head: str = ""
    typed: str = ""
    words: Sequence[Word] = ()
    is_path: bool = False
    is_last: bool = False


def completion(app: ConsoleApp, command: ConsoleCommand, line: str) -> Completion:
    """Return what may come next on a line that begins with this command and a space."""
    head, _, typed = line.rpartition(" ")
    before = head[len(command.path) :].split()
    taken = _without_options(command, before)
    option = _option_named(command, before[-1]) if before else None
    is_value = option is not None and not _is_flag(option)
    parameters = [option] if option is not None and is_value else _arguments_at(app, command, taken)
    values = [word for parameter in parameters for word in _values(app, parameter)]
    options = [
        Word(each.opts[0], getattr(each, "help", "") or "", wants_value=not _is_flag(each))
        for each in command.options
    ]
    shown = values if is_value else [*values, *options]
    wanted = typed.lower()
    fitting = [word for word in shown if wanted in f"{word.text} {word.about}".lower()]
    ranked = sorted(
        (word for word in fitting if word.text not in before),
        key=lambda word: (not word.text.lower().startswith(wanted), wanted not in word.text.lower()),
    )
    needed = sum(argument.required for argument in command.arguments)
    is_last = len(taken) + (not is_value) + bool(subject_of(app, command)) >= needed
    is_path = any(metavar_of(parameter) in _PATHS for parameter in parameters)
    return Completion(head, typed, ranked, is_path, is_last)


def _option_named(command: ConsoleCommand, word: str) -> Parameter | None:
    return next((each for each in command.options if word in each.opts), None)


def _without_options(command: ConsoleCommand, words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor values of options."""
    options = [None, *(_option_named(command, word) for word in words)]
    return [
        word
        for word, before in zip(words, options, strict=False)
        if not word.startswith("-") and (before is None or _is_flag(before))
    ]


def _is_flag(option: Parameter) -> bool:
    return bool(getattr(option, "is_flag", False))


def _arguments_at(app: ConsoleApp, command: ConsoleCommand, words: Sequence[str]) -> Sequence[Parameter]:
    """Return the arguments of which one may come after these words, the likeliest first."""
    arguments, has_subject = command.arguments, bool(subject_of(app, command))
    place = len(words) + (has_subject and not (words and _names_subject(app, command, words[0])))
    found = arguments[place : place + 1] or [each for each in arguments[-1:] if each.nargs == -1]
    # The first one too, although what is chosen stands for it.
    return (
        found
        if words or not has_subject
        else [*found, *(each for each in arguments[:1] if each not in found)]
    )


def _values(app: ConsoleApp, parameter: Parameter) -> Iterable[Word]:
    choices: Iterable[str] | None = getattr(parameter.type, "choices", None)
    if choices is not None:
        return (Word(choice) for choice in choices)
    known = _VALUES.get(metavar_of(parameter))
    return () if known is None else known(app)


def _runs(app: ConsoleApp) -> Iterator[Word]:
    chosen = {run.id for run in chosen_runs(app)}
    for run in sorted(app.known_runs, key=lambda run: run.id not in chosen)[:_MOST_RUNS]:
        state = wording.FAILURE_WORDS[run.failure_class] if run.failure_class else run.outcome or run.state
        yield Word(str(run.id), f"{run.competition_id} seed {run.seed}, {state.replace('_', ' ')}")


def _sweeps(app: ConsoleApp) -> Iterator[Word]:
    return (Word(name, "sweep") for name in app.known_sweeps)


def _competitions(_app: ConsoleApp) -> Iterator[Word]:
    return (Word(name, registry.get(name).complexity) for name in registry.all_ids())


def _tags(app: ConsoleApp) -> Iterator[Word]:
    chosen = {tag.name for run in chosen_runs(app) for tag in run.tags}
    for name in dict.fromkeys(tag.name for run in app.known_runs for tag in run.tags):
        yield Word(name, "on what is chosen" if name in chosen else "")


def _causes(app: ConsoleApp) -> Iterator[Word]:
    return (Word(key, text) for key, text in dict(map(recorded_cause, app.known_runs)).items() if key)


def _filters(app: ConsoleApp) -> Iterator[Word]:
    fields = {f"{name}:" for name in RUN_FILTERS}
    for text, about in filter_words(app.known_runs, app.settings.filters):
        yield Word(text, about, goes_on=text in fields)


# The values that can be completed, by how the help calls them.
_VALUES: Mapping[str, Callable[[ConsoleApp], Iterable[Word]]] = {
    **dict.fromkeys(("RUN", "RUN...", "[RUN...]", "RUN,...", "LEFT", "RIGHT"), _runs),
    **dict.fromkeys(("SWEEP", "[SWEEP]"), _sweeps),
    **dict.fromkeys(("ID", "[ID]"), _competitions),
    **dict.fromkeys(("TAG...", "[TAG...]"), _tags),
    "CAUSE": _causes,
    "[NAME|WORD...]": _filters,
}
_PATHS = frozenset({"FILE", "[FILE]", "SUBMISSION", "DIR|ZIP", "[DIR|ZIP]"})
