"""The base class of all screens: queries of the state, keys, and the frame around the screen's body.

The lines of the frame are in `widgets.frame`, base classes of screens with one list in `list_screen`.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.console import wording
from mlebench_console.console.roles import Pieces
from mlebench_console.console.tui.keys import Context, Key, bindings
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.session import SessionValues
from mlebench_console.console.tui.widgets.frame import Footer, Notices, TopLine
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.painted import Painted

if TYPE_CHECKING:
    from textual.worker import WorkType

    from mlebench_console.console.tui.base_app import BaseApp
    from mlebench_console.foundation.problems import Problem
    from mlebench_console.state.database import Database
    from mlebench_console.state.records import Run, Sweep

Result = TypeVar("Result")
# A function that queries the state, and the one that takes its answer; a screen's queries have names.
Query = tuple[Callable[["Database"], Any], Callable[[Any], None]]
Queries = dict[str, Query]

NOT_READ = "this has not been read yet"
"""What a key says that needs what the state has not answered yet: nothing is known to be absent."""

_SMALLEST = (40, 10)
# Keys wait at most this long for the first answers.
_READY_SECONDS = 2.0


@dataclass
class QueryAnswered(Message):
    """The state has answered a query of this screen, or could not."""

    name: str
    deliver: Callable[[Any], None]
    value: Any = None
    problem: Problem | None = None

    def can_replace(self, message: Message) -> bool:
        """Return whether this is a newer answer to the same query."""
        return isinstance(message, QueryAnswered) and message.name == self.name


class ConsoleScreen(Screen[None]):
    """A screen of the console.

    Attributes:
        CONTEXTS: the contexts whose keys work here: first its own, then those of its widgets.
        OWN_CONTEXTS: how many of them are its own.
        MODE: the name of the numbered screen that it is or belongs to, if any.
        SESSION_NAME: the name of its entry in the session; empty for screens opened over others, whose own keys are
            not those of their mode: they are not saved.
    """

    CONTEXTS: ClassVar[tuple[Context, ...]] = ()
    OWN_CONTEXTS: ClassVar[int] = 1
    MODE: ClassVar[str] = ""
    SESSION_NAME: ClassVar[str] = ""
    AUTO_FOCUS = "LineList"
    app: BaseApp

    def __init__(self) -> None:
        super().__init__()
        # The problems of failed queries by their names.
        self._problems: dict[str, Problem] = {}
        # The names of queries without an answer yet; None before the first query.
        self._unanswered: set[str] | None = None
        self._asked_at = 0.0

    def __init_subclass__(cls) -> None:
        """Bind the screen's own keys, and set the name of its session entry."""
        if "CONTEXTS" in cls.__dict__:
            own = cls.CONTEXTS[0]
            cls.BINDINGS = bindings(*cls.CONTEXTS[: cls.OWN_CONTEXTS])
            cls.SESSION_NAME = own if own == cls.MODE else ""
        super().__init_subclass__()

    def compose(self) -> ComposeResult:
        """Yield the widgets of the frame and the body."""
        yield TopLine(id="top")
        yield Notices(id="notice")
        yield Painted(id="tiny")
        yield from self.body()
        yield Footer(id="footer")

    def body(self) -> Iterable[Widget]:
        """Return the widgets between the notices and the footer."""
        raise NotImplementedError

    def queries(self) -> Queries:
        """Return the screen's queries by name; after each answer the screen is redrawn."""
        return {}

    def chosen_runs(self) -> Sequence[Run]:
        """Return the runs that actions apply to now."""
        return ()

    def chosen_sweep(self) -> Sweep | None:
        """Return the sweep that actions apply to now, if any."""
        return None

    def time_limits(self) -> dict[str, float]:
        """Return the time limits of the sweeps whose runs may be chosen, as far as they are known."""
        sweep = self.chosen_sweep()
        return {} if sweep is None else {sweep.id: sweep.conditions.time_limit_seconds}

    def all_marks_hidden(self) -> bool:
        """Return whether a filter hides all marked items, so that actions apply to nothing."""
        return False

    def contexts(self) -> tuple[Context, ...]:
        """Return the contexts whose keys work now."""
        return self.CONTEXTS

    def toggled_on(self) -> Collection[str]:
        """Return the ids of the keys whose views are shown, so that the keys would now hide them."""
        return ()

    def can_do(self, key: Key) -> bool:  # noqa: ARG002 for screens whose keys depend on what is shown
        """Return whether a key would do anything now."""
        return True

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing."""
        if not self.can_do(key):
            return ""
        return key.label_on if key.id in self.toggled_on() else key.label

    @property
    def is_typing(self) -> bool:
        """Whether a field has the focus, so that characters are typed and trigger nothing."""
        return isinstance(self.focused, Input)

    def session_values(self) -> SessionValues:
        """Return the values to save in the session, besides the cursor's position."""
        return {}

    def restore(self, values: SessionValues) -> None:
        """Apply saved values as far as they are still valid."""

    def session_entry(self) -> SessionValues:
        """Return the screen's session entry: its own values and the cursor's position."""
        from mlebench_console.console.tui.widgets.line_list import LineList

        lines = next(iter(self.query(LineList)), None)
        place = {} if lines is None else {"cursor": str(lines.place)}
        return {**place, **self.session_values()}

    def redraw(self) -> None:
        """Draw everything that depends on data, time, size or palette."""

    @property
    def lists_troubles(self) -> bool:
        """Whether the screen's list shows the problems of the engine and the state, so that no notice has to."""
        return False

    def tick_seconds(self) -> float:
        """Return the interval, in seconds, at which `tick` redraws."""
        return self.tick_seconds_within(None)

    @staticmethod
    def tick_seconds_within(limit_seconds: float | None) -> float:
        """Return a redraw interval: a minute, or two seconds where the time limit is short."""
        return 2.0 if limit_seconds is not None and wording.is_short(limit_seconds) else 60.0

    def draw_answer(self, name: str) -> None:  # noqa: ARG002 for screens that draw some answers apart
        """Draw the changes after the answer to a query."""
        self.draw()

    def draw(self) -> None:
        """Redraw, unless the screen is not composed yet, is being removed, or the terminal is too small for it."""
        if self.can_draw:
            self.redraw()

    def tick(self) -> None:
        """Redraw what depends on the time; called every `tick_seconds`."""
        self.draw()

    @property
    def is_ready(self) -> bool:
        """Whether keys may be handled: all queries are answered, or the state has not answered for too long."""
        if self._unanswered is None:
            return False
        return not self._unanswered or time.monotonic() - self._asked_at > _READY_SECONDS

    @property
    def can_draw(self) -> bool:
        """Whether `redraw` can be called: its widgets exist, and the terminal is not too small for its lines."""
        return self.is_composed() and not is_too_small(self.size)

    def is_composed(self) -> bool:
        """Whether all widgets that `redraw` uses exist."""
        # Not a query, which looks at every widget: this is asked several times for each frame.
        return any(child.id == "footer" for child in self.children)

    def on_mount(self) -> None:
        """Restore the screen's session entry."""
        values = self.app.session.screens.get(self.SESSION_NAME, {}) if self.SESSION_NAME else {}
        self.restore(values)
        if values.get("cursor", "").isdecimal():
            from mlebench_console.console.tui.widgets.line_list import LineList

            for lines in self.query(LineList):
                lines.start_at(int(values["cursor"]))

    def on_screen_resume(self) -> None:
        """Start the queries when the screen is shown."""
        self.query_again()
        self.refresh_frame()

    def on_screen_suspend(self) -> None:
        """Stop the queries when another screen covers this one; below a dialog they go on."""
        if self.app.screen.is_modal:
            return
        for name in self.queries():
            self.app.reader.unwatch(f"{id(self)}.{name}")

    def query_again(self, *names: str) -> None:
        """Run the queries anew, all or those named, because their parameters have changed."""
        asked = self.queries()
        if not names:
            has_state = self.app.condition.health in (StateHealth.GOOD, StateHealth.UNKNOWN)
            self._unanswered = set(asked) if has_state else set()
            self._asked_at = time.monotonic()
        for name in names or asked:
            if name not in asked:
                self.app.reader.unwatch(f"{id(self)}.{name}")
                continue
            query, deliver = asked[name]
            self.app.reader.watch(
                f"{id(self)}.{name}",
                query,
                partial(self._answered, name, deliver),
                partial(self._answered, name, deliver, None),
            )

    def _answered(
        self, name: str, deliver: Callable[[Any], None], value: Any, problem: Problem | None = None
    ) -> None:
        self.post_message(QueryAnswered(name, deliver, value, problem))

    def action_open(self) -> None:
        """Open the item under the cursor; screens that can do so override it."""

    def action_back(self) -> None:
        """Go back to the previous screen."""
        self.app.pop_screen()

    def on_line_list_opened(self) -> None:
        """Open the item chosen with Enter or a click."""
        self.action_open()

    def on_query_answered(self, message: QueryAnswered) -> None:
        """Process an answer that the reader's thread has posted; with a problem, the data shown before stays."""
        message.stop()
        name, problem = message.name, message.problem
        if problem is None and not self.is_composed():
            if self.is_attached:
                self.call_after_refresh(self.on_query_answered, message)
            return
        before = self._problems.pop(name, None)
        if problem is not None:
            self._problems[name] = problem
        if problem is not before:
            self.refresh_frame()
        if problem is None:
            message.deliver(message.value)
            self.draw_answer(name)
        if self._unanswered is not None:
            self._unanswered.discard(name)

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    @on(Prompt.Toggled)
    def refresh_keys(self) -> None:
        """Update the footer: other keys work in a field than in a list."""
        self.refresh_frame()

    def on_resize(self, event: events.Resize) -> None:
        """Redraw for the new size; if the terminal is too small, show only that."""
        fit_to_terminal(self, event.size)
        self.refresh_frame()
        self.call_after_refresh(self.draw)

    def refresh_frame(self) -> None:
        """Redraw the first line, the notices and the footer."""
        if not self.is_composed():
            return
        self.query_one(TopLine).renew(self.MODE)
        self.query_one(Notices).renew(self._problems.values(), with_needs=not self.lists_troubles)
        self.query_one(Footer).renew(self.contexts(), self.label_of)

    def in_background(
        self,
        work: Callable[[], Result],
        then: Callable[[Result], None] | None = None,
        *,
        failed: Callable[[Problem], None] | None = None,
        latest: str = "",
    ) -> None:
        """Run slow work in a thread and pass its result to `then`, unless the screen is removed meanwhile.

        Args:
            work: runs in a thread.
            then: takes the result, in the event loop.
            failed: takes its problem, which otherwise is shown as a message.
            latest: a group name; only the result of the latest work in the group is used.
        """
        # A partial rather than a coroutine, which would never be awaited if later work replaced it before its start.
        finish: WorkType[None] = partial(self.app.finish, work, then, failed)
        self.run_worker(finish, group=latest or "background", exclusive=bool(latest))


class OpeningScreen(ConsoleScreen):
    """The first frame, shown while the first screen and its queries are being imported."""

    AUTO_FOCUS = ""

    @property
    def is_ready(self) -> bool:
        """False: keys are meant for the screen that follows."""
        return False

    def body(self) -> Iterable[Widget]:
        """Return no widgets."""
        return ()


def is_too_small(size: Size) -> bool:
    """Return whether a terminal is too small to show any screen or dialog."""
    return size.width < _SMALLEST[0] or size.height < _SMALLEST[1]


def fit_to_terminal(screen: Screen[Any], size: Size) -> None:
    """Replace the content of a screen by a short message while the terminal is too small."""
    screen.set_class(is_too_small(size), "-tiny")
    text = f"too small: {size.width}x{size.height}, needs {_SMALLEST[0]}x{_SMALLEST[1]}"
    lines = textwrap.wrap(text, max(1, size.width), break_long_words=False, break_on_hyphens=False)
    tiny: list[Pieces] = [((line, "dim"),) for line in lines[: size.height]]
    screen.query_one("#tiny", Painted).show(*tiny)
