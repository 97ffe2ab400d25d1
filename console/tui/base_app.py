"""What screens and widgets use of the app that they are in, which lies above them: `console.app`.

Data about the state and the engine, settings, the time, messages, work in the background and, implemented by the app
itself, actions and other screens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from mlebench_console.console import wording
from mlebench_console.console.actions.action import NotApplicable
from mlebench_console.console.roles import ASCII, UNICODE, Drawing, Signs
from mlebench_console.console.sanitize import plain_lines
from mlebench_console.console.tui.config import Settings
from mlebench_console.console.tui.reader import STALLED_SECONDS, Reader, StateCondition, StateHealth
from mlebench_console.console.tui.session import Session
from mlebench_console.console.tui.terminal import TerminalApp
from mlebench_console.console.tui.theme import Palette
from mlebench_console.engine.places import Places
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.threads import in_daemon_thread

if TYPE_CHECKING:
    from textual.notifications import Notification, Notify
    from textual.screen import Screen
    from textual.worker import WorkType

    from mlebench_console.console.actions.action import Action
    from mlebench_console.engine.control import Answer, EngineStatus
    from mlebench_console.engine.needs.need import Need
    from mlebench_console.engine.needs.needs import NeedFacts, Needs
    from mlebench_console.engine.settings import Value
    from mlebench_console.state.database import Database
    from mlebench_console.state.records import FiledRequest, Run

log = logging.getLogger(__name__)

# The engine normally carries out a request this soon after its undo period has ended.
_OVERDUE_SECONDS = 3.0

P = ParamSpec("P")
Result = TypeVar("Result")


class BaseApp(TerminalApp):
    """The app as screens and widgets see it.

    Attributes:
        condition: whether the state can be read, as of the reader's last check.
        engine: the engine's last status; None before the first.
        sweep_id: the sweep that was shown last.
        known_sweeps: the sweep names that the `:` line completes.
        known_runs: the runs that the `:` line completes: those of the sweep that was shown last.
        session: the session as it was saved last.
        waiting: the requests of all consoles that can still be undone.
        host_needs: the problems of the engine, its machine, and of reading the state, the worst first.
        needed: how many things need a person now; None until the state has been read.
        reader: reads the state in a thread of its own.
    """

    reader: Reader

    def __init__(
        self, places: Places, settings: Settings, *, readonly: bool, demo: bool, clock: Clock
    ) -> None:
        super().__init__()
        self.places = places
        self.settings = settings
        self.readonly = readonly
        self.demo = demo
        self.clock = clock
        self.condition = StateCondition()
        self.engine: EngineStatus | None = None
        self._is_engine_known = False
        self.sweep_id: str | None = None
        self.known_sweeps: tuple[str, ...] = ()
        self.known_runs: tuple[Run, ...] = ()
        self.session = Session()
        self.waiting: tuple[FiledRequest, ...] = ()
        self.needed: int | None = None
        self.host_needs: tuple[Need, ...] = ()
        # The messages on the screen by their text, and how often each was sent.
        self._repeated: dict[str, tuple[Notification, int]] = {}

    @property
    def palette(self) -> Palette:
        """The theme's styles."""
        return self.settings.palette

    @property
    def signs(self) -> Signs:
        """The signs: Unicode, or ASCII for terminals that show nothing else."""
        return ASCII if self.settings.ascii_only else UNICODE

    @property
    def drawing(self) -> Drawing:
        """What all drawings depend on: the moment, the signs, and the names of the keys."""
        return Drawing(self.now(), self.signs, self.settings.key_of)

    def now(self) -> float:
        """Return the time."""
        return self.clock.now()

    def say(self, text: str, *, bad: bool = False) -> None:
        """Show a message for some seconds."""
        harmless = "\n".join(plain_lines(text))
        self.notify(harmless, severity="error" if bad else "information", markup=False, timeout=8)

    def on_notify(self, event: Notify) -> None:
        """Merge a message with the same one on the screen and count it; Textual shows the result."""
        sent = event.notification
        before, times = self._repeated.get(sent.message, (sent, 0))
        times = times + 1 if before in self._notifications and not before.has_expired else 1
        self._repeated = {
            text: (one, count) for text, (one, count) in self._repeated.items() if not one.has_expired
        }
        self._repeated[sent.message] = (sent, times)
        if times > 1:
            self._unnotify(before)
            sent.message += f" ({self.signs.times}{times})"

    def copy_path(self, path: Path) -> None:
        """Copy a path to the terminal's clipboard."""
        self.copy_to_clipboard("\n".join(plain_lines(str(path))))
        self.say(f"copied {path}")

    @property
    def is_host_known(self) -> bool:
        """Whether both the state and the engine have been looked at."""
        return self._is_engine_known and self.condition.health is not StateHealth.UNKNOWN

    @property
    def is_overdue(self) -> bool:
        """Whether the last undoable request should have been carried out by now, so that no engine is running."""
        return self.now() - (self.waiting[-1].not_before or 0.0) > _OVERDUE_SECONDS

    def refuses(self) -> bool:
        """Return whether the console is read-only, and show a message if so."""
        if self.readonly:
            self.say("this console is read-only")
        return self.readonly

    def read_state(self, query: Callable[[Database], Result], then: Callable[[Result], object]) -> None:
        """Run a query once in the background and pass the answer to `then`; problems are shown as messages."""
        from mlebench_console.state.database import open_for_reading

        def read() -> Result:
            with closing(open_for_reading(self.places.state_dir)) as database:
                return query(database)

        self.in_background(read, then)

    def in_background(
        self, work: Callable[[], Result], then: Callable[[Result], object] | None = None
    ) -> None:
        """Run slow work in a thread and pass its result to `then`; problems are shown as messages.

        Screens use their own `in_background`, which is cancelled with the screen and can drop outdated results.
        """
        # A partial rather than a coroutine, which would never be awaited if the console ended before its start.
        finish: WorkType[None] = partial(self.finish, work, then)
        self.run_worker(finish)

    async def finish(
        self,
        work: Callable[[], Result],
        then: Callable[[Result], object] | None = None,
        failed: Callable[[Problem], object] | None = None,
    ) -> None:
        """Run work in a thread, wait for it and pass its result to `then`.

        Its problem is passed to `failed`, without that shown as a message.
        """
        try:
            result = await asyncio.wrap_future(in_daemon_thread(work))
        except Problem as problem:
            if failed is None:
                self._say_if_seen(str(problem), bad=not isinstance(problem, NotApplicable))
            elif not self.is_ending:
                failed(problem)
        except Exception as error:
            # A failure on one screen must not end the console; the traceback goes to the log.
            log.exception("working for a screen")
            self._say_if_seen(f"failed: {error!r}\nsee console.log in the state directory", bad=True)
        else:
            if then is not None and not self.is_ending:
                then(result)

    def _say_if_seen(self, text: str, *, bad: bool) -> None:
        # Background work may outlive the console.
        if not self.is_ending:
            self.say(text, bad=bad)

    def act(self, plan: Callable[P, Action], *args: P.args, **kwargs: P.kwargs) -> None:
        """Carry out the action that `plan` returns, or show why it does not apply."""
        try:
            action = plan(*args, **kwargs)
        except NotApplicable as problem:
            self.say(str(problem))
        else:
            self.carry_out(action)

    def confirm(
        self, question: Screen[str], then: Callable[[], None], free_part: Callable[[], None] | None = None
    ) -> None:
        """Ask a question and call `then` if the answer is yes, or `free_part` if it is that one."""

        def answered(answer: str | None) -> None:
            if answer == "yes":
                then()
            elif answer == "free" and free_part is not None:
                free_part()

        # In the app's own context: Textual delivers the answer to the widget that asked, and the command line is
        # already removed by then.
        with self._context():
            self.push_screen(question, answered)

    def start_engine(self) -> None:
        """Start the engine and show that it runs."""
        from mlebench_console.engine import control

        def started(status: EngineStatus) -> None:
            self.say(f"the engine is running, process {status.pid}")
            self.reader.look_now()

        if not self.refuses():
            self.in_background(partial(control.ensure_running, self.places), started)

    @property
    def unread(self) -> str:
        """Why the data shown may be outdated: the state does not answer or can't be read; empty if it is current."""
        stalled, problem = self.reader.stalled_for(), self.condition.problem
        if stalled > STALLED_SECONDS:
            since = wording.clock(self.now() - stalled)
            return f"the state has not answered since {since}: what is shown may be outdated"
        if self.condition.health is StateHealth.BAD and problem is not None:
            return problem.in_one_line()
        return ""

    @property
    def has_state(self) -> bool:
        """Whether there is a state, as far as both it and the engine have been looked at."""
        return self.is_host_known and self.condition.health in (StateHealth.GOOD, StateHealth.BAD)

    def needs_of(self, found: NeedFacts) -> Needs:
        """Return what needs a person now, of the state and of the engine's host."""
        from mlebench_console.engine.needs.needs import needs

        return needs(found, self.engine, self.now(), has_state=self.has_state, unread=self.unread)

    # Implemented by the app, which knows dialogs and screens.

    def carry_out(self, action: Action, then: Callable[[Answer], None] | None = None) -> None:
        """Ask the action's question, if it has one, then file its requests and show the engine's answers."""
        raise NotImplementedError

    def change_setting(self, table: str, name: str, value: Value) -> None:
        """Write a setting to config.toml, or remove it if the value is None, and apply it."""
        raise NotImplementedError

    def open_demo(self) -> None:
        """Close this console, and open one on the demo."""
        raise NotImplementedError

    def show(self, mode: str) -> None:
        """Show one of the numbered screens, and close all screens above it."""
        raise NotImplementedError

    def show_sweep(self, sweep_id: str | None, run_id: int | None = None) -> None:
        """Show a sweep (without an id, the one shown last) with the cursor on a run."""
        raise NotImplementedError

    def filter_runs(self, words: str, sweep_id: str | None = None, run_id: int | None = None) -> None:
        """Show a sweep (without an id, the one shown last) filtered by these words, with the cursor on a run."""
        raise NotImplementedError

    def show_run(self, run_id: int, *, pane: str = "log") -> None:
        """Open a run over the current screen."""
        raise NotImplementedError
