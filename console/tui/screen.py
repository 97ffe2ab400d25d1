"""What all screens share: the line that says where you are and how things are, notices, the keys at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from console import wording
from console.sanitize import plain
from console.tui.keys import Context, Key, KeyTable, shown
from console.tui.painting import (
    Pieces,
    cut,
    foreign,
    spread,
    spread_fitting,
    width_of,
)
from console.tui.reader import StateCondition, StateHealth
from console.tui.session import Remembered
from console.tui.theme import Role, Signs
from console.tui.widgets.painted import Painted
from engine.notifications.news import LOW_DISK_SHARE

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from engine.control import EngineStatus
    from state.database import Database

Result = TypeVar("Result")

SMALLEST = (40, 10)


@dataclass
class Fetched(Message):
    """The state has answered a question of this screen."""

    deliver: Callable[[Any], None]
    value: Any
    name: str

    def can_replace(self, message: Message) -> bool:
        """A newer answer makes an older one to the same question needless."""
        return isinstance(message, Fetched) and message.name == self.name


class ConsoleScreen(Screen[None]):
    """A screen of the console: its frame, its questions to the state, and its keys."""

    CONTEXTS: ClassVar[tuple[Context, ...]] = ()
    MODE: ClassVar[str] = ""
    TITLE_WORD: ClassVar[str] = ""
    # Under which name it is kept where an operator was on it; a screen that is opened over others keeps nothing.
    REMEMBERED_AS: ClassVar[str] = ""
    AUTO_FOCUS = "LineList"
    app: ConsoleApp

    def compose(self) -> ComposeResult:
        """The frame around the body."""
        yield Painted(id="top")
        yield Painted(id="notice")
        yield Painted(id="tiny")
        yield from self.body()
        yield Painted(id="footer")

    def body(self) -> Iterable[Widget]:
        """What is between the first and the last line."""
        raise NotImplementedError

    def questions(self) -> dict[str, tuple[Callable[[Database], Any], Callable[[Any], None]]]:
        """What the screen asks the state, and who takes the answers, by name."""
        return {}

    def contexts(self) -> tuple[Context, ...]:
        """Whose keys work here now."""
        return self.CONTEXTS

    def remembered(self) -> Remembered:
        """What is to be found again after a restart, beside the cursor's place."""
        return {}

    def recall(self, values: Remembered) -> None:
        """Take over what was remembered, as far as it still means something."""

    def whereabouts(self) -> Remembered:
        """Everything that is to be found again: the screen's own, and the cursor's place."""
        from console.tui.widgets.line_list import LineList

        shown = next(iter(self.query(LineList)), None)
        place = {} if shown is None else {"cursor": str(shown.place)}
        return {**place, **self.remembered()}

    def redraw(self) -> None:
        """Draw again what depends on the time, the size or the palette."""

    def redraw_every(self) -> float:
        """How many seconds may pass between two drawings of what depends on the time."""
        return self.seconds_between(None)

    @staticmethod
    def seconds_between(limit_seconds: float | None) -> float:
        """A minute, or two seconds where the time limit is short."""
        return 2.0 if limit_seconds is not None and wording.is_short(limit_seconds) else 60.0

    def draw(self) -> None:
        """Draw again, unless the screen is still being made or is already going."""
        if self.is_whole():
            self.redraw()

    def beat(self) -> None:
        """A while has passed, as long as `redraw_every` says."""
        self.draw()

    def is_whole(self) -> bool:
        """Whether everything that `redraw` draws on is there."""
        return bool(self.query("#footer"))

    def on_mount(self) -> None:
        """Begin where one was."""
        values = self.app.session.of(self.REMEMBERED_AS) if self.REMEMBERED_AS else {}
        self.recall(values)
        if values.get("cursor", "").isdigit():
            from console.tui.widgets.line_list import LineList

            for shown in self.query(LineList):
                shown.begin_at(int(values["cursor"]))

    def on_screen_resume(self) -> None:
        """Ask the state as long as this screen is seen."""
        self.ask_again()
        self.refresh_frame()

    def on_screen_suspend(self) -> None:
        """Ask nothing while another screen is in front; under a question or the help the screen stays alive."""
        if self.app.screen.is_modal:
            return
        for name in self.questions():
            self.app.reader.unwatch(self._full(name))

    def ask_again(self) -> None:
        """Put the questions anew, because what they are about has changed."""
        for name, (query, deliver) in self.questions().items():
            full = self._full(name)
            self.app.reader.watch(full, query, partial(self._answered, full, deliver))

    def action_open(self) -> None:
        """Open what is under the cursor, where a screen says what that is."""

    def on_line_list_opened(self) -> None:
        """Open what is under the cursor, which Enter or a click has chosen."""
        self.action_open()

    def on_fetched(self, message: Fetched) -> None:
        """Take an answer over from the reader's thread."""
        message.stop()
        if self.is_whole():
            message.deliver(message.value)
        elif self.is_attached:
            self.call_after_refresh(self.on_fetched, message)

    def on_resize(self, event: events.Resize) -> None:
        """Compose anew for the size; a terminal that is too small is asked to grow."""
        tiny = event.size.width < SMALLEST[0] or event.size.height < SMALLEST[1]
        self.set_class(tiny, "-tiny")
        self.query_one("#tiny", Painted).show(*tiny_lines(event.size.width, event.size.height, SMALLEST))
        self.refresh_frame()
        self.call_after_refresh(self.draw)

    def refresh_frame(self) -> None:
        """Draw the first line, the notices and the footer as things are now."""
        if not self.is_whole():
            return
        width = self.size.width
        self.query_one("#top", Painted).show(top_line(self.app.frame_state(), self.MODE, width))
        self.query_one("#notice", Painted).show(*notices(self.app.frame_state(), width))
        self.query_one("#footer", Painted).show(self.footer_line(width))

    def in_background(
        self, work: Callable[[], Result], then: Callable[[Result], None] | None = None, *, latest: str = ""
    ) -> None:
        """Do something that may wait, then something with its result, unless the screen is gone by then.

        Args:
            work: what is done in a thread; a problem is shown.
            then: what is done with its result, here again.
            latest: a name; of all work under it only the result of the latest is taken.
        """
        self.run_worker(self.app.finish(work, then), group=latest or "background", exclusive=bool(latest))

    def footer_line(self, width: int) -> Pieces:
        """The keys that matter here."""
        return footer_line(self.app.settings.keys, self.contexts(), self.app.frame_state(), width)

    def _full(self, name: str) -> str:
        return f"{id(self)}.{name}"

    def _answered(self, name: str, deliver: Callable[[Any], None], value: Any) -> None:
        self.post_message(Fetched(deliver, value, name))


