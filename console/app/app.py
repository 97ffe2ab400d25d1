"""The console as a Textual app: navigation, reading the state, requests to the engine, messages and settings.

Nothing here blocks the event loop: the thread of `reader` reads the state, the engine makes all changes, and slow work
runs in background threads. Output to the terminal and the order of keys are in `terminal`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from textual import events

from mlebench_console.console.app.news import NewsWatch, desktop_sequence
from mlebench_console.console.app.screens import import_next_screens, make_screen
from mlebench_console.console.tui.base_app import BaseApp
from mlebench_console.console.tui.config import Settings, read_settings, require_usable, theme_named
from mlebench_console.console.tui.keys import SCREENS, bindings
from mlebench_console.console.tui.reader import Reader, StateCondition, StateHealth
from mlebench_console.console.tui.screen import ConsoleScreen, OpeningScreen, is_too_small
from mlebench_console.console.tui.session import Session, read_session, write_session
from mlebench_console.console.tui.stylesheet import CachedStylesheet
from mlebench_console.console.tui.theme import DARK, LIGHT, PALETTES
from mlebench_console.engine.notifications import news
from mlebench_console.engine.notifications.news import News
from mlebench_console.engine.places import Places
from mlebench_console.foundation.clock import Clock, SystemClock

# Modules that the first frame does not need are imported where they are used: imports take half of the console's
# start-up time.
if TYPE_CHECKING:
    from textual.screen import Screen

    from mlebench_console.console.actions.action import Action
    from mlebench_console.console.app.commands import Commands
    from mlebench_console.console.app.shell import Shell
    from mlebench_console.engine.control import Answer, EngineStatus
    from mlebench_console.engine.needs.needs import NeedFacts
    from mlebench_console.engine.requests import Request
    from mlebench_console.engine.settings import Value
    from mlebench_console.state.database import Database
    from mlebench_console.state.records import FiledRequest

log = logging.getLogger(__name__)

P = ParamSpec("P")
Result = TypeVar("Result")
Shown = TypeVar("Shown", bound=ConsoleScreen)

OPEN_DEMO = "demo"
_TICK_SECONDS = 0.5
_ANSWER_SECONDS = 30.0
# For how many seconds requests wait that can be undone.
_UNDO_SECONDS = 5.0
_MOST_WARNINGS = 3
# The session is saved this often, so that after a kill the console reopens where it was some seconds before.
_SESSION_EVERY_TICKS = 10
# Actions that need nothing from the current screen, so their keys work before its queries are answered.
_SCREEN_INDEPENDENT = ("app.go(", "app.leave")
_MODE_NAMES = tuple(name for name, *_ in SCREENS)


class ConsoleApp(BaseApp):
    """The operator's console over one state directory.

    Attributes:
        news: finds new events since its last check.
    """

    CSS_PATH = "console.tcss"
    TITLE = "mlebench-console"
    BINDINGS = bindings("app")
    ENABLE_COMMAND_PALETTE = False
    MODES: ClassVar[dict[str, Any]] = {name: partial(make_screen, name) for name in ("welcome", *_MODE_NAMES)}

    def __init__(
        self,
        places: Places,
        settings: Settings,
        *,
        screen: str | None = None,
        readonly: bool = False,
        demo: bool = False,
        shell: Shell,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(places, settings, readonly=readonly, demo=demo, clock=clock or SystemClock())
        self.news = NewsWatch(self.clock)
        self._shell = shell
        self._need_facts: NeedFacts | None = None
        self._first_screen = screen or ""
        self._ticks = 0
        self._redrawn_in = -1
        self.animation_level = "none"
        # Before anything is styled: the stylesheet uses colour names that only these themes define.
        for palette in PALETTES.values():
            self.register_theme(palette.textual_theme())
        self.theme = self.palette.name
        self.stylesheet = CachedStylesheet(variables=self.get_css_variables())
        # The callbacks run in the reader's thread.
        self.reader = Reader(
            places,
            on_condition=partial(self.call_later, self.take_condition),
            on_engine=partial(self.call_later, self.take_engine),
        )

    # Start and end.

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen that is shown until the first real one is ready."""
        return OpeningScreen()

    def on_mount(self) -> None:
        """Take over the terminal, and open the first screen after the first frame."""
        self.hold_terminal()
        self.set_keymap(self.settings.keys.keymap())
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        from mlebench_console.state import database, requests

        self.session = read_session(self.places.state_dir)
        self._show_first(state_exists=(self.places.state_dir / database.DATABASE_NAME).exists())
        self.reader.look_every = self.settings.refresh_seconds
        for text in self.settings.unknown[:_MOST_WARNINGS]:
            self.say(f"warning: {text}")
        self.watch_news()
        self.reader.watch("needs", _read_needs, partial(self.call_later, self._take_needs))
        self.reader.watch("waiting", requests.waiting, partial(self.call_later, self.take_waiting))
        self.reader.start()
        self.set_interval(_TICK_SECONDS, self._tick)
        self.set_timer(_TICK_SECONDS, partial(self.in_background, self._import_ahead))

    def _import_ahead(self) -> None:
        """Import what is likely to be used next, in the background."""
        import_next_screens()
        _ = self.commands.all

    def on_unmount(self) -> None:
        """End the reader with the app."""
        self.reader.stop()

    def action_leave(self) -> None:
        """Close the console."""
        self._keep_session()
        self.leave()

    def action_help_quit(self) -> None:
        """Show which key quits: Ctrl-C does not, so that the console is not closed by habit."""
        self.say(
            f"{self.settings.keys.named('app.quit').keys[0]} closes the console; the engine keeps running"
        )

    def open_demo(self) -> None:
        """Close this console with a result that makes the caller open the demo's state."""
        if not self.refuses():
            self.exit(OPEN_DEMO)

    # Navigation.

    def _show_first(self, *, state_exists: bool) -> None:
        """Show the requested screen, else the session's, else the overview; without a state the welcome screen."""
        wanted = self._first_screen
        if not wanted and state_exists and self.session.screen in _MODE_NAMES:
            wanted = self.session.place
        mode, _, rest = wanted.partition(":")
        if not mode:
            self.switch_mode("overview" if state_exists else "welcome")
        elif mode == "run" and rest.isdecimal():
            self.switch_mode("overview")
            self.call_after_refresh(self.show_run, int(rest))
        elif mode in _MODE_NAMES:
            self.sweep_id = rest or None if mode == "sweep" else None
            self.switch_mode(mode)

    def show(self, mode: str) -> None:
        """Show one of the numbered screens, and close all screens above it."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if mode != self.current_mode:
            self.switch_mode(mode)

    def _opened(self, mode: str, kind: type[Shown]) -> Shown:
        """Show one of the numbered screens and return it."""
        self.show(mode)
        screen = self.screen_stack[0]
        assert isinstance(screen, kind)
        return screen

    def show_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Show a sweep (without an id, the one shown last) with the cursor on a run."""
        from mlebench_console.console.screens.sweep import SweepScreen

        self.sweep_id = sweep_id or self.sweep_id
        self._opened("sweep", SweepScreen).show_sweep(self.sweep_id, run_id)

    def show_run(self, run_id: int, *, pane: str = "log") -> None:
        """Open a run over the current screen."""
        from mlebench_console.console.screens.run.screen import RunScreen

        if isinstance(self.screen, RunScreen):
            self.pop_screen()
        self.push_screen(RunScreen(run_id, pane=pane))

    def show_grade(self, competition_id: str, path: str) -> None:
        """Show the grading screen with its fields filled in."""
        from mlebench_console.console.screens.grading import GradeScreen

        self.call_after_refresh(self._opened("grade", GradeScreen).fill_in, competition_id, path)

    def action_go(self, mode: str) -> None:
        """Show one of the numbered screens."""
        self.show(mode)

    def action_command_line(self, text: str = "") -> None:
        """Open the command line, with the beginning of a command."""
        from mlebench_console.console.app.command_line import CommandLine

        if not self.screen.is_modal and not self.screen.query(CommandLine):
            # Messages would cover the suggestions.
            self.clear_notifications()
            self.screen.mount(CommandLine(text))

    @cached_property
    def commands(self) -> Commands:
        """The commands of the `:` line."""
        from mlebench_console.console.app.commands import Commands

        return Commands(self._shell)

    def action_annotate(self, what: str, of: str = "") -> None:
        """Open the command line to write a note or tags on the chosen runs, or else on the sweep."""
        screen = self.screen
        if not isinstance(screen, ConsoleScreen) or self.refuses():
            return
        sweep, chosen = screen.chosen_sweep(), screen.chosen_runs()
        of = of or ("runs" if chosen else "sweep")
        notes = {run.note for run in chosen} if of == "runs" else {"" if sweep is None else sweep.note}
        note = notes.pop() if what == "note" and len(notes) == 1 else ""
        self.action_command_line(f"{of} {what} {note}")

    def action_relaunch(self) -> None:
        """Relaunch the runs that the screen has chosen."""
        from mlebench_console.console.actions.run import relaunch

        if (screen := self._acting_screen()) is not None:
            self.act(relaunch, screen.chosen_runs(), limits=screen.time_limits())

    def action_stop(self) -> None:
        """Stop the runs that the screen has chosen."""
        from mlebench_console.console.actions.run import stop

        if (screen := self._acting_screen()) is not None:
            self.act(stop, screen.chosen_runs(), now=self.now())

    def action_regrade(self) -> None:
        """Retry the failed grading of the runs that the screen has chosen."""
        from mlebench_console.console.actions.run import regrade

        if (screen := self._acting_screen()) is not None:
            self.act(regrade, screen.chosen_runs())

    def action_classify(self) -> None:
        """Correct the class of the failures of the runs that the screen has chosen."""
        from mlebench_console.console.screens.dialogs import open_classify

        if (screen := self._acting_screen()) is not None:
            open_classify(self, screen.chosen_runs())

    def _acting_screen(self) -> ConsoleScreen | None:
        """Return the screen on whose chosen runs a key acts; None if a filter hides all of them, which is said."""
        screen = self.screen
        return screen if isinstance(screen, ConsoleScreen) and not screen.all_marks_hidden() else None

    def filter_runs(self, words: str, sweep_id: str | None = None, run_id: int | None = None) -> None:
        """Show a sweep (without an id, the one shown last) filtered by these words, with the cursor on a run."""
        from mlebench_console.console.screens.sweep import SweepScreen

        screen = self._opened("sweep", SweepScreen)
        self.call_after_refresh(screen.filter_by, words)
        if sweep_id is not None:
            self.call_after_refresh(screen.show_sweep, sweep_id, run_id)

    def show_launch(self, *, sweep_id: str = "", file: Path | None = None) -> None:
        """Show the launch form, filled in from an earlier sweep or from a file."""
        from mlebench_console.console.screens.launch import LaunchScreen

        screen = self._opened("launch", LaunchScreen)
        self.call_after_refresh(screen.fill_in, sweep_id=sweep_id, file=file)

    def show_export(self, name: str) -> None:
        """Open the export of one of our scoreboard rows, by its name or by a sweep that belongs to it."""
        from mlebench_console.console.screens.export import ExportScreen
        from mlebench_console.console.views.scoreboard import subject_named

        self.read_state(
            lambda database: subject_named(database, name),
            lambda subject: self.push_screen(ExportScreen(subject)),
        )

    def action_help(self) -> None:
        """Show the keys of this screen."""
        from mlebench_console.console.screens.dialogs import HelpScreen

        if isinstance(self.screen, ConsoleScreen):
            self.push_screen(HelpScreen(self.screen.contexts()))

    async def on_event(self, event: events.Event) -> None:
        """Handle an event; while the terminal is too small to show anything, of all keys only quit works."""
        if isinstance(event, events.Key) and not event.is_forwarded and is_too_small(self.size):
            if event.key in self.settings.keys.named("app.quit").keys:
                self.action_leave()
        else:
            await super().on_event(event)

    def opens_field(self, key: str) -> bool:
        """Whether a key opens an input field, so that the keys typed after it must wait for the field."""
        if isinstance(self.screen, ConsoleScreen):
            known = self.settings.keys.of(*self.screen.contexts(), "app")
        else:
            known = self.settings.keys.of(*getattr(self.screen, "CONTEXTS", ()))
        return any(
            key in each.keys and each.opens_field and not (self.readonly and each.changes) for each in known
        )

    def takes_key(self, key: str) -> bool:
        """Whether a key may be handled now: its screen has its data, or the key needs nothing from the screen."""
        screen = self.screen
        if not isinstance(screen, ConsoleScreen) or screen.is_ready:
            return True
        independent = [
            each for each in self.settings.keys.of("app") if each.does.startswith(_SCREEN_INDEPENDENT)
        ]
        return not isinstance(screen, OpeningScreen) and any(key in each.keys for each in independent)

    # Actions: ask for confirmation, send requests to the engine, show the answers.

    def carry_out(self, action: Action, then: Callable[[Answer], None] | None = None) -> None:
        """Ask the action's question, if it has one, then file its requests and show the engine's answers.

        Each answer is also passed to `then`.
        """
        from mlebench_console.console.screens.dialogs import ConfirmScreen

        question = action.question
        if self.refuses():
            return
        if question is None:
            self._file(action, then)
        else:
            free_part = action.free_part
            only = free_part.question.yes if free_part is not None and free_part.question is not None else ""
            screen = ConfirmScreen.of(question, self.size, only)
            does = None if free_part is None else partial(self._file, free_part, then)
            self.confirm(screen, partial(self._file, action, then), does)

    def _file(self, action: Action, then: Callable[[Answer], None] | None) -> None:
        from mlebench_console.engine import control

        def answered(answer: Answer | None) -> None:
            if answer is not None:
                self.say(answer.text)
                if then is not None:
                    then(answer)

        for request in action.requests:
            if request.can_be_undone:
                self.in_background(partial(self._file_undoable, request), answered)
            else:
                work = partial(control.ask, self.places, request)
                self.in_background(work, answered)

    def _file_undoable(self, request: Request) -> Answer | None:
        """File a request that can be undone for some seconds and return its answer; blocks, so call it in a thread."""
        from mlebench_console.engine import control

        number = control.file(self.places, request, in_seconds=_UNDO_SECONDS)
        self.reader.look_now()
        try:
            return control.answer_to(self.places, number, wait_seconds=_UNDO_SECONDS + _ANSWER_SECONDS)
        except control.WithdrawnRequest:
            return None  # undoing it has already shown a message

    def take_waiting(self, waiting: list[FiledRequest]) -> None:
        """Show the requests that can still be undone."""
        self.waiting = tuple(waiting)
        self.refresh_frames()

    def action_undo(self) -> None:
        """Withdraw the latest request, unless the engine has already carried it out."""
        from mlebench_console.engine import control

        if self.refuses():
            return
        if not self.waiting:
            self.say("there is nothing to undo: stops and relaunches can be undone for some seconds")
            return
        last = self.waiting[-1]

        def done(in_time: bool) -> None:
            self.say(f"undone: {last.text}" if in_time else f"too late to undo: {last.text}")
            self.reader.look_now()

        self.in_background(partial(control.withdraw, self.places, last.id), done)

    # The state, the engine and the news.

    def take_condition(self, condition: StateCondition) -> None:
        """Store and show whether the state can be read; leave the welcome screen once it exists."""
        self.condition = condition
        if condition.health is StateHealth.GOOD and self.current_mode == "welcome":
            self.switch_mode("overview")
        self._renew_needs()
        self.refresh_frames()

    def _take_needs(self, found: NeedFacts) -> None:
        self._need_facts = found
        self._renew_needs()
        self.refresh_frames()

    def take_engine(self, status: EngineStatus | None) -> None:
        """Store and show the engine's status; None if it could not be read."""
        self.engine, self._is_engine_known = status, True
        self.notify_of(self.news.of_engine(self.engine))
        self._renew_needs()
        self.refresh_frames()

    def _renew_needs(self) -> None:
        """Count what needs a person now; redraw the screen if the host's or the state's problems have changed."""
        from mlebench_console.engine.needs.need import host_needs

        if self._need_facts is not None:
            self.needed = len(self.needs_of(self._need_facts).needed)
        # An engine that was not looked at yet is not down.
        if not (self.is_host_known or self.unread):
            return
        found = host_needs(self.engine, self.now(), has_state=self.has_state, unread=self.unread)
        has_changed, self.host_needs = found != self.host_needs, found
        if has_changed and self.screen_stack and isinstance(self.screen, ConsoleScreen):
            self.screen.draw()

    def watch_news(self) -> None:
        """Start watching the state for new events, or stop if notifications in the terminal are switched off."""
        if self.settings.notifications.uses_terminal:
            self.reader.watch("news", self.news.of_state, partial(self.call_later, self.notify_of))
        else:
            self.reader.unwatch("news")

    def notify_of(self, found: list[News]) -> None:
        """Ring the bell and send desktop notifications for the kinds of news that the settings select."""
        settings = self.settings.notifications
        wanted = [each for each in found if each.kind in settings.on]
        if wanted and settings.bell:
            self.bell()
        if wanted and settings.desktop:
            self.to_terminal(desktop_sequence(news.in_short(wanted)))

    # Settings.

    def change_setting(self, table: str, name: str, value: Value) -> None:
        """Write a setting to config.toml, or remove it if the value is None, and apply it.

        Raises:
            UsageProblem: config.toml can't be written or is invalid; the settings in use are unchanged.
        """
        from mlebench_console.engine.settings import write_value

        config_file = self.places.config_file
        write_value(config_file, table, name, value, check=require_usable)
        # A theme given on the command line stays in use until the theme itself is changed.
        theme = None if (table, name) == ("console", "theme") else self.palette.name
        ascii_only = self.settings.ascii_only and (table, name) != ("console", "ascii")
        self.use_settings(read_settings(config_file, theme=theme, ascii_only=ascii_only))

    def use_theme(self, name: str) -> None:
        """Apply a theme to this console only; config.toml is not changed.

        Raises:
            UsageProblem: there is no such theme.
        """
        self.use_settings(replace(self.settings, palette=theme_named(name)))

    def use_settings(self, settings: Settings) -> None:
        """Apply settings."""
        self.settings = settings
        self.theme = settings.palette.name
        self.set_keymap(settings.keys.keymap())
        self.reader.look_every = settings.refresh_seconds
        self.watch_news()
        self.redraw_all()

    def action_next_theme(self) -> None:
        """Switch between the dark and the light theme."""
        if not self.palette.monochrome:
            self.use_theme((LIGHT if self.palette.dark else DARK).name)

    # Redrawing, and saving the session.

    def refresh_frames(self) -> None:
        """Redraw the first line, the notices and the footer of the visible screens: the top one, and those below boxes.

        Hidden screens are skipped: a change there would make Textual repaint the visible one completely.
        """
        for screen in self.screen_stack[::-1]:
            if isinstance(screen, ConsoleScreen):
                screen.refresh_frame()
            if not screen.is_modal:
                return

    def redraw_all(self) -> None:
        """Redraw all screens completely, also hidden ones, after a change of theme or settings."""
        for screen in self.screen_stack:
            for widget in screen.walk_children():
                widget.refresh()
            if isinstance(screen, ConsoleScreen):
                screen.refresh_frame()
                screen.draw()

    def _tick(self) -> None:
        if self.is_ending:
            return
        self.catch_up()
        self._ticks += 1
        if self._ticks % _SESSION_EVERY_TICKS == 0:
            self._keep_session()
        # By the time alone live runs become late or idle, and snoozed needs come back.
        self._renew_needs()
        self.refresh_frames()
        if isinstance(self.screen, ConsoleScreen):
            period = int(self.now() // self.screen.tick_seconds())
            if period != self._redrawn_in:
                self._redrawn_in = period
                self.screen.tick()

    def _keep_session(self) -> None:
        """Save the session if it has changed; a read-only console does not save it."""
        at = self.screen_stack[0]
        if self.readonly or not isinstance(at, ConsoleScreen) or not at.SESSION_NAME:
            return
        lowest = [stack[0] for stack in self._screen_stacks.values() if stack]
        found = {
            screen.SESSION_NAME: screen.session_entry()
            for screen in lowest
            if isinstance(screen, ConsoleScreen) and screen.SESSION_NAME and screen.is_composed()
        }
        session = Session(at.SESSION_NAME, self.sweep_id or "", {**self.session.screens, **found})
        if session != self.session:
            write_session(self.places.state_dir, session)
        self.session = session


def _read_needs(database: Database) -> NeedFacts:
    from mlebench_console.engine.needs.needs import read_needs

    return read_needs(database)
