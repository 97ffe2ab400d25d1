"""The base class of all screens: queries of the state, keys, and the lines around the screen's body.

Those lines are the first line with the screen's title and the engine's health, the notices, and the footer with the
keys. Base classes of screens with one list are in `list_screen`.
"""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.keys import key_to_character
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.console import wording
from mlebench_console.console.pieces import cut, foreign, spread, spread_fitting, width_of
from mlebench_console.console.roles import Piece, Pieces
from mlebench_console.console.tui.keys import SCREENS, Context, Key, bindings, key_name
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.session import SessionValues
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.foundation.text import plural

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
# A notice is shown when the file system has not answered for this long.
STALLED_SECONDS = 3.0
# Keys wait at most this long for the first answers.
_READY_SECONDS = 2.0
# The engine normally carries out a request this soon after its undo period has ended.
_OVERDUE_SECONDS = 3.0

# From this width on titles of screens come before figures of the engine, at least those of so many screens.
_TITLED_WIDTH, _FIRST_TITLES = 120, 6


@dataclass
class QueryAnswered(Message):
    """The state has answered a query of this screen."""

    deliver: Callable[[Any], None]
    value: Any
    name: str

    def can_replace(self, message: Message) -> bool:
        """Return whether this is a newer answer to the same query."""
        return isinstance(message, QueryAnswered) and message.name == self.name


@dataclass
class QueryFailed(Message):
    """A query of this screen could not be answered."""

    name: str
    problem: Problem


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
        yield Painted(id="top")
        yield Painted(id="notice")
        yield Painted(id="tiny")
        yield from self.body()
        yield Painted(id="footer")

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

    def contexts(self) -> tuple[Context, ...]:
        """Return the contexts whose keys work now."""
        return self.CONTEXTS

    def toggled_on(self) -> Collection[str]:
        """Return the ids of the keys whose views are shown, so that the keys would now hide them."""
        return ()

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty if it would do nothing."""
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
                partial(self._failed, name),
            )

    def _answered(self, name: str, deliver: Callable[[Any], None], value: Any) -> None:
        self.post_message(QueryAnswered(deliver, value, name))

    def _failed(self, name: str, problem: Problem) -> None:
        self.post_message(QueryFailed(name, problem))

    def action_open(self) -> None:
        """Open the item under the cursor; screens that can do so override it."""

    def action_back(self) -> None:
        """Go back to the previous screen."""
        self.app.pop_screen()

    def on_line_list_opened(self) -> None:
        """Open the item chosen with Enter or a click."""
        self.action_open()

    def on_prompt_toggled(self) -> None:
        """Show the keys of the prompt in the footer, or those of the screen again."""
        self.refresh_frame()

    def on_query_answered(self, message: QueryAnswered) -> None:
        """Process an answer that the reader's thread has posted."""
        message.stop()
        if self.is_composed():
            if self._problems.pop(message.name, None) is not None:
                self.refresh_frame()
            message.deliver(message.value)
            self.draw_answer(message.name)
            self._settle(message.name)
        elif self.is_attached:
            self.call_after_refresh(self.on_query_answered, message)

    def on_query_failed(self, message: QueryFailed) -> None:
        """Show the problem of a query; the data shown before stays."""
        message.stop()
        self._problems[message.name] = message.problem
        self.refresh_frame()
        self._settle(message.name)

    def _settle(self, name: str) -> None:
        if self._unanswered is not None:
            self._unanswered.discard(name)

    def on_descendant_focus(self) -> None:
        """Update the footer: other keys work in a field than in a list."""
        self.refresh_frame()

    def on_descendant_blur(self) -> None:
        """Update the footer after a field was left."""
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
        width = self.size.width
        self.query_one("#top", Painted).show(_top_line(self.app, self.MODE, width))
        problems = self._problems.values()
        troubles = () if self.lists_troubles else _troubles(self.app)
        self.query_one("#notice", Painted).show(*_notices(self.app, troubles, problems, width))
        prompt = next(iter(self.query(".prompt.-open").results(Prompt)), None)
        self.query_one("#footer", Painted).show(_footer(self, prompt, width))

    def in_background(
        self, work: Callable[[], Result], then: Callable[[Result], None] | None = None, *, latest: str = ""
    ) -> None:
        """Run slow work in a thread and pass its result to `then`, unless the screen is removed meanwhile.

        Args:
            work: runs in a thread; its problem is shown as a message.
            then: takes the result, in the event loop.
            latest: a group name; only the result of the latest work in the group is used.
        """
        # A partial rather than a coroutine, which would never be awaited if later work replaced it before its start.
        finish: WorkType[None] = partial(self.app.finish, work, then)
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


