"""The console as a Textual app: it holds what all screens share and does no work; the engine does that."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.message import Message

from console import remembering
from console.calling import Caller
from console.config import Settings
from console.keys import bindings
from console.messages import ConditionChanged, EngineSeen
from console.model.condition import Condition, Health
from console.model.reader import Reader
from console.sanitize import plain_lines
from console.screens.base import ConsoleScreen
from console.screens.frame import SCREENS, Situation
from console.screens.opening import OpeningScreen
from console.session import Session, read_session
from console.signs import ASCII, UNICODE, Signs
from console.terminal_app import TerminalApp
from console.theme import DARK, LIGHT, PALETTE_NAMES, PALETTES, THEME_NAMES, Palette
from console.type_ahead import TypeAhead
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

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
OPEN_DEMO = "demo"
# A console that is killed is found again as it was some seconds before.
_REMEMBER_TICKS = 10


def _screen(name: str) -> Any:
    """Make a screen when it is first wanted: what the first frame does not show need not be imported for it."""
    return getattr(importlib.import_module(f"console.screens.{name}"), f"{name.capitalize()}Screen")()


def _import_the_rest() -> None:
    for module in ("run", "sweep", "help", "confirm"):
        importlib.import_module(f"console.screens.{module}")


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
    MODES: ClassVar[dict[str, Any]] = {
        name: partial(_screen, name) for name in ("welcome", *(name for name, _key, _title in SCREENS))
    }

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
        self._wanted = screen
        self.session = Session()
        self._drawn_in = -1
        self._type_ahead = TypeAhead(self, super().on_event)
        self._ticks = 0
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

        self.caller = Caller(self)
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
        self._open_first()
        self.reader.look_every = self.settings.refresh_seconds
        self.caller.begin()
        self.reader.start()
        self.set_interval(TICK_SECONDS, self._tick)
        # So that the first key that opens a run is answered as fast as the second.
        self.set_timer(TICK_SECONDS, partial(self.in_thread, _import_the_rest, lambda _none: None))

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

    def show_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Open the sweep screen on a sweep, the cursor on a run of it."""
        self.sweep_id = sweep_id or self.sweep_id
        from console.screens.sweep import SweepScreen

        self.action_go("sweep")
        screen = self.base_screen()
        if isinstance(screen, SweepScreen):
            screen.show_sweep(self.sweep_id, run_id)

    def show_run(self, run_id: int, *, pane: str = "log") -> None:
        """Open a run over the screen that is seen."""
        from console.screens.run import RunScreen

        if isinstance(self.screen, RunScreen):
            self.pop_screen()
        self.push_screen(RunScreen(run_id, pane=pane))

    def show_grade(self, competition_id: str, path: str) -> None:
        """Open the grading screen with its fields filled in."""
        from console.screens.grade import GradeScreen

        self.action_go("grade")
        screen = self.base_screen()
        if isinstance(screen, GradeScreen):
            self.call_after_refresh(screen.fill_in, competition_id, path)

    def say(self, text: str, *, bad: bool = False) -> None:
        """Tell once what came of something that was asked for."""
        harmless = "\n".join(plain_lines(text))
        self.notify(harmless, severity="error" if bad else "information", markup=False, timeout=8)

    def copy_path(self, path: Path) -> None:
        """Copy where something lies to the terminal's clipboard."""
        self.copy_to_clipboard("\n".join(plain_lines(str(path))))
        self.say(f"copied {path}")

    def ask(self, kind: str, arguments: dict[str, Any]) -> None:
        """Ask the engine for a change, in a thread, and tell its answer."""
        from engine import control

        if self.refuses():
            return
        self.in_thread(
            partial(control.ask, self.places, kind, arguments), lambda answer: self.say(answer.text)
        )

    def in_thread(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do something that may wait, and what follows from it back here; a problem is told."""

        def run() -> None:
            try:
                result = work()
            except Problem as problem:
                self._call_back(partial(self.say, str(problem), bad=True))
            except Exception as error:
                # One failed request must not end the console; the log keeps the traceback.
                log.exception("working for a screen")
                told = f"that failed: {error!r}\nconsole.log in the state has more"
                self._call_back(partial(self.say, told, bad=True))
            else:
                self._call_back(then, result)

        threading.Thread(target=run, name="console-work", daemon=True).start()

    def confirm(self, question: ConfirmScreen, then: Callable[[], None]) -> None:
        """Ask before doing something; nothing happens unless the answer is yes."""
        self.push_screen(question, lambda answer: then() if answer else None)

    def refuses(self) -> bool:
        """Whether nothing may be changed from here; then it is said."""
        if self.readonly:
            self.say("this console is read-only")
        return self.readonly

    def start_engine(self) -> None:
        """Start the engine, and tell so."""
        from engine import control

        if self.refuses():
            return

        def started(status: EngineStatus) -> None:
            self.say(f"the engine is running, process {status.pid}")
            self.reader.look_now()

        self.in_thread(partial(control.ensure_running, self.places), started)

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
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if mode != self.current_mode:
            self.switch_mode(mode)

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

    def remember(self) -> None:
        """Keep where one is, if that has changed."""
        if not self.readonly:
            self.session = remembering.remember(self)

    def action_leave(self) -> None:
        """Close the console."""
        self.remember()
        self.leave()

    def action_help_quit(self) -> None:
        """Tell how to leave: Ctrl-C closes nothing, so that no habit ends a watch."""
        self.say(f"{self.settings.keys.named('app.quit').keys[0]} closes the console; the engine goes on")

    def _open_first(self) -> None:
        from state import database as state_database

        modes = {name for name, _key, _title in SCREENS}
        self.session = read_session(self.places.state_dir)
        exists = state_database.exists(self.places.state_dir)
        wanted = self._wanted or (self.session.place if exists and self.session.screen in modes else "")
        mode, _, rest = wanted.partition(":")
        if not mode:
            self.switch_mode("overview" if exists else "welcome")
        elif mode == "run" and rest.isdigit():
            self.switch_mode("overview")
            self.call_after_refresh(self.show_run, int(rest))
        elif mode in modes:
            self.sweep_id = rest or None if mode == "sweep" else None
            self.switch_mode(mode)

    def end_when(self, is_over: Callable[[], bool]) -> None:
        """Close the console by itself once nobody can see it any more."""
        self._is_over = is_over

    def _tick(self) -> None:
        if self._is_over():
            self.exit()
        self.catch_up()
        self._refresh_frame()
        self._ticks += 1
        if self._ticks % _REMEMBER_TICKS == 0:
            self.remember()
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

    def base_screen(self) -> Screen[Any]:
        """The screen below whatever was opened over it."""
        return self.screen_stack[0]

    def base_screens(self) -> tuple[Screen[Any], ...]:
        """That of every mode that was seen."""
        return tuple(stack[0] for stack in self._screen_stacks.values() if stack)

    def _post(self, message: Message) -> None:
        if self.is_running:
            self.post_message(message)

    def _call_back(self, callback: Callable[..., None], *arguments: Any) -> None:
        if self.is_running:
            self.call_later(callback, *arguments)
