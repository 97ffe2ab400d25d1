"""The `:` command line: its commands in one table, the line they are typed on, and the Ctrl+P palette over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from competitions import registry
from console.actions import sweeps
from console.tui.keys import SCREENS
from console.tui.theme import THEME_NAMES
from console.tui.widgets.inputs import TypingLine
from console.tui.widgets.painted import Painted
from foundation.problems import Problem, UsageProblem

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

Does = Callable[["ConsoleApp", list[str]], None]


@dataclass(frozen=True)
class Command:
    """One word, what may follow it, and what it does."""

    name: str
    takes: str
    help: str
    does: Does
    needs: int = 0


def _go(mode: str) -> Does:
    return lambda app, _words: app.show(mode)


def _sweep(app: ConsoleApp, words: list[str]) -> None:
    app.show_sweep(words[0] if words else None)


def _timeline(app: ConsoleApp, words: list[str]) -> None:
    app.show_timeline(words[0] if words else None)


def _run(app: ConsoleApp, words: list[str]) -> None:
    if not words[0].isdigit():
        raise UsageProblem(f"'{words[0]}' is not the number of a run")
    app.show_run(int(words[0]))


def _grade(app: ConsoleApp, words: list[str]) -> None:
    app.show_grade(words[0] if words else "", " ".join(words[1:]))


def _theme(app: ConsoleApp, words: list[str]) -> None:
    app.use_theme(words[0])


def _pause(app: ConsoleApp, words: list[str]) -> None:
    app.act(sweeps.change, "sweep.pause", words[0])


def _resume(app: ConsoleApp, words: list[str]) -> None:
    app.act(sweeps.change, "sweep.resume", words[0])


def _concurrency(app: ConsoleApp, words: list[str]) -> None:
    if not words[1].isdigit():
        raise UsageProblem(f"'{words[1]}' is not a number of runs")
    app.act(sweeps.change, "sweep.concurrency", words[0], value=int(words[1]))


_TAKING = {
    "sweep": Command("sweep", "[SWEEP]", "Competitions and seeds of a sweep", _sweep),
    "grade": Command("grade", "[COMPETITION [FILE]]", "Grade one submission file", _grade),
}
COMMANDS: tuple[Command, ...] = (
    *(_TAKING.get(name) or Command(name, "", about, _go(name)) for name, _key, _title, about in SCREENS),
    Command("timeline", "[SWEEP]", "Attempts of a sweep, or of all, over time", _timeline),
    Command("run", "NUMBER", "One run: log, timeline, submissions", _run, needs=1),
    Command(
        "integrity",
        "",
        "What detectors have found in all runs",
        lambda app, _words: app.show_integrity("all runs"),
    ),
    Command("pause", "SWEEP", "Start no more runs of a sweep", _pause, needs=1),
    Command("resume", "SWEEP", "Start runs of a sweep again", _resume, needs=1),
    Command("concurrency", "SWEEP N", "How many runs of a sweep may be live at once", _concurrency, needs=2),
    Command("theme", "|".join(THEME_NAMES), "Change the theme", _theme, needs=1),
    Command("engine", "", "Start the engine if it is not running", lambda app, _words: app.start_engine()),
    Command("help", "", "The keys of this screen", lambda app, _words: app.action_help()),
    Command(
        "quit", "", "Close the console; the engine keeps running", lambda app, _words: app.action_leave()
    ),
)
_ALIASES = {
    "q": "quit",
    "q!": "quit",
    "sweeps": "sweep",
    "datasets": "data",
    "scoreboard": "board",
    "h": "help",
}


def execute(app: ConsoleApp, text: str) -> None:
    """Do what a command line says, or say why not; an unambiguous beginning of a word is enough."""
    name, *words = text.split()
    try:
        command = _find(_ALIASES.get(name, name))
        if len(words) < command.needs:
            raise UsageProblem(f":{command.name} needs {command.takes}")
        command.does(app, words)
    except Problem as problem:
        app.say(str(problem), bad=True)


def completions(sweeps: tuple[str, ...], competitions: tuple[str, ...]) -> list[str]:
    """Return everything that the command line can complete to."""
    taking = [
        f"{name} {sweep}"
        for name in ("sweep", "timeline", "pause", "resume", "concurrency")
        for sweep in sweeps
    ]
    return [
        *(command.name for command in COMMANDS),
        *(f"theme {name}" for name in THEME_NAMES),
        *taking,
        *(f"grade {competition}" for competition in competitions),
    ]


def _find(name: str) -> Command:
    found = [command for command in COMMANDS if command.name == name] or [
        command for command in COMMANDS if command.name.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageProblem(f":{name} could be {', '.join(command.name for command in found)}")
    raise UsageProblem(f"there is no command :{name}", "", "? lists the keys, Ctrl+P all commands.")


class ConsoleCommands(Provider):
    """Finds commands by fuzzy search; those that need a word open the command line with their name."""

    async def discover(self) -> Hits:
        """All commands, before anything is typed."""
        for command in COMMANDS:
            yield DiscoveryHit(_title(command), partial(self._take, command), help=command.help)

    async def search(self, query: str) -> Hits:
        """The commands that match."""
        matcher = self.matcher(query)
        for command in COMMANDS:
            score = matcher.match(f"{command.name} {command.help}")
            if score > 0:
                yield Hit(score, _title(command), partial(self._take, command), help=command.help)

    def _take(self, command: Command) -> None:
        app = cast("ConsoleApp", self.app)
        if command.needs:
            app.screen.mount(CommandLine(f"{command.name} "))
        else:
            execute(app, command.name)


def _title(command: Command) -> str:
    return f"{command.name} {command.takes}".rstrip().replace("[", "\\[")


class CommandLine(Widget):
    """Takes one command; Tab or → completes, ↑ brings back the last one, Esc leaves."""

    DEFAULT_CSS = "CommandLine { height: 1; dock: bottom; layout: horizontal; layer: overlay; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("up", "recall", "recall", show=False),
    ]
    app: ConsoleApp
    _last = ""

    def __init__(self, text: str = "") -> None:
        super().__init__(id="command", classes="prompt -open")
        self._text = text

    def compose(self) -> ComposeResult:
        """The sign and the field."""
        yield Painted(((" : ", "accent"),), classes="prompt-sign")
        known = completions(self.app.known_sweeps, registry.all_ids())
        suggester = SuggestFromList(known, case_sensitive=False)
        yield TypingLine(self._text, suggester=suggester, select_on_focus=False)

    def on_mount(self) -> None:
        """Take what is typed."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Do it."""
        event.stop()
        text = event.value.strip()
        self.remove()
        if text:
            CommandLine._last = text
            execute(self.app, text)

    def on_input_blurred(self, event: Input.Blurred) -> None:
        """Go away when something else is chosen."""
        event.stop()
        self.remove()

    def action_leave(self) -> None:
        """Go away."""
        self.remove()

    def action_complete(self) -> None:
        """Take the suggestion."""
        field = self.query_one(Input)
        if not field.cursor_at_end:
            field.action_end()
        else:
            field.action_cursor_right()

    def action_recall(self) -> None:
        """Bring back the last command."""
        self.query_one(Input).value = CommandLine._last