def _top_line(app: BaseApp, mode: str, width: int) -> Pieces:
    """Return the first line: the screen's title, what needs a person, the engine's health and the time."""
    clock: Pieces = (("   ", "text"), (wording.clock(app.now()), "text"), (" ", "text"))
    rights = [(*_health(app, detail), *clock) for detail in (3, 2, 1, 0, -1)]
    if width >= _TITLED_WIDTH:
        for titled in range(len(SCREENS), _FIRST_TITLES - 1, -1):
            left = _titles(mode, titled)
            right = next((each for each in rights[:-1] if width_of(left) + width_of(each) < width), None)
            if right is not None:
                return spread(left, right, width)
    return spread_fitting([_titles(mode, 0)], rights, width)


def _health(app: BaseApp, detail: int) -> Pieces:
    """Return the health of engine and runs at a level of detail: -1 shows only problems, 3 everything."""
    engine, dot = app.engine, f" {app.signs.dot} "
    pieces: list[Piece] = []
    if app.readonly:
        pieces += [("read-only", "warn"), (dot, "faint")]
    if app.needed:
        needs = f"{app.needed:,} {'needs' if app.needed == 1 else 'need'} you"
        pieces += [(needs, "warn"), (dot, "faint")]
    if engine is None or not engine.running:
        if app.condition.health in (StateHealth.ABSENT, StateHealth.UNKNOWN):
            return (*pieces, ("no engine yet", "dim"))
        return (*pieces, (f"{app.signs.failed} engine down", "bad"))
    troubles = len(engine.problems) or bool(engine.problem)
    if engine.is_silent(app.now()):
        pieces.append(("engine silent", "warn"))
    elif troubles:
        pieces.append((f"engine: {plural(troubles, 'problem')}", "warn"))
    else:
        pieces.append(("engine ok", "good"))
    running = engine.live - engine.waiting
    if detail >= 0 or not app.needed:
        pieces += [(dot, "faint"), (f"{running} running", "running" if running else "dim")]
    if engine.waiting:
        pieces += [(dot, "faint"), (f"{engine.waiting:,} wait", "text")]
    if detail >= 3 and engine.queued:
        pieces += [(dot, "faint"), (f"{engine.queued:,} queued", "dim")]
    # The disk of the state, unless only that of the data is nearly full.
    low = [disk for disk in engine.disks if disk.is_low]
    if low or (engine.disks and detail >= 1):
        disk = (low or engine.disks)[0]
        size = f"{'data disk' if disk.holds == 'datasets' else 'disk'} {wording.size(disk.free)}"
        text = f"{size} free" if low or detail >= 2 else size
        pieces += [(dot, "faint"), (text, "bad" if low else "dim")]
    return tuple(pieces)


def _notices(
    app: BaseApp, troubles: Iterable[Piece], problems: Iterable[Problem], width: int
) -> tuple[Pieces, ...]:
    """Return the notices, shown as long as they are true: problems, requests that can be undone, demo data."""
    found: list[Piece] = [*troubles, *((". ".join(str(problem).splitlines()), "bad") for problem in problems)]
    if app.waiting and _is_overdue(app):
        last = app.waiting[-1]
        key = key_name(app.settings.keys.named("app.undo").keys[0], ascii_only=app.settings.ascii_only)
        found.append((f"{last.text}: it waits for the engine {app.signs.dot} {key} undo", "warn"))
    if app.demo:
        found.append(("demo: synthetic data, real thresholds, not a result", "warn"))
    return tuple(((" ", "text"), (foreign(text, width - 2).rstrip(), role)) for text, role in found)


