"""What all screens share: the line that says where you are and how things are, notices, the keys at the bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from console import wording
from console.screens import frame
from console.tui.key_table import Context
from console.tui.painting import Pieces
from console.tui.session import Remembered
from console.tui.widgets.painted import Painted

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from state.database import Database

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
        values = self.app.memory.session.of(self.REMEMBERED_AS) if self.REMEMBERED_AS else {}
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
        self.query_one("#tiny", Painted).show(
            *frame.tiny_lines(event.size.width, event.size.height, SMALLEST)
        )
        self.refresh_frame()
        self.call_after_refresh(self.draw)

    def refresh_frame(self) -> None:
        """Draw the first line, the notices and the footer as things are now."""
        if not self.is_whole():
            return
        width = self.size.width
        self.query_one("#top", Painted).show(frame.top_line(self.app.situation(), self.MODE, width))
        self.query_one("#notice", Painted).show(*frame.notices(self.app.situation(), width))
        self.query_one("#footer", Painted).show(self.footer_line(width))

    def footer_line(self, width: int) -> Pieces:
        """The keys that matter here."""
        return frame.footer_line(self.app.settings.keys, self.contexts(), self.app.situation(), width)

    def _full(self, name: str) -> str:
        return f"{id(self)}.{name}"

    def _answered(self, name: str, deliver: Callable[[Any], None], value: Any) -> None:
        self.post_message(Fetched(deliver, value, name))
