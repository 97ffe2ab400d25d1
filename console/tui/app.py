"""The console as a Textual app: it holds what all screens share and does no work; the engine does that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec

from textual import events
from textual.message import Message

from console.actions.action import NotApplicable
from console.sanitize import plain_lines
from console.tui.calling import Caller
from console.tui.config import Settings
from console.tui.errands import Errands
from console.tui.keys import bindings
from console.tui.messages import ConditionChanged, EngineSeen
from console.tui.redrawing import Redrawing
from console.tui.remembering import Memory
from console.tui.screen import ConsoleScreen, OpeningScreen, Situation
from console.tui.terminal import TerminalApp
from console.tui.theme import ASCII, DARK, LIGHT, PALETTES, UNICODE, Palette, Signs
from console.tui.type_ahead import TypeAhead
from console.tui.ways import MODES, Ways, import_the_rest
from console.views.condition import Condition, Health
from console.views.reader import Reader
from engine.notifications.news import troubles
from engine.places import Places
from foundation.clock import Clock, SystemClock

# What the first frame does not show is imported where it is used: half of what somebody waits who opens a console
# is spent on imports.
if TYPE_CHECKING:
    from textual.command import Provider
    from textual.screen import Screen

    from console.actions.action import Action
    from console.screens.confirm import ConfirmScreen
    from engine.control import EngineStatus

P = ParamSpec("P")

TICK_SECONDS = 0.5
OPEN_DEMO = "demo"


def _palette_commands() -> type[Provider]:
    from console.tui.commands import ConsoleCommands

    return ConsoleCommands


def _engine_status(places: Places) -> EngineStatus:
    from engine import control

    return control.status(places)


class ConsoleApp(TerminalApp):
    """The operator's console over one state directory."""

    CSS_PATH = "console.tcss"
    TITLE = "mlebench-console"
    BINDINGS = bindings("app")
    COMMANDS: ClassVar[set[Any]] = {_palette_commands}
    MODES: ClassVar[dict[str, Any]] = dict(MODES)

    def __init__(
        self,
        places: Places,
        settings: Settings,
        *,
        screen: str | None = None,
        readonly: bool = False,
        demo: bool = False,
        clock: Clock | None = None,
    ) -> None:
        super().__init__()
        self.places = places
        self.settings = settings
        self.readonly = readonly
        self.demo = demo
        self.clock: Clock = clock or SystemClock()
        self.condition = Condition()
        self.engine: EngineStatus | None = None
        self.sweep_id: str | None = None
        self.known_sweeps: tuple[str, ...] = ()
        self._wanted = screen or ""
        self._type_ahead = TypeAhead(self, super().on_event)
        self.ways = Ways(self)
        self.errands = Errands(self)
        self.drawing = Redrawing(self)
        self.memory = Memory(self)
        self.caller = Caller(self)
        self.animation_level = "none"
        # Before anything is styled: the stylesheet uses names that only these themes have.
        for palette in PALETTES.values():
            self.register_theme(palette.textual_theme())
        self.theme = self.palette.name
        self.reader = Reader(
            places,
            on_condition=lambda condition: self._post(ConditionChanged(condition)),
            engine_status=_engine_status,
            on_engine=lambda status: self._post(EngineSeen(status)),
        )

    @property
    def palette(self) -> Palette:
        """The theme's styles."""
        return self.settings.palette

    @property
    def signs(self) -> Signs:
        """The signs, of which the terminal may only know ASCII."""
        return ASCII if self.settings.ascii_only else UNICODE

    def now(self) -> float:
        """The time."""
        return self.clock.now()

    def situation(self) -> Situation:
        """How things are around every screen."""
        return Situation(
            now=self.now(),
            condition=self.condition,
            stalled_seconds=self.reader.stalled_for(),
            engine=self.engine,
            demo=self.demo,
            readonly=self.readonly,
            signs=self.signs,
            ascii_only=self.settings.ascii_only,
        )

    def get_default_screen(self) -> Screen[Any]:
        """What is seen until the first screen is there."""
        return OpeningScreen()

    async def on_event(self, event: events.Event) -> None:
        """Take keys in their order, also those that come before a field is there that they are meant for."""
        await self._type_ahead.on_event(event)

    def on_mount(self) -> None:
        """Show the first frame, and begin when it is seen."""
        self.hold_terminal()
        self.set_keymap(self.settings.keys.keymap())
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        from state import database

        self.memory.begin()
        exists = database.exists(self.places.state_dir)
        self.ways.begin(self._wanted, self.memory.session, state_exists=exists)
        self.reader.look_every = self.settings.refresh_seconds
        self.caller.begin()
        self.reader.start()
        self.set_interval(TICK_SECONDS, self._tick)
        self.set_timer(TICK_SECONDS, lambda: self.errands.in_thread(import_the_rest, lambda _none: None))

    def on_unmount(self) -> None:
        """End the reader with the app."""
        self.reader.stop()

    def on_condition_changed(self, message: ConditionChanged) -> None:
        """Tell how the state is, and leave the welcome once there is one."""
        self.condition = message.condition
        if message.condition.health is Health.GOOD and self.current_mode == "welcome":
            self.switch_mode("overview")
        self.drawing.frames()

    def on_engine_seen(self, message: EngineSeen) -> None:
        """Tell how the engine is."""
        before, self.engine = troubles(self.engine), message.status
        self.drawing.frames()
        self.caller.on_engine()
        if troubles(self.engine) != before:
            self.drawing.foremost()

    def say(self, text: str, *, bad: bool = False) -> None:
        """Tell once what came of something that was asked for."""
        harmless = "\n".join(plain_lines(text))
        self.notify(harmless, severity="error" if bad else "information", markup=False, timeout=8)

    def copy_path(self, path: Path) -> None:
        """Copy where something lies to the terminal's clipboard."""
        self.copy_to_clipboard("\n".join(plain_lines(str(path))))
        self.say(f"copied {path}")

    def act(self, plan: Callable[P, Action], *args: P.args, **kwargs: P.kwargs) -> None:
        """Carry out the action that a plan makes of its arguments, or say why it applies to none of them."""
        try:
            action = plan(*args, **kwargs)
        except NotApplicable as problem:
            self.say(str(problem))
        else:
            self.carry_out(action)

    def carry_out(self, action: Action) -> None:
        """Ask the action's question, if it has one, then file its requests; the engine's answers are shown."""
        from console.screens.confirm import ConfirmScreen, question_lines

        question = action.question
        if self.refuses():
            return
        if question is None:
            self._file(action)
        else:
            lines = question_lines(question, self.size.width)
            self.confirm(ConfirmScreen(question.title, lines, question.yes), partial(self._file, action))

    def _file(self, action: Action) -> None:
        for request in action.requests:
            self.errands.ask(request.kind, request.arguments)

    def confirm(self, question: ConfirmScreen, then: Callable[[], None]) -> None:
        """Ask before doing something; nothing happens unless the answer is yes."""
        self.push_screen(question, lambda answer: then() if answer else None)

    def refuses(self) -> bool:
        """Whether nothing may be changed from here; then it is said."""
        if self.readonly:
            self.say("this console is read-only")
        return self.readonly

    def open_demo(self) -> None:
        """Leave this state for the demo's."""
        if not self.refuses():
            self.exit(OPEN_DEMO)

    def action_go(self, mode: str) -> None:
        """Show a screen."""
        self.ways.to(mode)

    def action_command_line(self) -> None:
        """Open the command line."""
        from console.tui.commands import CommandLine

        if not self.screen.is_modal and not self.screen.query(CommandLine):
            self.screen.mount(CommandLine())

    def action_help(self) -> None:
        """Show the keys of this screen."""
        from console.screens.help import HelpScreen

        if isinstance(self.screen, ConsoleScreen):
            self.push_screen(HelpScreen(self.screen.contexts()))

    def action_next_theme(self) -> None:
        """Change between dark and light."""
        from console.tui import adjusting

        if not self.palette.monochrome:
            adjusting.choose_palette(self, (LIGHT if self.palette.dark else DARK).name)

    def action_leave(self) -> None:
        """Close the console."""
        self.memory.keep()
        self.leave()

    def action_help_quit(self) -> None:
        """Tell how to leave: Ctrl-C closes nothing, so that no habit ends a watch."""
        self.say(f"{self.settings.keys.named('app.quit').keys[0]} closes the console; the engine goes on")

    def _tick(self) -> None:
        self.catch_up()
        self.memory.tick()
        self.drawing.tick()

    def screens_below(self) -> tuple[Screen[Any], ...]:
        """Those of all modes that were seen, without what was opened over them."""
        return tuple(stack[0] for stack in self._screen_stacks.values() if stack)

    def _post(self, message: Message) -> None:
        if self.is_running:
            self.post_message(message)