def _troubles(app: BaseApp) -> list[Piece]:
    """Return the most serious problem of the engine or the state."""
    found: list[Piece] = []
    condition, engine = app.condition, app.engine
    stalled = app.reader.stalled_for()
    if stalled > STALLED_SECONDS:
        since = wording.span(stalled // 5 * 5)
        found.append((f"the state has not answered for {since}; what you see may be outdated", "warn"))
    elif condition.health is StateHealth.BAD and condition.problem is not None:
        problem = condition.problem
        found.append((problem.cause, "bad"))
        if problem.next_step:
            found.append((problem.next_step, "dim"))
    elif engine is not None and engine.problem:
        found.append((f"engine: {engine.problem}", "warn"))
    elif condition.health is StateHealth.GOOD and not (engine is not None and engine.running):
        colon = key_name(app.settings.keys.named("app.command").keys[0], ascii_only=app.settings.ascii_only)
        # Short enough for 80 columns.
        what = "engine down: nothing new starts or is graded, agents go on"
        found.append((what if app.readonly else f"{what}; {colon}engine start", "warn"))
    return found


def _footer(screen: ConsoleScreen, prompt: Prompt | None, width: int) -> Pieces:
    """Return the footer's keys; a read-only console leaves out those that change something.

    While a field has the focus, keys that would be typed into it are left out. Where there is no room for all of the
    screen's own, the last ones are left out, but never the way back.
    """
    app, contexts = screen.app, screen.contexts()
    keys = app.settings.keys
    if prompt is not None:  # all other keys are text input now
        typed = tuple(piece for key in prompt.keys for piece in _named_key(app, *key))
        return cut(((" ", "text"), *typed), width)
    if app.waiting and not _is_overdue(app):
        return _undo_line(app, width)
    able = [
        key for key in keys.footer(*contexts) if screen.label_of(key) and not (key.changes and app.readonly)
    ]
    own = {key: pieces for key in able if (pieces := _footer_key(screen, key))}
    right = tuple(piece for key in keys.footer("app") if key not in own for piece in _footer_key(screen, key))
    room = width - width_of(right) - 1
    for key in reversed(able):
        if sum(map(width_of, own.values())) > room and key in own and key.label != "back":
            del own[key]
    return spread(((" ", "text"), *(piece for pieces in own.values() for piece in pieces)), right, width)


def _is_overdue(app: BaseApp) -> bool:
    """Return whether the last undoable request should have been carried out by now, so that no engine is running."""
    return app.now() - (app.waiting[-1].not_before or 0.0) > _OVERDUE_SECONDS


def _undo_line(app: BaseApp, width: int) -> Pieces:
    """Return the notice about the last undoable request: what will be done, in how many seconds, and the undo key."""
    last = app.waiting[-1]
    seconds = max(0, math.ceil((last.not_before or 0.0) - max(app.now(), last.filed_at)))
    text = foreign(last.text, 60).rstrip()
    soon = f" in {seconds} s" if seconds else " now"
    key = key_name(app.settings.keys.named("app.undo").keys[0], ascii_only=app.settings.ascii_only)
    undo: Pieces = (
        () if app.readonly else ((f" {app.signs.dot} ", "faint"), (key, "accent"), (" undo", "text"))
    )
    more = len(app.waiting) - 1
    others: Pieces = ((f"   and {more} more", "dim"),) if more else ()
    return cut(((" ", "text"), (f"{text}{soon}", "warn"), *undo, *others), width)


def _footer_key(screen: ConsoleScreen, key: Key) -> Pieces:
    """Return the first key of an action that works now, with its label; empty if it has none."""
    names = [name for name in key.keys if not (screen.is_typing and _is_typed(name))]
    return _named_key(screen.app, names[0], screen.label_of(key)) if names else ()


def _is_typed(name: str) -> bool:
    """Return whether a key types a character into a field."""
    character = key_to_character(name)
    return character is not None and character.isprintable()


def _named_key(app: BaseApp, key: str, label: str) -> Pieces:
    name = key_name(key, ascii_only=app.settings.ascii_only)
    return (name, "accent"), (f" {label}  ", "dim")


def _titles(mode: str, titled: int) -> Pieces:
    """Return the keys of the screens, the first `titled` of them with their titles."""
    pieces: list[Piece] = [(" ", "text")]
    for place, (name, key, title, _about) in enumerate(SCREENS):
        if name == mode:
            pieces += [(key, "accent"), (f" {title}", "strong"), ("  ", "text")]
        elif place < titled:
            pieces += [(key, "dim"), (f" {title}", "dim"), ("  ", "text")]
        else:
            pieces += [(key, "dim"), (" ", "text")]
    return tuple(pieces)


def is_too_small(size: Size) -> bool:
    """Return whether a terminal is too small to show any screen or dialog."""
    return size.width < _SMALLEST[0] or size.height < _SMALLEST[1]


def fit_to_terminal(screen: Screen[Any], size: Size) -> None:
    """Replace the content of a screen by a short message while the terminal is too small."""
    screen.set_class(is_too_small(size), "-tiny")
    screen.query_one("#tiny", Painted).show(*_too_small(size.width, size.height))


def _too_small(width: int, height: int) -> tuple[Pieces, ...]:
    text = f"too small: {width}x{height}, needs {_SMALLEST[0]}x{_SMALLEST[1]}"
    lines = textwrap.wrap(text, max(1, width), break_long_words=False, break_on_hyphens=False)
    return tuple(cut(((line, "dim"),), width) for line in lines[:height])