# A file system that has not answered for so long is worth a line.
STALLED_SECONDS = 3.0
# The engine writes its status every other second; with this age it hangs.
SILENT_SECONDS = 20.0
_FIRST_TITLES = 6

SCREENS: tuple[tuple[str, str, str], ...] = (
    ("overview", "1", "Overview"),
    ("sweep", "2", "Sweep"),
    ("data", "3", "Data"),
    ("grade", "4", "Grade"),
    ("board", "5", "Board"),
    ("host", "6", "Host"),
    ("launch", "7", "Launch"),
    ("events", "8", "Events"),
    ("settings", "9", "Settings"),
)


@dataclass(frozen=True)
class FrameState:
    """How things are around every screen."""

    now: float
    condition: StateCondition
    stalled_seconds: float
    engine: EngineStatus | None
    demo: bool
    readonly: bool
    signs: Signs
    ascii_only: bool


def top_line(found: FrameState, mode: str, width: int) -> Pieces:
    """Where you are, and whether all is well."""
    clock: Pieces = (("   ", "text"), (wording.clock(found.now), "text"), (" ", "text"))
    return spread_fitting(
        [_places(mode, titles) for titles in (len(SCREENS), _FIRST_TITLES, 0)],
        [(*_health(found, words), *clock) for words in (3, 2, 1, 0)],
        width,
    )


def _places(mode: str, titles: int) -> Pieces:
    """The digits of the screens, the first ones with their titles."""
    pieces: list[tuple[str, Role]] = [(" ", "text")]
    for place, (name, key, title) in enumerate(SCREENS):
        if name == mode:
            pieces += [(key, "accent"), (f" {title}", "strong"), ("  ", "text")]
        elif place < titles:
            pieces += [(key, "dim"), (f" {title}", "dim"), ("  ", "text")]
        else:
            pieces += [(key, "dim"), (" ", "text")]
    return tuple(pieces)


