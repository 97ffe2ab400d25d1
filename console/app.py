"""The console as a Textual app: it holds what all screens share and does no work; the engine does that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.message import Message

from console.calling import Caller
from console.config import Settings
from console.errands import Errands
from console.keys import bindings
from console.messages import ConditionChanged, EngineSeen
from console.model.condition import Condition, Health
from console.model.reader import Reader
from console.remembering import Memory
from console.sanitize import plain_lines
from console.screens.base import ConsoleScreen
from console.screens.frame import Situation
from console.screens.opening import OpeningScreen
from console.signs import ASCII, UNICODE, Signs
from console.terminal_app import TerminalApp
from console.theme import DARK, LIGHT, PALETTE_NAMES, PALETTES, THEME_NAMES, Palette
from console.type_ahead import TypeAhead
from console.ways import MODES, Ways, import_the_rest
from engine.notifications.troubles import troubles
from engine.places import Places
from foundation.clock import Clock, SystemClock
from foundation.problems import Problem, UsageProblem

# What the first frame does not show is imported where it is used: half of what somebody waits who opens a console
# is spent on imports.
if TYPE_CHECKING:
    from textual.command import Provider
    from textual.screen import Screen

    from console.screens.confirm import ConfirmScreen
    from engine.control import EngineStatus

TICK_SECONDS = 0.5
OPEN_DEMO = "demo"


def _palette_commands() -> type[Provider]:
    from console.palette_commands import ConsoleCommands

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
        self._drawn_in = -1
        self._type_ahead = TypeAhead(self, super().on_event)
        self.ways = Ways(self)
        self.errands = Errands(self)
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
        self._is_over: Callable[[], bool] = lambda: False

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
        self._refresh_frame()

    def on_engine_seen(self, message: EngineSeen) -> None:
        """Tell how the engine is."""
        before, self.engine = troubles(self.engine), message.status
        self._refresh_frame()
        self.caller.on_engine()
        if troubles(self.engine) != before and isinstance(self.screen, ConsoleScreen):
            self.screen.draw()

    def say(self, text: str, *, bad: bool = False) -> None:
        """Tell once what came of something that was asked for."""
        harmless = "\n".join(plain_lines(text))
        self.notify(harmless, severity="error" if bad else "information", markup=False, timeout=8)

    def copy_path(self, path: Path) -> None:
        """Copy where something lies to the terminal's clipboard."""
        self.copy_to_clipboard("\n".join(plain_lines(str(path))))
        self.say(f"copied {path}")

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

    def redraw_all(self) -> None:
        """Draw everything again that is seen, because it is to look otherwise."""
        self._refresh_frame()
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen):
                screen.draw()

    def set_palette(self, name: str) -> None:
        """Change the theme."""
        if name not in PALETTE_NAMES:
            raise UsageProblem(f"there is no theme '{name}'", "", f"Themes: {', '.join(THEME_NAMES)}.")
        self.settings = replace(self.settings, palette=PALETTE_NAMES[name])
        self.theme = self.palette.name
        for widget in self.screen.walk_children():
            widget.refresh()

    def execute(self, text: str) -> None:
        """Do what a line of the command line says, or tell why not."""
        from console import commands

        try:
            commands.execute(self, text)
        except Problem as problem:
            self.say(str(problem), bad=True)

    def action_go(self, mode: str) -> None:
        """Show a screen."""
        self.ways.to(mode)

    def action_command_line(self) -> None:
        """Open the command line."""
        from console.widgets.command_line import CommandLine

        if not self.screen.is_modal and not self.screen.query(CommandLine):
            self.screen.mount(CommandLine())

    def action_help(self) -> None:
        """Show the keys of this screen."""
        from console.screens.help import HelpScreen

        if isinstance(self.screen, ConsoleScreen):
            self.push_screen(HelpScreen(self.screen.contexts()))

    def action_next_theme(self) -> None:
        """Change between dark and light."""
        if not self.palette.monochrome:
            self.set_palette((LIGHT if self.palette.dark else DARK).name)

    def action_leave(self) -> None:
        """Close the console."""
        self.memory.keep()
        self.leave()

    def action_help_quit(self) -> None:
        """Tell how to leave: Ctrl-C closes nothing, so that no habit ends a watch."""
        self.say(f"{self.settings.keys.named('app.quit').keys[0]} closes the console; the engine goes on")

    def end_when(self, is_over: Callable[[], bool]) -> None:
        """Close the console by itself once nobody can see it any more."""
        self._is_over = is_over

    def _tick(self) -> None:
        if self._is_over():
            self.exit()
        self.catch_up()
        self._refresh_frame()
        self.memory.tick()
        # A tick may come when the screens are gone already, because the console is ending.
        if self.screen_stack and isinstance(self.screen, ConsoleScreen):
            beat = int(self.now() // self.screen.redraw_every())
            if beat != self._drawn_in:
                self._drawn_in = beat
                self.screen.beat()

    def _refresh_frame(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen) and screen.is_mounted and screen.query("#footer"):
                screen.refresh_frame()

    def screens_below(self) -> tuple[Screen[Any], ...]:
        """Those of all modes that were seen, without what was opened over them."""
        return tuple(stack[0] for stack in self._screen_stacks.values() if stack)

    def _post(self, message: Message) -> None:
        if self.is_running:
            self.post_message(message)
