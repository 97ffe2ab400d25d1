"""The `:` line: an input line for one command below a list of suggestions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.console.app.suggestions import Suggestion, suggestions, typed_path
from mlebench_console.console.fields import NounField
from mlebench_console.console.roles import Drawing, Pieces
from mlebench_console.console.tui.widgets.blocks import Block, wrapped
from mlebench_console.console.tui.widgets.inputs import FilePaths, TypingLine
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.foundation.problems import Problem

if TYPE_CHECKING:
    from textual.worker import WorkType

    from mlebench_console.console.app.app import ConsoleApp

_MOST_LINES = 24
_MOST_PROBLEM_LINES = 3
# How wide the list is at most, so that what belongs together is near.
_WIDEST_LIST = 130


def _side(each: Suggestion, _drawing: Drawing) -> Pieces:
    return ((each.subject, "text"),) if each.subject else ((each.key, "dim"),)


_COLUMNS = (
    NounField[Suggestion](
        "shown", lambda each, _: ((each.shown, "accent" if each.completed else "text"),), 24, grows=34
    ),
    NounField[Suggestion]("about", lambda each, _: each.about, 30, grows=200, role="dim"),
    NounField[Suggestion]("side", _side, 18, grows=60, drop=1),
)


class CommandLine(Widget):
    """An input line for one command below a list of suggestions; ↑ and ↓ choose, Tab completes, Esc closes it."""

    DEFAULT_CSS = """
    CommandLine { height: auto; dock: bottom; layout: vertical; layer: overlay; }
    CommandLine > #candidates { height: auto; background: $surface; }
    CommandLine > Horizontal { height: 1; }
    CommandLine .prompt-sign { width: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave", show=False),
        Binding("tab", "complete", "complete", show=False),
        Binding("down", "choose(1)", "next", show=False),
        Binding("up", "choose(-1)", "previous", show=False),
    ]
    app: ConsoleApp
    _last = ""

    def __init__(self, text: str = "") -> None:
        super().__init__(id="command")
        self._text = text
        self._found: list[Suggestion] = []
        # The index of the suggestion chosen with the arrow keys.
        self._chosen: int | None = None
        self._problem = ""
        self._paths = FilePaths()
        self._focused_before: Widget | None = None

    def compose(self) -> ComposeResult:
        """Yield the list, the sign and the field."""
        yield Painted(id="candidates")
        with Horizontal():
            yield Painted(((" : ", "accent"),), classes="prompt-sign")
            yield TypingLine(self._text, select_on_focus=False)

    def on_mount(self) -> None:
        """Focus the field and show the first suggestions."""
        self._focused_before = self.screen.focused
        self.query_one(Input).focus()
        self._suggest(self._text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the suggestions for the new text."""
        event.stop()
        self._problem = ""
        self._suggest(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Run the chosen suggestion or the typed command; a problem is shown here, so that it can be corrected."""
        event.stop()
        text = event.value.strip()
        if self._chosen is not None:
            taken = self._found[self._chosen]
            if taken.completed is not None and not taken.is_whole:
                self._type(taken.completed)
                return
            text = (taken.completed or text).strip()
        if not text:
            self._close()
            return
        CommandLine._last = text
        try:
            self.app.commands.carry_out(self.app, text)
        except Problem as problem:
            self._problem = problem.in_one_line()
            self._type(text)
            self._draw()
        else:
            self._close()

    def on_input_blurred(self, event: Input.Blurred) -> None:
        """Close the command line when it loses the focus."""
        event.stop()
        self.remove()

    def on_resize(self) -> None:
        """Redraw for the new width."""
        self._draw()

    def action_leave(self) -> None:
        """Close the command line."""
        self._close()

    def _close(self) -> None:
        """Remove the line; the focus goes back where it was, as Textual would give it to a field nearby."""
        if self.query_one(Input).has_focus:
            self.screen.set_focus(self._focused_before)
        self.remove()

    def action_complete(self) -> None:
        """Accept the chosen suggestion, or else the first one that completes the text."""
        places = [self._chosen] if self._chosen is not None else range(len(self._found))
        taken = next((self._found[place] for place in places if self._found[place].completed), None)
        if taken is not None and taken.completed is not None:
            self._type(taken.completed if taken.goes_on else f"{taken.completed} ")

    def action_choose(self, step: int) -> None:
        """Choose the next or previous suggestion; ↑ on an empty line brings back the last command."""
        field = self.query_one(Input)
        if step < 0 and not field.value and self._chosen is None and CommandLine._last:
            self._type(CommandLine._last)
            return
        can = [place for place, each in enumerate(self._found) if each.completed is not None]
        if not can:
            return
        if self._chosen in can:
            self._chosen = can[(can.index(self._chosen) + step) % len(can)]
        else:
            self._chosen = can[0 if step > 0 else -1]
        self._draw()

    def _type(self, text: str) -> None:
        field = self.query_one(Input)
        field.value = text
        field.action_end()

    def _suggest(self, text: str) -> None:
        self._found, self._chosen = suggestions(self.app, text), None
        typed = typed_path(self.app, text)
        if typed:
            suggest: WorkType[None] = partial(self._suggest_path, text, typed)
            self.run_worker(suggest, exclusive=True)
        self._draw()

    async def _suggest_path(self, text: str, typed: str) -> None:
        """Add the path completed from the disk, unless the text has changed meanwhile."""
        path = await self._paths.get_suggestion(typed)
        if path and self.query_one(Input).value == text:
            completed = text[: -len(typed)] + path
            self._found.append(
                Suggestion(path, "on this disk", completed=completed, goes_on=path.endswith("/"))
            )
            self._draw()

    def _draw(self) -> None:
        for shown in self.query("#candidates").results(Painted):
            shown.show(*self._lines())

    def _lines(self) -> Iterator[Block]:
        """Return the visible part of the list around the chosen suggestion, and the last problem."""
        signs, size = self.app.signs, self.screen.size
        room = max(2, min(_MOST_LINES, size.height // 2 - 2))
        first = max(0, min((self._chosen or 0) - room // 2, len(self._found) - room))
        # Below a problem, the line that says that nothing matches is not needed.
        shown = [each for each in self._found[first : first + room] if each.shown or not self._problem]
        more = len(self._found) - len(shown)
        yield ((signs.rule * size.width, "faint"),)
        table = Table(_COLUMNS, shown, self.app.drawing.within(min(size.width, _WIDEST_LIST)))
        for place, each in enumerate(shown, start=first):
            is_chosen = place == self._chosen
            (_margin, *pieces) = table.line(each).pieces
            roles = [(text, "strong" if is_chosen else role) for text, role in pieces]
            yield ((f"{signs.cursor if is_chosen else ' '} ", "accent"), *roles)
        if self._problem:
            yield wrapped(self._problem, "bad", ("  ", "text"), most=_MOST_PROBLEM_LINES)
        elif more > 0:
            yield ((f"  {more} more; type to narrow, up and down choose, tab completes", "dim"),)
