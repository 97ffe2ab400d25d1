"""The `:` command line: the table of commands, and the input line with its suggestions.

Besides the table, every key of the current screen is a command too, named by the key's label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.actions import runs, sweeps
from mlebench_console.console.actions.action import Action
from mlebench_console.console.nouns.run import checked_filter, filter_words
from mlebench_console.console.pieces import cells_of, fit, foreign
from mlebench_console.console.roles import Piece, Pieces
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.keys import SCREENS, Context, Key, key_name
from mlebench_console.console.tui.list_screen import FilteredScreen
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.theme import THEME_NAMES
from mlebench_console.console.tui.widgets.inputs import FilePaths, TypingLine
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.engine.requests import (
    PauseSweep,
    ResumeSweep,
    SetConcurrency,
    SetPriority,
    SweepRequest,
)
from mlebench_console.foundation.problems import Problem, UsageProblem
from mlebench_console.foundation.text import plural

if TYPE_CHECKING:
    from textual.worker import WorkType

    from mlebench_console.console.app.app import ConsoleApp
    from mlebench_console.console.views.code import Wanted
    from mlebench_console.engine.sweeps.removal import Loss
    from mlebench_console.state.database import Database
    from mlebench_console.state.records import Run

Does = Callable[["ConsoleApp", list[str]], None]


@dataclass(frozen=True)
class Word:
    """A possible argument of a command, with a description."""

    text: str
    about: str = ""


Words = Callable[["ConsoleApp"], Iterable[Word]]


def _no_words(_app: ConsoleApp) -> Iterable[Word]:
    return ()


def _nothing(_app: ConsoleApp) -> str:
    return ""


@dataclass(frozen=True)
class Command:
    """A command: its name, its arguments, and what it does.

    Attributes:
        needs: how many arguments are required.
        words: the completions of each argument; the last entry is used for all further arguments.
        subject: what it applies to without arguments, such as `3 runs`; empty if to nothing.
        key: the key that does the same.
        changes: whether it changes anything; a read-only console does not offer it.
    """

    name: str
    takes: str
    help: str
    does: Does
    needs: int = 0
    words: tuple[Words, ...] = ()
    subject: Callable[[ConsoleApp], str] = _nothing
    key: str = ""
    changes: bool = False

    def words_at(self, place: int, app: ConsoleApp) -> Iterable[Word]:
        """Return the completions of the argument at an index."""
        return self.words[min(place, len(self.words) - 1)](app) if self.words else ()


# Completions.


def _sweeps(app: ConsoleApp) -> Iterator[Word]:
    return (Word(name, "sweep") for name in app.known_sweeps)


def _competitions(_app: ConsoleApp) -> Iterator[Word]:
    return (Word(name, registry.get(name).complexity) for name in registry.all_ids())


def _screens(_app: ConsoleApp) -> Iterator[Word]:
    return (Word(name, about) for name, _key, _title, about in SCREENS)


# More run numbers would slow down every keystroke, and nobody picks a run from a longer list.
_MOST_RUNS = 2000


def _runs(app: ConsoleApp) -> Iterator[Word]:
    chosen = {run.id for run in _chosen(app)}
    for run in sorted(app.known_runs, key=lambda run: run.id not in chosen)[:_MOST_RUNS]:
        state = wording.FAILURE_WORDS[run.failure_class] if run.failure_class else run.outcome or run.state
        yield Word(str(run.id), f"{run.competition_id} seed {run.seed}, {state.replace('_', ' ')}")


def _themes(_app: ConsoleApp) -> Iterator[Word]:
    return (Word(name) for name in THEME_NAMES)


def _filter_words(app: ConsoleApp) -> Iterator[Word]:
    return (Word(*known) for known in filter_words(app.known_runs, app.settings.filters))


def _tags_known(app: ConsoleApp) -> Iterable[str]:
    return dict.fromkeys(tag.name for run in app.known_runs for tag in run.tags)


def _tag_words(app: ConsoleApp) -> Iterator[Word]:
    there = dict.fromkeys(tag.name for run in _chosen(app) for tag in run.tags)
    for name in _tags_known(app):
        if name not in there:
            yield Word(name, "put it on")
    for name in there:
        yield Word(f"-{name}", "take it off")


# What commands apply to without arguments.


def _chosen(app: ConsoleApp) -> Sequence[Run]:
    return app.screen.chosen_runs() if isinstance(app.screen, ConsoleScreen) else ()


def _sweep_here(app: ConsoleApp) -> str:
    """Return the sweep under the cursor or of the screen, else the one shown last."""
    here = app.screen.chosen_sweep() if isinstance(app.screen, ConsoleScreen) else None
    return here.id if here is not None else app.sweep_id or ""


def _runs_here(app: ConsoleApp) -> str:
    chosen = _chosen(app)
    if len(chosen) == 1:
        return f"run {chosen[0].id} s{chosen[0].seed} {chosen[0].competition_id}"
    return plural(len(chosen), "run") if chosen else ""


def _sweep_named(app: ConsoleApp) -> str:
    sweep = _sweep_here(app)
    return f"sweep {sweep}" if sweep else ""


def _runs_or_sweep(app: ConsoleApp) -> str:
    return _runs_here(app) or _sweep_named(app)


# Implementations of the commands.


def _go(mode: str) -> Does:
    return lambda app, _words: app.show(mode)


def _go_to(app: ConsoleApp, words: list[str]) -> None:
    app.show(_one_of(words[0], [name for name, *_ in SCREENS], "screen"))


def _sweep(app: ConsoleApp, words: list[str]) -> None:
    app.show_sweep(words[0] if words else None)


def _timeline(app: ConsoleApp, words: list[str]) -> None:
    app.show_timeline(words[0] if words else None)


def _run(app: ConsoleApp, words: list[str]) -> None:
    number = _number(words[0], "the number of a run")
    _with_runs(app, [number], lambda found: app.show_run(found[0].id))


def _version(text: str) -> Wanted:
    """Parse a reference to a submission of a run: `17`, `17.1`, `17@3`, `17@best`."""
    from mlebench_console.console.views.code import Wanted, split_name

    run, attempt, submission = split_name(text)
    return Wanted(_number(run, "the number of a run"), attempt, submission)


def _code(app: ConsoleApp, words: list[str]) -> None:
    from mlebench_console.console.screens.code import CodeScreen

    if words:
        app.push_screen(CodeScreen(_version(words[0])))
    else:
        _do_here(app, "code", "RUN")


def _diff(app: ConsoleApp, words: list[str]) -> None:
    from mlebench_console.console.screens.code import DiffScreen

    if len(words) == 1:
        raise UsageProblem(":diff needs LEFT RIGHT")
    if words:
        app.push_screen(DiffScreen(_version(words[0]), _version(words[1])))
    else:
        _do_here(app, "diff", "LEFT RIGHT")


def _do_here(app: ConsoleApp, name: str, takes: str) -> None:
    """Call the action of this name on the current screen."""
    does = getattr(app.screen, f"action_{name}", None)
    if does is None:
        raise UsageProblem(f":{name} needs {takes} here")
    does()


def _grade(app: ConsoleApp, words: list[str]) -> None:
    app.show_grade(words[0] if words else "", " ".join(words[1:]))


def _launch(app: ConsoleApp, words: list[str]) -> None:
    if words:
        app.show_launch(file=Path(" ".join(words)).expanduser())
    else:
        app.show("launch")


def _clone(app: ConsoleApp, words: list[str]) -> None:
    app.show_launch(sweep_id=_sweep_of(app, words[0] if words else ""))


def _theme(app: ConsoleApp, words: list[str]) -> None:
    app.use_theme(words[0])


def _relaunch(app: ConsoleApp, words: list[str]) -> None:
    _act_on_runs(app, words, runs.relaunch)


def _stop(app: ConsoleApp, words: list[str]) -> None:
    if words and not words[0].isdecimal():
        app.act(sweeps.stop, _sweep_of(app, words[0]))
    else:
        _act_on_runs(app, words, runs.stop)


def _pause(app: ConsoleApp, words: list[str]) -> None:
    app.carry_out(Action((PauseSweep(sweep_id=_sweep_of(app, words[0] if words else "")),)))


def _resume(app: ConsoleApp, words: list[str]) -> None:
    app.carry_out(Action((ResumeSweep(sweep_id=_sweep_of(app, words[0] if words else "")),)))


def _set(request: Callable[..., SweepRequest], what: str, least: int | None) -> Does:
    """Return a command that changes a number of a sweep: the one named before the number, else the current one."""

    def change(app: ConsoleApp, words: list[str]) -> None:
        value = _number(words[-1], what, least)
        sweep_id = _sweep_of(app, words[0] if len(words) > 1 else "")
        app.carry_out(Action((request(sweep_id=sweep_id, value=value),)))

    return change


def _remove(app: ConsoleApp, words: list[str]) -> None:
    from mlebench_console.engine.sweeps.removal import loss_of, refuse_removal
    from mlebench_console.state import sweeps as known

    sweep_id, with_results = words[0], words[1:] == ["with-results"]
    if words[1:] and not with_results:
        raise UsageProblem(f"'{words[1]}' is not 'with-results' or nothing")

    def loss(database: Database) -> Loss:
        found = loss_of(database, known.get(database, sweep_id).id)
        with_what = "say ':rm SWEEP with-results'"
        try:
            refuse_removal(found, with_results=with_results)
        except UsageProblem as problem:
            next_step = problem.next_step.replace("give --with-results", with_what)
            raise UsageProblem(problem.what, problem.why, next_step) from problem
        return found

    app.read_state(loss, lambda found: app.act(sweeps.remove, found, with_results=with_results))


def _note(app: ConsoleApp, words: list[str]) -> None:
    chosen = _chosen(app)
    if chosen:
        app.act(runs.annotate, chosen, note=_note_of(words))
    else:
        _note_sweep(app, words)


def _note_sweep(app: ConsoleApp, words: list[str]) -> None:
    app.act(sweeps.annotate, _sweep_of(app, ""), note=_note_of(words))


def _note_of(words: list[str]) -> str:
    """Return the text of a note; only a dash means an empty one, so that no note is removed by mistake."""
    return "" if words == ["-"] else " ".join(words)


def _tag(app: ConsoleApp, words: list[str]) -> None:
    chosen = _chosen(app)
    if chosen:
        add, remove = _added_and_removed(words)
        app.act(runs.annotate, chosen, add=add, remove=remove)
    else:
        _tag_sweep(app, words)


def _tag_sweep(app: ConsoleApp, words: list[str]) -> None:
    add, remove = _added_and_removed(words)
    app.act(sweeps.annotate, _sweep_of(app, ""), add=add, remove=remove)


def _filter(app: ConsoleApp, words: list[str]) -> None:
    text, screen = " ".join(words), app.screen
    if isinstance(screen, FilteredScreen) and (not text or screen.MODE != "sweep"):
        screen.filter_by(text)
    else:
        app.filter_runs(text if text in app.settings.filters else checked_filter(text).text)


def _export(app: ConsoleApp, words: list[str]) -> None:
    app.show_export(words[0] if words else "", _sweep_here(app))


def _prepare(app: ConsoleApp, words: list[str]) -> None:
    from mlebench_console.console.actions import datasets

    chosen = [registry.get(name).id for name in words[0].split(",") if name]
    if words[1:]:
        plan = partial(datasets.prepare_raw, chosen, Path(" ".join(words[1:])))
        app.in_background(plan, app.carry_out)
    else:
        app.act(datasets.prepare_named, chosen)


def _act_on_runs(app: ConsoleApp, words: list[str], plan: Callable[[Sequence[Run]], Action]) -> None:
    """Act on the runs with these numbers, or without numbers on the chosen runs."""
    if words:
        numbers = [_number(word, "the number of a run") for word in words]
        _with_runs(app, numbers, lambda found: app.act(plan, found))
    elif chosen := _chosen(app):
        app.act(plan, chosen)
    else:
        raise UsageProblem("there is no run under the cursor", "", "Name some by their numbers.")


def _with_runs(app: ConsoleApp, numbers: Sequence[int], then: Callable[[list[Run]], None]) -> None:
    from mlebench_console.state import runs as known

    app.read_state(lambda database: [known.get(database, number) for number in numbers], then)


def _sweep_of(app: ConsoleApp, name: str) -> str:
    """Return the given sweep name, or without one the current sweep."""
    if not name:
        if not _sweep_here(app):
            raise UsageProblem("there is no sweep here", "", "Name one.")
        return _sweep_here(app)
    found = [known for known in app.known_sweeps if known == name] or [
        known for known in app.known_sweeps if known.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageProblem(f"'{name}' could be several sweeps", ", ".join(found[:5]))
    return name  # the engine says whether there is one


def _number(text: str, what: str, least: int | None = 0) -> int:
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or not text.isascii() or (least is not None and value < least):
        raise UsageProblem(f"'{text}' is not {what}")
    return value


def _one_of(name: str, known: Sequence[str], what: str) -> str:
    if name in known:
        return name
    found = [one for one in known if name and one.startswith(name)]
    if len(found) == 1:
        return found[0]
    step = f"Choose one of {', '.join(known)}." if known else f"There is no {what} yet."
    raise UsageProblem(f"there is no {what} '{name}'", "", step)


def _added_and_removed(words: Sequence[str]) -> tuple[list[str], list[str]]:
    added = [word.removeprefix("+").removeprefix("#") for word in words if not word.startswith("-")]
    removed = [word.removeprefix("-").removeprefix("#") for word in words if word.startswith("-")]
    return added, removed


_TAKING = {
    "sweep": Command(
        "sweep", "[SWEEP]", "Competitions and seeds of a sweep", _sweep, words=(_sweeps, _no_words)
    ),
    "grade": Command(
        "grade",
        "[COMPETITION [FILE]]",
        "Grade one submission file",
        _grade,
        words=(_competitions, _no_words),
    ),
    "launch": Command("launch", "[FILE.toml]", "Compose and launch a sweep, as a file says", _launch),
}
_change = partial(Command, changes=True)
COMMANDS: tuple[Command, ...] = (
    _change(
        "relaunch",
        "[RUN...]",
        "Queue runs again that have ended",
        _relaunch,
        words=(_runs,),
        subject=_runs_here,
    ),
    _change(
        "stop", "[RUN...|SWEEP]", "Stop runs, or a sweep for good", _stop, words=(_runs,), subject=_runs_here
    ),
    _change("tag", "TAG... [-TAG...]", "Add tags; -TAG removes one", _tag, 1, (_tag_words,), _runs_or_sweep),
    _change("note", "TEXT", "Write a note; - removes it", _note, 1, subject=_runs_or_sweep),
    _change("tag-sweep", "TAG... [-TAG...]", "The same for the sweep", _tag_sweep, 1, subject=_sweep_named),
    _change("note-sweep", "TEXT", "Write a note on the sweep", _note_sweep, 1, subject=_sweep_named),
    Command(
        "filter",
        "[NAME|WORD...]",
        "Show only some runs or lines; without words all",
        _filter,
        words=(_filter_words,),
    ),
    _change(
        "priority",
        "[SWEEP] N",
        "Whose runs start first",
        _set(SetPriority, "a whole number", None),
        1,
        (_sweeps, _no_words),
        _sweep_named,
    ),
    _change(
        "concurrency",
        "[SWEEP] N",
        "How many runs are live at once",
        _set(SetConcurrency, "a number of runs (1 or more)", 1),
        1,
        (_sweeps, _no_words),
        _sweep_named,
    ),
    _change(
        "pause",
        "[SWEEP]",
        "Start no more runs of a sweep",
        _pause,
        words=(_sweeps, _no_words),
        subject=_sweep_named,
    ),
    _change(
        "resume",
        "[SWEEP]",
        "Start runs of a sweep again",
        _resume,
        words=(_sweeps, _no_words),
        subject=_sweep_named,
    ),
    _change(
        "rm", "SWEEP [with-results]", "Remove a sweep with all its files", _remove, 1, (_sweeps, _no_words)
    ),
    Command(
        "clone",
        "[SWEEP]",
        "Fill the launch form as a sweep was launched",
        _clone,
        words=(_sweeps, _no_words),
        subject=_sweep_named,
    ),
    Command("export", "[ROW]", "Preview the export of a row", _export, subject=_sweep_named),
    _change(
        "prepare",
        "COMPETITION,... [FOLDER|ZIP]",
        "Prepare a dataset, from Kaggle or from raw data here",
        _prepare,
        1,
        (_competitions, _no_words),
    ),
    _change("undo", "", "Take back a stop or a relaunch", lambda app, _words: app.action_undo()),
    Command("go", "SCREEN", "Go to a screen", _go_to, 1, (_screens, _no_words)),
    Command("run", "NUMBER", "One run: log, timeline, submissions", _run, 1, (_runs, _no_words)),
    Command("code", "[RUN]", "The code at a submission: 17, 17@3", _code, words=(_runs, _no_words)),
    Command(
        "diff",
        "[LEFT RIGHT]",
        "What differs in code and configuration: 17 18, 17@3 17@5",
        _diff,
        words=(_runs, _runs, _no_words),
    ),
    *(_TAKING.get(name) or Command(name, "", about, _go(name)) for name, _key, _title, about in SCREENS),
    Command(
        "timeline",
        "[SWEEP]",
        "Attempts of a sweep, or of all, over time",
        _timeline,
        words=(_sweeps, _no_words),
    ),
    Command(
        "integrity",
        "",
        "What detectors have found in all runs",
        lambda app, _words: app.show_integrity("all runs"),
    ),
    Command("theme", "NAME", "Change the theme", _theme, 1, (_themes, _no_words)),
    _change("engine", "", "Start the engine if it is not running", lambda app, _words: app.start_engine()),
    Command("help", "", "The keys of this screen", lambda app, _words: app.action_help()),
    Command(
        "quit", "", "Close the console; the engine keeps running", lambda app, _words: app.action_leave()
    ),
)
_ALIASES = {
    "q": "quit",
    "q!": "quit",
    "sweeps": "sweep",
    "d": "data",
    "datasets": "data",
    "scoreboard": "board",
    "h": "help",
    "u": "undo",
}


def commands_here(app: ConsoleApp) -> list[Command]:
    """Return the commands available now: the table, and the keys of the screen that it does not cover."""
    # The palette is a screen of its own, above the one whose keys it lists.
    screen = next((each for each in app.screen_stack[::-1] if isinstance(each, ConsoleScreen)), None)
    contexts: tuple[Context, ...] = () if screen is None else screen.contexts()[:1]
    keys = {key.label: key for key in app.settings.keys.of(*contexts, "app")}
    table = [
        replace(command, key=keys[command.name].id if command.name in keys else "")
        for command in COMMANDS
        if not (command.changes and app.readonly)
    ]
    named = {command.name for command in COMMANDS}
    own: list[Command] = []
    for key in app.settings.keys.of(*contexts):
        # Not its label of the moment: a name that changes with the cursor could not be typed from memory.
        name = key.label.replace(" ", "-")
        if (
            screen is not None
            and screen.label_of(key)
            and name not in named
            and not (key.changes and app.readonly)
        ):
            named.add(name)
            own.append(Command(name, "", key.help, _press(key), key=key.id, changes=key.changes))
    here = [command for command in table if command.subject(app)]
    return [*here, *own, *(command for command in table if command not in here)]


def _press(key: Key) -> Does:
    """Return a command that runs the action of a key."""

    def do(app: ConsoleApp, _words: list[str]) -> None:
        app.call_later(app.run_action, key.does, app.screen)

    return do


def execute(app: ConsoleApp, text: str) -> None:
    """Run a command line and show a problem as a message; an unambiguous prefix of a name is enough."""
    try:
        perform(app, text)
    except Problem as problem:
        app.say(str(problem), bad=True)


def perform(app: ConsoleApp, text: str) -> None:
    """Run a command line.

    Raises:
        Problem: the command is unknown, its arguments are wrong, or it can't be carried out.
    """
    name, *words = text.split()
    command = _find(app, _ALIASES.get(name, name))
    if len(words) < command.needs:
        raise UsageProblem(f":{command.name} needs {command.takes}")
    command.does(app, words)


def _find(app: ConsoleApp, name: str) -> Command:
    known = commands_here(app)
    found = [command for command in known if command.name == name] or [
        command for command in known if command.name.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageProblem(f":{name} could be {', '.join(command.name for command in found)}")
    if any(command.name == name for command in COMMANDS):
        raise UsageProblem(f":{name} changes something, and this console is read-only")
    alike = get_close_matches(name, [command.name for command in known], n=1)
    step = f"Did you mean :{alike[0]}?" if alike else "':' lists what can be said."
    raise UsageProblem(f"there is no command :{name}", "", step)


@dataclass(frozen=True)
class Suggestion:
    """A line of the list above the command line.

    Attributes:
        completed: the text of the command line when this is accepted; None for a line that only explains.
        is_whole: whether that text is a complete command.
    """

    shown: str
    about: str
    subject: str = ""
    key: str = ""
    completed: str | None = None
    is_whole: bool = False


def suggestions(app: ConsoleApp, text: str) -> list[Suggestion]:
    """Return the completions of the typed text, the best match first."""
    head, _, typed = text.rpartition(" ")
    if not head.strip():
        return [_of_command(app, command) for command in _fitting(commands_here(app), typed)]
    name, *before = head.split()
    try:
        command = _find(app, _ALIASES.get(name, name))
    except UsageProblem as problem:
        return [Suggestion("", str(problem).splitlines()[0])]
    found = [
        Suggestion(
            word.text,
            word.about,
            completed=f"{head} {word.text}",
            is_whole=len(before) + 1 >= command.needs and not word.text.endswith(":"),
        )
        for word in _words_fitting(command.words_at(len(before), app), typed)
        if word.text not in before
    ]
    return [replace(_of_command(app, command), completed=None), *found]


# For commands that take a path: the index of the first argument that may be one.
_PATHS_FROM = {"launch": 0, "grade": 1, "prepare": 1}


def path_in(text: str) -> tuple[str, str] | None:
    """Return the text before a typed path, and the path; None where no path is being typed."""
    head, _, typed = text.rpartition(" ")
    name, *before = head.split() or [""]
    takes_path = name in _PATHS_FROM and len(before) >= _PATHS_FROM[name]
    return (head, typed) if takes_path and typed else None


def _of_command(app: ConsoleApp, command: Command) -> Suggestion:
    more = " " if command.takes else ""
    return Suggestion(
        f"{command.name} {command.takes}".rstrip(),
        command.help,
        command.subject(app),
        _key_text(app, command.key),
        f"{command.name}{more}",
        is_whole=not command.needs,
    )


def _key_text(app: ConsoleApp, key_id: str) -> str:
    with suppress(StopIteration):
        return key_name(app.settings.keys.named(key_id).keys[0], ascii_only=app.settings.ascii_only)
    return ""


def _fitting(known: Sequence[Command], typed: str) -> list[Command]:
    """Return the commands in which each typed word begins the name, is in it, or begins a word of the help."""
    ranks = {}
    for place, command in enumerate(known):
        rank = 0
        for wanted in typed.lower().split():
            in_help = any(word.startswith(wanted) for word in command.help.lower().split())
            found = (
                0 if command.name.startswith(wanted) else 1 if wanted in command.name else 2 if in_help else 3
            )
            rank = max(rank, found)
        if rank < 3:
            ranks[place] = rank
    return [known[place] for place in sorted(ranks, key=lambda place: (ranks[place], place))]


def _words_fitting(known: Iterable[Word], typed: str) -> list[Word]:
    wanted = typed.lower()
    found = [word for word in known if wanted in f"{word.text} {word.about}".lower()]
    return sorted(
        found,
        key=lambda word: (not word.text.lower().startswith(wanted), wanted not in word.text.lower()),
    )


_MOST_LINES = 24
_MOST_PROBLEM_LINES = 3
_WIDEST_COMMAND = 34
# How wide the list is at most, so that what belongs together is near, and the bounds of the subject's column.
_WIDEST_LIST, _WIDEST_SUBJECT, _SHORT_SUBJECT = 130, 60, 18


class CommandLine(Widget):
    """An input line for one command below a list of suggestions; ↑ and ↓ choose, Tab completes, Esc closes it."""

    DEFAULT_CSS = """
    CommandLine { height: auto; dock: bottom; layout: vertical; layer: overlay; }
    CommandLine > #candidates { height: auto; background: $surface; }
    CommandLine > Horizontal { height: 1; }
    CommandLine .prompt-sign { width: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("tab", "complete", "complete", show=False),
        Binding("down", "choose(1)", "next", show=False),
        Binding("up", "choose(-1)", "previous", show=False),
    ]
    app: ConsoleApp
    _last = ""

    def __init__(self, text: str = "") -> None:
        super().__init__(id="command")
        self._text = text
        self._found: list[Suggestion] = []
        # The index of the suggestion chosen with the arrow keys.
        self._chosen: int | None = None
        self._problem = ""
        self._paths = FilePaths()
        self._focused_before: Widget | None = None

    def compose(self) -> ComposeResult:
        """Yield the list, the sign and the field."""
        yield Painted(id="candidates")
        with Horizontal():
            yield Painted(((" : ", "accent"),), classes="prompt-sign")
            yield TypingLine(self._text, select_on_focus=False)

    def on_mount(self) -> None:
        """Focus the field and show the first suggestions."""
        self._focused_before = self.screen.focused
        self.query_one(Input).focus()
        self._suggest(self._text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the suggestions for the new text."""
        event.stop()
        self._problem = ""
        self._suggest(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run the chosen suggestion or the typed command; a problem is shown here, so that it can be corrected."""
        event.stop()
        text = event.value.strip()
        if self._chosen is not None:
            taken = self._found[self._chosen]
            if taken.completed is not None and not taken.is_whole:
                self._type(taken.completed)
                return
            text = (taken.completed or text).strip()
        if not text:
            self._close()
            return
        CommandLine._last = text
        try:
            perform(self.app, text)
        except Problem as problem:
            self._problem = ". ".join(line.removesuffix(".") for line in str(problem).splitlines())
            self._type(text)
            self._draw()
        else:
            self._close()

    def on_input_blurred(self, event: Input.Blurred) -> None:
        """Close the command line when it loses the focus."""
        event.stop()
        self.remove()

    def on_resize(self) -> None:
        """Redraw for the new width."""
        self._draw()

    def action_leave(self) -> None:
        """Close the command line."""
        self._close()

    def _close(self) -> None:
        """Remove the line; the focus goes back where it was, as Textual would give it to a field nearby."""
        if self.query_one(Input).has_focus:
            self.screen.set_focus(self._focused_before)
        self.remove()

    def action_complete(self) -> None:
        """Accept the chosen suggestion, or else the first one that completes the text."""
        places = [self._chosen] if self._chosen is not None else range(len(self._found))
        taken = next((self._found[place] for place in places if self._found[place].completed), None)
        if taken is not None and taken.completed is not None:
            begins = taken.completed.endswith((":", "/", " "))
            self._type(taken.completed if begins else f"{taken.completed} ")

    def action_choose(self, step: int) -> None:
        """Choose the next or previous suggestion; ↑ on an empty line brings back the last command."""
        field = self.query_one(Input)
        if step < 0 and not field.value and self._chosen is None and CommandLine._last:
            self._type(CommandLine._last)
            return
        can = [place for place, each in enumerate(self._found) if each.completed is not None]
        if not can:
            return
        if self._chosen in can:
            self._chosen = can[(can.index(self._chosen) + step) % len(can)]
        else:
            self._chosen = can[0 if step > 0 else -1]
        self._draw()

    def _type(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.action_end()

    def _suggest(self, text: str) -> None:
        self._found, self._chosen = suggestions(self.app, text), None
        if path_in(text) is not None:
            suggest: WorkType[None] = partial(self._suggest_path, text)
            self.run_worker(suggest, exclusive=True)
        self._draw()

    async def _suggest_path(self, text: str) -> None:
        """Add the path completed from the disk, unless the text has changed meanwhile."""
        typed = path_in(text)
        found = await self._paths.get_suggestion(typed[1]) if typed is not None else None
        if typed is not None and found and self.query_one(Input).value == text:
            self._found.append(Suggestion(found, "on this disk", completed=f"{typed[0]} {found}"))
            self._draw()

    def _draw(self) -> None:
        for shown in self.query("#candidates").results(Painted):
            shown.show(*self._lines(self.screen.size.width))

    def _lines(self, width: int) -> Iterator[Pieces]:
        """Return the visible part of the list around the chosen suggestion, and the last problem."""
        signs = self.app.signs
        room = max(2, min(_MOST_LINES, self.screen.size.height // 2 - 2))
        first = max(0, min((self._chosen or 0) - room // 2, len(self._found) - room))
        shown = self._found[first : first + room]
        if self._problem:
            # Below a problem, the line that says that nothing matches is not needed.
            shown = [each for each in shown if each.shown]
        names = min(_WIDEST_COMMAND, max((len(each.shown) for each in shown), default=0), 2 * width // 5)
        more = len(self._found) - len(shown)
        yield ((signs.rule * width, "faint"),)
        room_beside = min(width, _WIDEST_LIST) - 4 - names
        abouts = max((cell_len(plain(each.about)) for each in shown if each.subject), default=0)
        # Descriptions are short and the same each time; the subject says what would be changed.
        longest = min(_WIDEST_SUBJECT, max(_SHORT_SUBJECT, room_beside - abouts - 2))
        for place, each in enumerate(shown, start=first):
            is_chosen = place == self._chosen
            begin: Piece = (f"{signs.cursor if is_chosen else ' '} ", "accent")
            name = f"{fit(plain(each.shown), names, ellipsis=signs.ellipsis)}  "
            side = each.subject or each.key
            known = f" {foreign(side, longest, ellipsis=signs.ellipsis).rstrip()} " if side else ""
            about = foreign(each.about, max(0, room_beside - cell_len(known)), ellipsis=signs.ellipsis)
            yield (
                begin,
                (name, "strong" if is_chosen else "accent" if each.completed else "text"),
                (about, "text" if is_chosen else "dim"),
                (known, "text" if each.subject else "dim"),
            )
        if self._problem:
            parts = cells_of(plain(self._problem), width - 4)[:_MOST_PROBLEM_LINES]
            yield from (((f"  {part}", "bad"),) for part in parts)
        elif more > 0:
            yield ((f"  {more} more; type to narrow, up and down choose, tab completes", "dim"),)
