"""The console as a Textual app: what all screens share, and how they reach one another, the state and the engine.

It does no work itself: the state is read by the thread of `reader`, changes are made by the engine, and what may wait
is done in the background. What an app does about its terminal is in `terminal`.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from textual import events

from console import wording
from console.actions.action import UNDO_SECONDS, NotApplicable, undone_as
from console.sanitize import plain_lines
from console.tui.config import Settings, read_settings, require_usable
from console.tui.keys import SCREENS, bindings
from console.tui.news import NewsWatch, desktop_sequence
from console.tui.reader import Reader, StateCondition, StateHealth
from console.tui.screen import STALLED_SECONDS, ConsoleScreen, OpeningScreen, is_too_small
from console.tui.session import Session, read_session, write_session
from console.tui.terminal import TerminalApp
from console.tui.theme import (
    ASCII,
    DARK,
    LIGHT,
    PALETTE_NAMES,
    PALETTES,
    THEME_NAMES,
    UNICODE,
    Palette,
    Signs,
)
from console.tui.threads import in_daemon_thread
from engine.notifications import news
from engine.notifications.news import News
from engine.places import Places
from foundation.clock import Clock, SystemClock
from foundation.problems import Problem, UsageProblem

# What the first frame does not show is imported where it is used: half of the time in which a console opens
# is spent on imports.
if TYPE_CHECKING:
    from textual.command import Provider
    from textual.notifications import Notification, Notify
    from textual.screen import Screen

    from console.actions.action import Action, Request
    from console.screens.dialogs import ConfirmScreen
    from console.views.concerns import Concern
    from engine.control import Answer, EngineStatus
    from engine.settings import Value
    from state.database import Database
    from state.records import Request as WaitingRequest
    from state.records import Run

log = logging.getLogger(__name__)

P = ParamSpec("P")
Result = TypeVar("Result")

OPEN_DEMO = "demo"
_TICK_SECONDS = 0.5
_ANSWER_SECONDS = 30.0
_MOST_WARNINGS = 3
# A console that is killed is found again as it was some seconds before.
_SESSION_EVERY_TICKS = 10
# What the keys do that are about nothing that a screen shows.
_LEADING = ("app.go(", "app.leave")
_MODE_NAMES = tuple(name for name, *_ in SCREENS)
# Opened next most likely; imported ahead, so that the first key that opens one is answered as fast as the second.
_IMPORTED_AHEAD = ("run", "sweep", "dialogs")


def _palette_commands() -> type[Provider]:
    from console.tui.commands import ConsoleCommands

    return ConsoleCommands


def _make_screen(name: str) -> Any:
    return getattr(importlib.import_module(f"console.screens.{name}"), f"{name.capitalize()}Screen")()


class ConsoleApp(TerminalApp):
    """The operator's console over one state directory.

    Attributes:
        condition: how the state is, as the reader found it last.
        engine: the engine's last status; None before the first.
        sweep_id: the sweep that was seen last.
        known_sweeps: what the `:` line completes to.
        known_runs: likewise; those of the sweep that was seen last.
        session: where the operator was when it was kept last.
        news: what finds the news since it looked last.
        waiting: the requests that can still be taken back, of all consoles.
        host_concerns: what is wrong with the engine, its machine, and with reading the state.
    """

    CSS_PATH = "console.tcss"
    TITLE = "mlebench-console"
    BINDINGS = bindings("app")
    COMMANDS: ClassVar[set[Any]] = {_palette_commands}
    MODES: ClassVar[dict[str, Any]] = {
        name: partial(_make_screen, name) for name in ("welcome", *_MODE_NAMES)
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
        self.condition = StateCondition()
        self.engine: EngineStatus | None = None
        self.sweep_id: str | None = None
        self.known_sweeps: tuple[str, ...] = ()
        self.known_runs: tuple[Run, ...] = ()
        self.session = Session()
        self.news = NewsWatch(self.clock)
        self.waiting: tuple[WaitingRequest, ...] = ()
        self.host_concerns: tuple[Concern, ...] = ()
        self._told: dict[
            str, tuple[Notification, int]
        ] = {}  # the messages that are seen, and how often each came
        self._first_screen = screen or ""
        self._ticks = 0
        self._redrawn_in = -1
        self.animation_level = "none"
        # Before anything is styled: the stylesheet uses names that only these themes have.
        for palette in PALETTES.values():
            self.register_theme(palette.textual_theme())
        self.theme = self.palette.name
        # The reader's thread calls them.
        self.reader = Reader(
            places,
            on_condition=partial(self.call_later, self.take_condition),
            on_engine=partial(self.call_later, self.take_engine),
        )

    # What screens ask for.

    @property
    def palette(self) -> Palette:
        """The theme's styles."""
        return self.settings.palette

    @property
    def signs(self) -> Signs:
        """The signs, of which the terminal may only know ASCII."""
        return ASCII if self.settings.ascii_only else UNICODE

    def now(self) -> float:
        """Return the time."""
        return self.clock.now()

    def say(self, text: str, *, bad: bool = False) -> None:
        """Show a message for some seconds."""
        harmless = "\n".join(plain_lines(text))
        self.notify(harmless, severity="error" if bad else "information", markup=False, timeout=8)

    def on_notify(self, event: Notify) -> None:
        """Show a message that is seen already once, with how often it came; Textual shows what this leaves."""
        told = event.notification
        before, times = self._told.get(told.message, (told, 0))
        times = times + 1 if before in self._notifications and not before.has_expired else 1
        self._told = {text: (one, count) for text, (one, count) in self._told.items() if not one.has_expired}
        self._told[told.message] = (told, times)
        if times > 1:
            self._unnotify(before)
            told.message += f" ({self.signs.times}{times})"

    def copy_path(self, path: Path) -> None:
        """Copy a path to the terminal's clipboard."""
        self.copy_to_clipboard("\n".join(plain_lines(str(path))))
        self.say(f"copied {path}")

    # Start and end.

    def get_default_screen(self) -> Screen[Any]:
        """Return what is seen until the first screen is there."""
        return OpeningScreen()

    def on_mount(self) -> None:
        """Show the first frame, and begin when it is seen."""
        self.hold_terminal()
        self.set_keymap(self.settings.keys.keymap())
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        from state import database, requests

        self.session = read_session(self.places.state_dir)
        self._show_first(state_exists=database.exists(self.places.state_dir))
        self.reader.look_every = self.settings.refresh_seconds
        for text in self.settings.unknown[:_MOST_WARNINGS]:
            self.say(f"warning: {text}")
        self.watch_news()
        self.reader.watch("waiting", requests.waiting, partial(self.call_later, self.take_waiting))
        self.reader.start()
        self.set_interval(_TICK_SECONDS, self._tick)
        self.set_timer(_TICK_SECONDS, partial(self.in_background, _import_ahead))

    def on_unmount(self) -> None:
        """End the reader with the app."""
        self.reader.stop()

    def action_leave(self) -> None:
        """Close the console."""
        self._keep_session()
        self.leave()

    def action_help_quit(self) -> None:
        """Say how to leave: Ctrl-C closes nothing, so that it is not closed by habit."""
        self.say(
            f"{self.settings.keys.named('app.quit').keys[0]} closes the console; the engine keeps running"
        )

    def open_demo(self) -> None:
        """Leave this state for the demo's."""
        if not self.refuses():
            self.exit(OPEN_DEMO)

    # Navigation.

    def _show_first(self, *, state_exists: bool) -> None:
        """Show the screen asked for, or where the operator was, or the overview; the welcome without a state."""
        wanted = self._first_screen
        if not wanted and state_exists and self.session.screen in _MODE_NAMES:
            wanted = self.session.place
        mode, _, rest = wanted.partition(":")
        if not mode:
            self.switch_mode("overview" if state_exists else "welcome")
        elif mode == "run" and rest.isdigit():
            self.switch_mode("overview")
            self.call_after_refresh(self.show_run, int(rest))
        elif mode in _MODE_NAMES:
            self.sweep_id = rest or None if mode == "sweep" else None
            self.switch_mode(mode)

    def show(self, mode: str) -> None:
        """Show one of the numbered screens, and nothing over it."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        if mode != self.current_mode:
            self.switch_mode(mode)

    def show_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Show a sweep, or else the one that was seen last, the cursor on a run of it."""
        from console.screens.sweep import SweepScreen

        self.sweep_id = sweep_id or self.sweep_id
        self.show("sweep")
        screen = self.screen_stack[0]
        if isinstance(screen, SweepScreen):
            screen.show_sweep(self.sweep_id, run_id)

    def show_run(self, run_id: int, *, pane: str = "log") -> None:
        """Open a run over the screen that is seen."""
        from console.screens.run import RunScreen

        if isinstance(self.screen, RunScreen):
            self.pop_screen()
        self.push_screen(RunScreen(run_id, pane=pane))

    def show_timeline(self, sweep_id: str | None) -> None:
        """Open the timeline of a sweep, or of all sweeps, over the screen that is seen."""
        from console.screens.timeline import TimelineScreen

        self.push_screen(TimelineScreen(sweep_id))

    def show_integrity(self, title: str, run_ids: Collection[int] | None = None) -> None:
        """Open what detectors have found in some runs, or in all, over the screen that is seen."""
        from console.screens.integrity import IntegrityScreen

        self.push_screen(IntegrityScreen(title, run_ids))

    def show_grade(self, competition_id: str, path: str) -> None:
        """Show the grading screen with its fields filled in."""
        from console.screens.grade import GradeScreen

        self.show("grade")
        screen = self.screen_stack[0]
        if isinstance(screen, GradeScreen):
            self.call_after_refresh(screen.fill_in, competition_id, path)

    def action_go(self, mode: str) -> None:
        """Show one of the numbered screens."""
        self.show(mode)

    def action_command_line(self, text: str = "") -> None:
        """Open the command line, with the beginning of a command."""
        from console.tui.commands import CommandLine

        if not self.screen.is_modal and not self.screen.query(CommandLine):
            # What was said before would cover what can be said.
            self.clear_notifications()
            self.screen.mount(CommandLine(text))

    def action_note(self, command: str) -> None:
        """Open the command line to write a note, beginning with the one that is there."""
        screen = self.screen
        if not isinstance(screen, ConsoleScreen) or self.refuses():
            return
        sweep = screen.chosen_sweep()
        of_sweep = (sweep.note,) if sweep is not None else ()
        of_runs = {run.note for run in screen.chosen_runs()} if command == "note" else ()
        notes = list(of_runs or of_sweep)
        self.action_command_line(f"{command} {notes[0] if len(notes) == 1 else ''}")

    def filter_runs(self, words: str, sweep_id: str | None = None, run_id: int | None = None) -> None:
        """Show what these words let through of a sweep, or of the one that was seen last, the cursor on a run."""
        from console.screens.sweep import SweepScreen

        self.show("sweep")
        screen = self.screen_stack[0]
        if isinstance(screen, SweepScreen):

            def filter_them(screen: SweepScreen = screen) -> None:
                screen.filter_by(words)
                if sweep_id is not None:
                    screen.show_sweep(sweep_id, run_id)

            self.call_after_refresh(filter_them)

    def runs_filter(self) -> str:
        """Return the words that the sweep's runs are filtered by."""
        from console.screens.sweep import SweepScreen

        screen = self.screen
        return screen.words if isinstance(screen, SweepScreen) else ""

    def show_launch(self, *, sweep_id: str = "", file: Path | None = None) -> None:
        """Show the launch form, filled in as a sweep was launched or as a file says."""
        from console.screens.launch import LaunchScreen

        self.show("launch")
        screen = self.screen_stack[0]
        if isinstance(screen, LaunchScreen):
            self.call_after_refresh(screen.fill_in, sweep_id=sweep_id, file=file)

    def show_export(self, name: str, sweep_id: str) -> None:
        """Open the export of a row of our own, or else of the one that a sweep belongs to."""
        from console.screens.export import ExportScreen
        from console.views.scoreboard import subject_named

        self.read_state(
            lambda database: subject_named(database, name, sweep_id),
            lambda subject: self.push_screen(ExportScreen(subject)),
        )

    def read_state(self, query: Callable[[Database], Result], then: Callable[[Result], object]) -> None:
        """Read the state once in the background, then do something with the answer; a problem is shown."""
        from state.database import open_for_reading

        def read() -> Result:
            with closing(open_for_reading(self.places.state_dir)) as database:
                return query(database)

        self.in_background(read, then)

    def action_help(self) -> None:
        """Show the keys of this screen."""
        from console.screens.dialogs import HelpScreen

        if isinstance(self.screen, ConsoleScreen):
            self.push_screen(HelpScreen(self.screen.contexts()))

    async def on_event(self, event: events.Event) -> None:
        """Take an event; a terminal that is too small to show what a key would do takes only the one that leaves."""
        if isinstance(event, events.Key) and not event.is_forwarded and is_too_small(self.size):
            if event.key in self.settings.keys.named("app.quit").keys:
                self.action_leave()
        else:
            await super().on_event(event)

    def opens_field(self, key: str) -> bool:
        """Whether a key opens a line to type into, for which the keys behind it are held."""
        if isinstance(self.screen, ConsoleScreen):
            known = self.settings.keys.of(*self.screen.contexts(), "app")
        else:
            known = self.settings.keys.of(*getattr(self.screen, "CONTEXTS", ()))
        return any(
            key in each.keys and each.opens_field and not (self.readonly and each.changes) for each in known
        )

    def takes_key(self, key: str) -> bool:
        """Whether the screen has what it shows, which all keys wait for but those that lead away from it."""
        screen = self.screen
        if not isinstance(screen, ConsoleScreen) or screen.is_ready:
            return True
        leading = [each for each in self.settings.keys.of("app") if each.does.startswith(_LEADING)]
        return not isinstance(screen, OpeningScreen) and any(key in each.keys for each in leading)

    # Actions: a question, then requests to the engine, whose answers are shown.

    def act(self, plan: Callable[P, Action], *args: P.args, **kwargs: P.kwargs) -> None:
        """Carry out the action that a plan makes of its arguments, or say why it applies to none of them."""
        try:
            action = plan(*args, **kwargs)
        except NotApplicable as problem:
            self.say(str(problem))
        else:
            self.carry_out(action)

    def carry_out(self, action: Action, then: Callable[[Answer], None] | None = None) -> None:
        """Ask the action's question, if it has one, then file its requests; the engine's answers are shown.

        `then` gets each answer too.
        """
        from console.screens.dialogs import ConfirmScreen, question_lines

        question = action.question
        if self.refuses():
            return
        if question is None:
            self._file(action, then)
        else:
            lines = question_lines(question, self.size)
            self.confirm(
                ConfirmScreen(question.title, lines, question.yes), partial(self._file, action, then)
            )

    def _file(self, action: Action, then: Callable[[Answer], None] | None) -> None:
        from engine import control

        def answered(answer: Answer | None) -> None:
            if answer is not None:
                self.say(answer.text)
                if then is not None:
                    then(answer)

        for request in action.requests:
            if undone_as(request.kind, request.arguments):
                self.in_background(partial(self._file_undoable, request), answered)
            else:
                work = partial(control.ask, self.places, request.kind, request.arguments)
                self.in_background(work, answered)

    def _file_undoable(self, request: Request) -> Answer | None:
        """File a request that can be taken back for some seconds, and wait for its answer; waits in a thread."""
        from engine import control

        number = control.file(self.places, request.kind, request.arguments, in_seconds=UNDO_SECONDS)
        self.reader.look_now()
        try:
            return control.answer_to(self.places, number, wait_seconds=UNDO_SECONDS + _ANSWER_SECONDS)
        except control.WithdrawnRequest:
            return None  # whoever has taken it back was told

    def take_waiting(self, waiting: list[WaitingRequest]) -> None:
        """Show what can still be taken back."""
        self.waiting = tuple(waiting)
        self.refresh_frames()

    def action_undo(self) -> None:
        """Take back what was asked for last, if that is not done yet."""
        from engine import control

        if self.refuses():
            return
        if not self.waiting:
            self.say("there is nothing to undo: stops and relaunches can be undone for some seconds")
            return
        last = self.waiting[-1]
        doing = undone_as(last.kind, last.arguments)

        def done(in_time: bool) -> None:
            self.say(f"undone: {doing}" if in_time else f"too late to undo: {doing}")
            self.reader.look_now()

        self.in_background(partial(control.withdraw, self.places, last.id), done)

    def confirm(self, question: ConfirmScreen, then: Callable[[], None]) -> None:
        """Ask before doing something; nothing happens unless the answer is yes."""
        # In the app's own context: Textual tells the answer to whoever asked, and the command line is gone by then.
        with self._context():
            self.push_screen(question, lambda answer: then() if answer else None)

    def refuses(self) -> bool:
        """Whether nothing may be changed from here; then it is said."""
        if self.readonly:
            self.say("this console is read-only")
        return self.readonly

    def start_engine(self) -> None:
        """Start the engine, and say so."""
        from engine import control

        def started(status: EngineStatus) -> None:
            self.say(f"the engine is running, process {status.pid}")
            self.reader.look_now()

        if not self.refuses():
            self.in_background(partial(control.ensure_running, self.places), started)

    # Work in the background.

    def in_background(
        self, work: Callable[[], Result], then: Callable[[Result], object] | None = None
    ) -> None:
        """Do something that may wait, then something with its result; a problem is shown.

        A screen does so by its own `in_background`, which ends with the screen and drops what is out of date.
        """
        self.run_worker(self.finish(work, then))

    async def finish(
        self, work: Callable[[], Result], then: Callable[[Result], object] | None = None
    ) -> None:
        """Wait for some work in a thread, then do something with its result; a problem is shown."""
        try:
            result = await in_daemon_thread(work)
        except Problem as problem:
            self._say_if_seen(str(problem), bad=not isinstance(problem, NotApplicable))
        except Exception as error:
            # What fails for one screen must not end the console; the log keeps the traceback.
            log.exception("working for a screen")
            self._say_if_seen(f"failed: {error!r}\nsee console.log in the state directory", bad=True)
        else:
            if then is not None and not self.is_ending:
                then(result)

    def _say_if_seen(self, text: str, *, bad: bool) -> None:
        # Work may end after the console.
        if not self.is_ending:
            self.say(text, bad=bad)

    # The state, the engine and the news.

    def take_condition(self, condition: StateCondition) -> None:
        """Show how the state is, and leave the welcome once there is one."""
        self.condition = condition
        if condition.health is StateHealth.GOOD and self.current_mode == "welcome":
            self.switch_mode("overview")
        self.refresh_frames()
        self._note_host()

    def take_engine(self, status: EngineStatus | None) -> None:
        """Show how the engine is; None if that could not be read."""
        self.engine = status
        self.refresh_frames()
        self.notify_of(self.news.of_engine(self.engine))
        self._note_host()

    @property
    def unread(self) -> str:
        """Why what is seen may be outdated: since when the state has not answered, or why it can't be read."""
        stalled, problem = self.reader.stalled_for(), self.condition.problem
        if stalled > STALLED_SECONDS:
            return f"the state has not answered since {wording.clock(self.now() - stalled)}"
        if self.condition.health is StateHealth.BAD and problem is not None:
            return problem.in_one_line()
        return ""

    def _note_host(self) -> None:
        """Draw again where something about the engine, its machine or the state has begun or ended."""
        from console.views.concerns import host_concerns

        has_state = self.condition.health in (StateHealth.GOOD, StateHealth.BAD)
        found = host_concerns(self.engine, self.now(), has_state=has_state, unread=self.unread)
        if found != self.host_concerns:
            self.host_concerns = found
            if self.screen_stack and isinstance(self.screen, ConsoleScreen):
                self.screen.draw()

    def watch_news(self) -> None:
        """Watch the state for news from now on, unless the operator wants none in this terminal."""
        if self.settings.notifications.uses_terminal:
            self.reader.watch("news", self.news.of_state, partial(self.call_later, self.notify_of))
        else:
            self.reader.unwatch("news")

    def notify_of(self, found: list[News]) -> None:
        """Ring, and ask the terminal for a desktop notification, of the news that the operator wants."""
        settings = self.settings.notifications
        wanted = [each for each in found if each.kind in settings.on]
        if wanted and settings.bell:
            self.bell()
        if wanted and settings.desktop:
            self.to_terminal(desktop_sequence(news.in_short(wanted)))

    # Settings.

    def change_setting(self, table: str, name: str, value: Value) -> None:
        """Write a setting into config.toml, or take it out if the value is None, and let it count.

        Raises:
            UsageProblem: config.toml can't be changed, or can't be used as it is; then nothing has changed here.
        """
        from engine.settings import write_value

        config_file = self.places.config_file
        write_value(config_file, table, name, value, check=require_usable)
        # What the command line said goes on counting until it is changed itself.
        theme = None if (table, name) == ("console", "theme") else self.palette.name
        ascii_only = self.settings.ascii_only and (table, name) != ("console", "ascii")
        self.use_settings(read_settings(config_file, theme=theme, ascii_only=ascii_only))

    def use_theme(self, name: str) -> None:
        """Use a theme in this console, and leave config.toml as it is.

        Raises:
            UsageProblem: there is no such theme.
        """
        if name not in PALETTE_NAMES:
            raise UsageProblem(f"there is no theme '{name}'", "", f"Themes: {', '.join(THEME_NAMES)}.")
        self.use_settings(replace(self.settings, palette=PALETTE_NAMES[name]))

    def use_settings(self, settings: Settings) -> None:
        """Let settings count from now on."""
        self.settings = settings
        self.theme = settings.palette.name
        self.set_keymap(settings.keys.keymap())
        self.reader.look_every = settings.refresh_seconds
        self.watch_news()
        for screen in self.screen_stack:
            for widget in screen.walk_children():
                widget.refresh()
        self.redraw_all()

    def action_next_theme(self) -> None:
        """Change between dark and light."""
        if not self.palette.monochrome:
            self.use_theme((LIGHT if self.palette.dark else DARK).name)

    # Redrawing, and keeping where the operator is.

    def refresh_frames(self) -> None:
        """Draw the first line, the notices and the footer of what is seen: the front screen, or what is under a box.

        Of a screen behind another one nothing is drawn: a change there has the one in front painted as a whole.
        """
        for screen in self.screen_stack[::-1]:
            if isinstance(screen, ConsoleScreen) and screen.is_mounted:
                screen.refresh_frame()
            if not screen.is_modal:
                return

    def redraw_all(self) -> None:
        """Draw everything of all screens, also of those behind others, because it is to look otherwise."""
        for screen in self.screen_stack:
            if isinstance(screen, ConsoleScreen):
                if screen.is_mounted:
                    screen.refresh_frame()
                screen.draw()

    def _tick(self) -> None:
        if self.is_ending:
            return
        self.catch_up()
        self._ticks += 1
        if self._ticks % _SESSION_EVERY_TICKS == 0:
            self._keep_session()
        self.refresh_frames()
        self._note_host()
        if isinstance(self.screen, ConsoleScreen):
            period = int(self.now() // self.screen.tick_seconds())
            if period != self._redrawn_in:
                self._redrawn_in = period
                self.screen.tick()

    def _keep_session(self) -> None:
        """Keep where the operator is, if that has changed since it was kept; a console that only reads does not."""
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


def _import_ahead() -> None:
    for module in _IMPORTED_AHEAD:
        importlib.import_module(f"console.screens.{module}")