def _health(found: FrameState, words: int) -> Pieces:
    """How all is, in `words` of detail: 0 only what is wrong, 3 everything."""
    engine, dot = found.engine, f" {found.signs.dot} "
    pieces: list[tuple[str, Role]] = []
    if found.readonly:
        pieces += [("read-only", "warn"), (dot, "faint")]
    if found.demo:
        pieces += [("demo", "warn"), (dot, "faint")]
    if found.condition.health in (StateHealth.ABSENT, StateHealth.UNKNOWN) and (
        engine is None or not engine.running
    ):
        return (*pieces, ("no engine yet", "dim"))
    if engine is None or not engine.running:
        pieces += [(f"{found.signs.failed} engine down", "bad")]
        return tuple(pieces)
    silent = engine.heartbeat_at is not None and found.now - engine.heartbeat_at > SILENT_SECONDS
    pieces += [("engine silent", "warn") if silent else ("engine ok", "good"), (dot, "faint")]
    pieces += [(f"{engine.live} running", "running" if engine.live else "dim")]
    if words >= 3 and engine.queued:
        pieces += [(dot, "faint"), (f"{engine.queued:,} queued", "dim")]
    free, total = engine.state_disk_free, engine.state_disk_total
    if free is not None and total:
        low = free < LOW_DISK_SHARE * total
        if low or words >= 1:
            text = f"disk {wording.size(free)} free" if words >= 2 else f"disk {wording.size(free)}"
            pieces += [(dot, "faint"), (text, "bad" if low else "dim")]
    return tuple(pieces)


def notices(found: FrameState, width: int) -> tuple[Pieces, ...]:
    """Sticky lines: what is wrong, and what kind of data this is."""
    lines: list[Pieces] = []
    problem = found.condition.problem
    if found.stalled_seconds > STALLED_SECONDS:
        since = wording.span(found.stalled_seconds // 5 * 5)
        lines.append(
            _notice(f"the state has not answered for {since}; what you see is from before", "warn", width)
        )
    elif found.condition.health is StateHealth.BAD and problem is not None:
        lines.append(_notice(f"{problem.what}: {problem.why}" if problem.why else problem.what, "bad", width))
        if problem.next_step:
            lines.append(_notice(problem.next_step, "dim", width))
    elif found.engine is not None and found.engine.problem:
        lines.append(_notice(f"engine: {found.engine.problem}", "warn", width))
    elif found.condition.health is StateHealth.GOOD and (found.engine is None or not found.engine.running):
        text = (
            "the engine is not running, start it with :engine (nothing new starts or is graded; agents go on)"
        )
        lines.append(_notice(text, "warn", width))
    if found.demo:
        lines.append(_notice("demo: synthetic data, real thresholds, not a result", "warn", width))
    return tuple(lines)


def _notice(text: str, role: Role, width: int) -> Pieces:
    return ((" ", "text"), (foreign(text, width - 2).rstrip(), role))


def footer_line(keys: KeyTable, contexts: tuple[Context, ...], found: FrameState, width: int) -> Pieces:
    """The keys that matter here; what changes something is left out of a read-only console."""
    own = [key for key in keys.footer(*contexts) if not (key.changes and found.readonly)]
    general = [key for key in keys.footer("app") if key not in own]
    left: list[tuple[str, Role]] = [(" ", "text")]
    right: list[tuple[str, Role]] = []
    for key in general:
        right += _key(key, found)
    for key in own:
        piece = _key(key, found)
        if width_of((*left, *piece, *right)) > width:
            break
        left += piece
    return spread(tuple(left), tuple(right), width)


def _key(key: Key, found: FrameState) -> list[tuple[str, Role]]:
    return [(shown(key.keys[0], ascii_only=found.ascii_only), "accent"), (f" {key.label}  ", "dim")]


def tiny_lines(width: int, height: int, smallest: tuple[int, int]) -> tuple[Pieces, ...]:
    """What a terminal that is too small shows."""
    text = f"too small: {width}x{height}, needs {smallest[0]}x{smallest[1]}"
    words, lines = plain(text).split(), [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return tuple(cut(((line, "dim"),), width) for line in lines[:height])


class OpeningScreen(ConsoleScreen):
    """A frame around nothing."""

    AUTO_FOCUS = ""

    def body(self) -> Iterable[Widget]:
        """Nothing yet."""
        return ()
