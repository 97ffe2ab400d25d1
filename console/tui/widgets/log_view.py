"""The log view: a pager for a log or file of any size, with its status line and prompts."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult, SuspendNotSupported
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.logs.following import JoinedLogs, RunLog
from mlebench_console.console.logs.pager import LogCursor, LogPager, Page
from mlebench_console.console.logs.reader import LogFile, one_part
from mlebench_console.console.logs.search import ERRORS, Pattern
from mlebench_console.console.pieces import fit, foreign, spread, width_of
from mlebench_console.console.roles import Piece, Pieces, Role
from mlebench_console.console.sanitize import plain, plain_lines, spans
from mlebench_console.console.tui.keys import bindings
from mlebench_console.console.tui.painting import span_segments
from mlebench_console.console.tui.theme import Palette
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.environment.container.run_log import log_parts
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from mlebench_console.foundation.text import plural

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp

Asked = Literal["search", "filter", "time", "save"]

# Terminals refuse or silently cut longer clipboard sequences.
MOST_COPIED = 74_000
_WHEEL_LINES = 3
# How many cells of a line are drawn; a mark counts the rest, which can be reached by scrolling sideways.
_WIDEST = 4000
# The most cells that times, numbers and names take of a line.
_BESIDE = 40
# Longer lines are data rather than code, and are not highlighted.
_LONGEST_CODE = 500
# The colours of the names of several logs.
_NAMES: tuple[Role, ...] = ("accent", "good", "invalid", "running", "warn", "text")
_HINTS: dict[Asked, tuple[str, str, str]] = {
    "search": ("/", "a regular expression; without a capital letter, capitals match too", "search"),
    "filter": ("&", "show only lines with a regular expression; nothing shows all", "filter"),
    "time": ("@", "14:05 for a time of day, +2:30 into the run", "go there"),
    "save": (">", "the file to save the selection in, as harmless text", "save"),
}


class LogPane(Widget):
    """A log view with its status line and prompts, for use in screens."""

    DEFAULT_CSS = (
        "LogPane { height: 1fr; width: 1fr; layout: vertical; } LogPane > .log-status { height: 1; }"
    )
    app: BaseApp

    def compose(self) -> ComposeResult:
        """Yield the view, the status line and the prompts."""
        yield LogView()
        yield Painted(classes="log-status")
        for what, (sign, hint, done) in _HINTS.items():
            yield Prompt(sign, hint, partial(self._answer, what), id=what, done=done)

    @property
    def view(self) -> LogView:
        """The log itself."""
        return self.query_one(LogView)

    def redraw(self) -> None:
        """Redraw the status line, and the log itself if the colours have changed."""
        self.view.recolour()
        self.draw_status()

    def draw_status(self) -> None:
        """Redraw the status line."""
        if self.is_attached and self.query(Painted):
            self.query_one(".log-status", Painted).show(self.view.status())

    def ask(self, what: Asked) -> None:
        """Open a prompt."""
        self.query_one(f"#{what}", Prompt).open("")

    def _answer(self, what: Asked, typed: str) -> None:
        """Pass a typed text to the view."""
        try:
            self.view.answer(what, typed)
        except UsageProblem as problem:
            self.app.say(problem.in_one_line(), bad=True)


class LogView(Widget, can_focus=True, inherit_bindings=False):
    """A pager; it opens at the end of the log and follows it."""

    DEFAULT_CSS = "LogView { height: 1fr; width: 1fr; }"
    BINDINGS = bindings("log")
    app: BaseApp

    @dataclass
    class Paged(Message):
        """The pager has a new page."""

        page: Page
        file: LogFile

        def can_replace(self, message: Message) -> bool:
            """Return whether this is a newer page of the same file."""
            return isinstance(message, LogView.Paged) and message.file is self.file

    def __init__(self) -> None:
        super().__init__()
        self._file: LogFile | None = None
        self._grows = True
        self._pager: LogPager | None = None
        self._page = Page()
        self._wrap = False
        # How many cells the view is scrolled to the right, unless lines are wrapped.
        self._left = 0
        self._numbers = False
        self._times = False
        self._name_width = 0
        # What an operator's own pager opens.
        self._paths: tuple[Path, ...] = ()
        self._pattern: Pattern | None = None
        # Highlights source code; None for logs.
        self._lexer: Any = None
        self._rows: tuple[Strip, ...] = ()
        self._palette: Palette | None = None

    @property
    def _pane(self) -> LogPane:
        """The pane that it is in, with the status line and the prompts."""
        assert isinstance(self.parent, LogPane)
        return self.parent

    @property
    def is_reading(self) -> bool:
        """Whether the result of the last action is not shown yet."""
        return self._pager is not None and not self._pager.is_final(self._page)

    @property
    def searches(self) -> bool:
        """Whether there is a pattern, of which there may be further hits."""
        return self._pattern is not None

    def show(self, path: Path | None, *, grows: bool = True) -> None:
        """Show the end of a log, or none; a growing log is followed."""
        self._grows = grows
        if path != (None if self._file is None else self._file.path):
            self._open(None if path is None else LogFile(path))

    def show_file(self, path: Path, *, line: int = 0, name: str = "") -> None:
        """Show a file that is not a log with line numbers, highlighted, from its beginning or around a line."""
        self._numbers, self._grows = True, False
        self._open(LogFile(path, one_part), lexer_for(Path(name or path).name))
        if line:
            self._run(lambda cursor: cursor.to_line(line), long=True)
        else:
            self.action_top()

    def show_several(self, logs: Sequence[RunLog]) -> None:
        """Show the logs of several runs as one, each line behind its run; called again, go on with later attempts."""
        self._grows = any(not log.ending for log in logs)
        self._name_width = max((cell_len(plain(log.name)) for log in logs), default=0)
        file = self._file
        if isinstance(file, JoinedLogs):
            self._run(lambda _cursor: file.renew(logs), moves=False)
        else:
            self._open(JoinedLogs(logs, self.size.height))
        self._paths = tuple(log.path for log in logs)

    def answer(self, what: str | None, value: str) -> None:
        """Carry out what was typed at a prompt.

        Raises:
            UsageProblem: the text is not a valid regular expression.
        """
        if what == "filter":
            pattern = Pattern.typed(value) if value else None
            self._pattern = pattern or self._pattern
            self._run(lambda cursor: cursor.only_lines_with(pattern), long=True)
        elif value and what == "search":
            self._pattern = Pattern.typed(value)
            self.action_hit(1)
        elif value and what == "time":
            self._times = True
            self._run(lambda cursor: cursor.to_moment(value))
        elif value and not self.app.refuses():
            path = Path(value).expanduser()
            self._run(lambda cursor: self._save(*cursor.take_selection(), path), moves=False)

    def status(self) -> Pieces:
        """Return the status line: problems and the current hit on the left, the position on the right."""
        page = self._page
        if not page.size and not page.note:
            is_known = self._file is not None and not self.is_reading
            nothing = " nothing has been printed yet" if self._grows else " nothing was printed"
            return ((nothing if is_known else "", "dim"),)
        right: list[Piece] = []
        settings = self.app.settings
        key = settings.key_of
        if page.mark is not None:
            selected = plural(page.selected, "line")
            keys = f"{key('log.copy')} copies, {key('log.save')} saves"
            right.append((f"{selected} selected: {keys}  ", "accent"))
        if page.filtered:
            enter = settings.name_of("enter")
            right.append((f"{key('log.filter')} {enter} shows all  ", "accent"))
        if page.moments and not any(page.moments):
            right.append(("when lines were printed is not known  ", "dim"))
        if self._left:
            right.append((f"from column {self._left + 1}  ", "dim"))
        if self._wrap:
            right.append(("wrap  ", "dim"))
        right.append((f"{wording.size(page.size)}  ", "dim"))
        if not self._grows:
            right.append(("the end ", "dim") if page.following else (f"{page.share:.0%} ", "dim"))
        elif page.following:
            right.append(("following ", "good"))
        else:
            new = f", +{plural(page.behind, 'line')}" if page.behind else ""
            right += [(f"{page.share:.0%}  ", "dim"), (f"paused{new} {self.app.signs.down} ", "warn")]
        hits: Pieces = ()
        if page.hits or page.filtered:
            name = (
                "errors"
                if self._pattern in (None, ERRORS)
                else f"/{foreign(self._pattern.expression, 24).rstrip()}"
            )
            hits = ((f"{name}: {_hits(page)}", "accent"),)
        left: list[Piece] = [(" ", "text")]
        if page.note:
            room = self.size.width - width_of(right) - width_of(hits) - 4
            note = foreign(page.note, max(10, room), ellipsis=self.app.signs.ellipsis)
            left.append((note.rstrip() + "  ", "warn"))
        return spread((*left, *hits), tuple(right), self.size.width)

    def recolour(self) -> None:
        """Draw the page again if the colours have changed."""
        if self._palette not in (None, self.app.palette):
            self._draw()

    def on_unmount(self) -> None:
        """Close the log."""
        self._stop()

    def on_resize(self) -> None:
        """Request pages of the new height."""
        self._resize()
        self._draw()

    def on_log_view_paged(self, message: Paged) -> None:
        """Draw a page."""
        message.stop()
        if message.file is self._file:
            is_new_hit = message.page.hit not in (None, self._page.hit)
            self._page = message.page
            if is_new_hit:
                self._look_sideways()
            self._draw()

    def on_mouse_scroll_down(self) -> None:
        """Scroll down."""
        self.action_scroll_lines(_WHEEL_LINES)

    def on_mouse_scroll_up(self) -> None:
        """Scroll up."""
        self.action_scroll_lines(-_WHEEL_LINES)

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        return self._rows[y] if y < len(self._rows) else Strip.blank(self.size.width, self.app.palette.base)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll by lines."""
        self._run(lambda cursor: cursor.move(lines))

    def action_scroll_pages(self, pages: int) -> None:
        """Scroll by pages."""
        self.action_scroll_lines(pages * max(1, self.size.height - 1))

    def action_top(self) -> None:
        """Go to the beginning."""
        self._run(LogCursor.to_begin)

    def action_bottom(self) -> None:
        """Go to the end and follow."""
        self._run(LogCursor.to_end)

    def action_sideways(self, cells: int) -> None:
        """Scroll long lines sideways."""
        if not self._wrap:
            self._left = min(max(0, self._left + cells), _WIDEST - 20)
            self._draw()

    def action_wrap(self) -> None:
        """Wrap long lines or cut them."""
        self._wrap, self._left = not self._wrap, 0
        self._resize()
        self._draw()

    def action_numbers(self) -> None:
        """Show or hide line numbers."""
        wanted = self._numbers = not self._numbers
        self._run(lambda cursor: cursor.with_numbers(wanted), moves=False)

    def action_times(self) -> None:
        """Show or hide the times at which lines were printed."""
        wanted = self._times = not self._times
        self._run(lambda cursor: cursor.with_times(wanted), moves=False)

    def action_mark(self) -> None:
        """Start a selection here, or cancel it."""
        self._run(LogCursor.toggle_mark, moves=False)

    def action_ask(self, what: Asked) -> None:
        """Open a prompt."""
        self._pane.ask(what)

    def action_hit(self, direction: int) -> None:
        """Go to the next or previous hit."""
        pattern = self._pattern
        self._run(lambda cursor: cursor.search(pattern, back=direction < 0), long=True)

    def action_error(self, direction: int) -> None:
        """Go to the next or previous line that looks like an error."""
        self._pattern = ERRORS
        self.action_hit(direction)

    def action_copy(self) -> None:
        """Copy the selection, or without one the page, to the clipboard."""
        self._run(lambda cursor: self._copy(*cursor.take_selection(MOST_COPIED)), moves=False)

    def action_pager(self) -> None:
        """Open the log in the operator's own pager."""
        parts = [str(part.path) for path in self._paths for part in log_parts(path)]
        wanted = shlex.split(os.environ.get("PAGER") or "less")
        if not parts:
            self.app.say("the log is empty", bad=True)
            return
        if not wanted or shutil.which(wanted[0]) is None:
            self.app.say(f"the pager '{' '.join(wanted)}' is not installed", bad=True)
            return
        # Without -r, less shows control characters instead of sending them to the terminal.
        # With -f, it does not ask first whether a log with colours is a binary file.
        own = {**os.environ, "LESS": "-f", "LESSSECURE": "1"}
        try:
            self.app.show_program([*wanted, *parts], own)
        except SuspendNotSupported:
            self.app.say("another program can't be shown in this terminal", bad=True)

    def _open(self, file: LogFile | None, lexer: Any = None) -> None:
        self._stop()
        self._file, self._page, self._left, self._lexer = file, Page(), 0, lexer
        self._paths = () if file is None else (file.path,)
        if file is not None and self.is_attached:
            height, numbers, times = max(1, self.size.height), self._numbers, self._times
            self._pager = LogPager(file, partial(self._deliver, self.app, file), height=height)
            self._run(lambda cursor: cursor.with_numbers(numbers), moves=False)
            self._run(lambda cursor: cursor.with_times(times), moves=False)
            self._resize()
            self._pager.start()
        self._draw()

    def _run(self, action: Callable[[LogCursor], None], *, long: bool = False, moves: bool = True) -> None:
        if self._pager is not None:
            self._pager.run(action, long=long, moves=moves)

    def _resize(self) -> None:
        width, height = self.size
        columns = max(1, width) if self._wrap else None
        self._run(lambda cursor: cursor.resize(height, columns), moves=False)

    def _look_sideways(self) -> None:
        """Scroll sideways so that the current hit is visible."""
        page, pattern = self._page, self._pattern
        line = next((line for line in page.lines if line.start == page.hit), None)
        if self._wrap or pattern is None or line is None:
            return
        content = plain(line.text, limit=_WIDEST).encode()
        start, end = next(iter(pattern.spans(content)), (0, 0))
        before = cell_len(content[:start].decode("utf-8", "replace"))
        width = cell_len(content[start:end].decode("utf-8", "replace"))
        room = max(1, self.size.width - _BESIDE)
        if not self._left <= before <= max(self._left, self._left + room - width):
            self._left = 0 if before + width <= room else min(max(0, before - room // 2), _WIDEST - 20)

    def _stop(self) -> None:
        if self._pager is not None:
            self._pager.stop()
        self._pager = None

    def _deliver(self, app: BaseApp, file: LogFile, page: Page) -> None:
        """Post a page from the pager's thread; `app` is passed because a closed view no longer has one."""
        if app.is_running:
            app.call_later(self.post_message, self.Paged(page, file))

    def _draw(self) -> None:
        height = self.size.height
        if not self.size:
            return
        rows = self._page_rows()
        self._palette = self.app.palette
        before = self._rows
        self._rows = tuple(rows[-height:] if self._page.following else rows[:height])
        if before != self._rows:
            self.refresh()
        self._pane.draw_status()

    def _page_rows(self) -> list[Strip]:
        """Return the rows of the page."""
        page = self._page
        digits = len(f"{max((number or 0 for number in page.numbers), default=0):,}") if page.numbers else 0
        # No empty column where the times of all lines are unknown; the status line already says so.
        has_times = any(moment is not None for moment in page.moments)
        found: list[Strip] = []
        for place, line in enumerate(page.lines):
            margin = [self._sign(line.start), *self._owner(place)]
            if has_times:
                moment = page.moments[place]
                clock = wording.clock_seconds(moment) if moment is not None else wording.UNKNOWN
                margin.append(self._dim(f"{clock:<8} "))
            if page.numbers:
                number = page.numbers[place]
                margin.append(self._dim(f"{wording.UNKNOWN if number is None else f'{number:,}':>{digits}} "))
            found += self._rows_of(line.text, margin)
        return found

    def _sign(self, start: int) -> Segment:
        page = self._page
        if start == page.hit:
            return Segment(self.app.signs.cursor, self._style("accent"))
        if page.mark is not None and start >= page.mark:
            return Segment(self.app.signs.marked, self._style("accent"))
        return Segment(" ", self.app.palette.base)

    def _owner(self, place: int) -> Iterator[Segment]:
        name = self._page.names[place] if self._page.names else None
        if name is not None:
            role = _NAMES[name.number % len(_NAMES)]
            # The last word, the seed, distinguishes runs of one competition.
            text, _, last = plain(name.text).rpartition(" ")
            room = min(48, self.size.width // 4, self._name_width) - len(last) - 1
            yield Segment(f"{fit(text, room, ellipsis=self.app.signs.ellipsis)} {last} ", self._style(role))

    def _dim(self, text: str) -> Segment:
        return Segment(text, self._style("dim"))

    def _rows_of(self, text: str, margin: list[Segment]) -> Iterator[Strip]:
        base, width = self.app.palette.base, self.size.width
        text = text.removesuffix("\r")
        beside = sum(segment.cell_length for segment in margin)
        room = max(1, width - beside)
        drawn = Strip(self._segments(text, room))
        has_hit = self._pattern is not None and self._pattern.first(text.encode()) is not None
        if has_hit and not self._page.filtered:
            drawn = drawn.apply_style(self.app.palette.style("strong"))
        if not self._wrap:
            part = drawn.crop(self._left, self._left + room) if self._left else drawn
            yield Strip([*margin, *part]).adjust_cell_length(width, base)
            return
        for place in range(0, max(1, drawn.cell_length), room):
            part = drawn.crop(place, place + room)
            head = margin if not place else [Segment(" " * beside, base)]
            yield Strip([*head, *part]).adjust_cell_length(width, base)

    def _segments(self, text: str, room: int) -> list[Segment]:
        limit = _WIDEST if self._wrap or self._left else room
        if self._lexer is not None:
            pieces = code_pieces(plain(text, limit=limit), self._lexer)
            segments = [Segment(part, self._style(role)) for part, role in pieces]
        else:
            segments = span_segments(spans(text, limit=limit), self.app.palette)
        if self._pattern is None:
            return segments
        return [piece for segment in segments for piece in self._with_hits(segment, self._pattern)]

    def _style(self, role: Role) -> Style:
        return self.app.palette.base + self.app.palette.style(role)

    def _with_hits(self, segment: Segment, pattern: Pattern) -> Iterator[Segment]:
        style = (segment.style or self.app.palette.base) + self.app.palette.style("hit")
        content, place = segment.text.encode(), 0
        for start, end in pattern.spans(content):
            yield Segment(content[place:start].decode("utf-8", "replace"), segment.style)
            yield Segment(content[start:end].decode("utf-8", "replace"), style)
            place = end
        yield Segment(content[place:].decode("utf-8", "replace"), segment.style)

    # The next two run in the pager's thread, since a selection may be large and a disk slow.

    def _copy(self, content: bytes, is_cut: bool) -> None:
        text = _harmless(content)
        cut = text.encode()[:MOST_COPIED].decode("utf-8", "ignore")
        is_cut = is_cut or len(cut) < len(text)
        more = ", the first of what is selected: more is for a file" if is_cut else ""
        self._call(self.app.copy_to_clipboard, cut)
        self._call(self.app.say, f"copied {cut.count(chr(10)) + 1:,} lines{more}")

    def _save(self, content: bytes, is_cut: bool, path: Path) -> None:
        try:
            if path.exists():
                raise EnvironmentProblem(f"{path} exists already", "", "Name another file.")
            files.write_text(path, _harmless(content) + "\n")
        except (OSError, EnvironmentProblem) as error:
            self._call(self.app.say, str(error), bad=True)
        else:
            more = f", the first {wording.size(len(content))} of what is selected" if is_cut else ""
            self._call(self.app.say, f"saved {path}{more}")

    def _call(self, does: Any, *arguments: Any, **options: Any) -> None:
        if self.app.is_running:
            self.app.call_later(partial(does, *arguments, **options))


def lexer_for(name: str) -> Any:
    """Return the lexer for a file of this name; None for plain text and unknown languages."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(name)
    return None if found is None or found.name == "Text only" else found(stripnl=False, ensurenl=False)


def code_pieces(line: str, lexer: Any) -> list[Piece]:
    """Highlight a sanitised line; each line is parsed by itself, so that every page costs the same."""
    if len(line) > _LONGEST_CODE:
        return [(line, "text")]
    return [(text, _role_of(str(kind))) for kind, text in lexer.get_tokens(line) if text]


_TOKEN_ROLES: tuple[tuple[str, Role], ...] = (
    ("Token.Keyword", "accent"),
    ("Token.Literal.String", "good"),
    ("Token.Literal.Number", "running"),
    ("Token.Comment", "dim"),
    ("Token.Name.Function", "strong"),
    ("Token.Name.Class", "strong"),
    ("Token.Name.Decorator", "invalid"),
    ("Token.Name.Tag", "accent"),
    ("Token.Operator.Word", "accent"),
)


def _role_of(kind: str) -> Role:
    return next((role for beginning, role in _TOKEN_ROLES if kind.startswith(beginning)), "text")


def _hits(page: Page) -> str:
    hits = page.hits or 0
    total = f"{hits:,}{'+' if page.counting else ''}"
    if page.hit_number is None:
        what = "line" if page.filtered else "hit"
        return f"{total} {what}s" if page.counting else plural(hits, what)
    return f"hit {page.hit_number:,} of {total}"


def _harmless(content: bytes) -> str:
    return "\n".join(plain_lines(content.decode("utf-8", "replace").removesuffix("\n")))
