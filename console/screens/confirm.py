"""The question before something that cannot be taken back; it names what is touched, and no is the default."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.tui.keys import bindings, key_name
from console.tui.painting import Piece, Pieces, foreign
from console.tui.theme import Role
from console.tui.widgets.painted import Painted

if TYPE_CHECKING:
    from console.actions.action import Question
    from console.tui.app import ConsoleApp

# What is around the lines of a question: the screen's margin, the box's border and padding.
_AROUND = 16
_WIDEST = 82
_WIDEST_NAME = 46
_MOST_ITEMS = 8


class ConfirmScreen(ModalScreen[bool]):
    """Asks yes or no; Enter means what is chosen, which is no at first."""

    BINDINGS = bindings("confirm")
    app: ConsoleApp

    def __init__(self, title: str, lines: tuple[Pieces, ...], yes: str) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._yes = yes
        self._chosen = False

    def compose(self) -> ComposeResult:
        """One box with the question."""
        with Vertical(id="box") as box:
            box.border_title = self._title
            yield Painted(id="question")

    def on_mount(self) -> None:
        """Ask."""
        self._draw()

    def action_answer(self, answer: bool) -> None:
        """Answer and go back."""
        self.dismiss(answer)

    def action_choose(self) -> None:
        """Choose the other answer."""
        self._chosen = not self._chosen
        self._draw()

    def action_take(self) -> None:
        """Answer what is chosen."""
        self.dismiss(self._chosen)

    def _draw(self) -> None:
        ascii_only = self.app.settings.ascii_only
        keys = {
            key.id: key_name(key.keys[0], ascii_only=ascii_only)
            for key in self.app.settings.keys.of("confirm")
        }
        no: Pieces = (
            (f" {keys['confirm.no']} ", "accent"),
            ("no, leave it", "dim" if self._chosen else "strong"),
        )
        yes: Pieces = (
            (f" {keys['confirm.yes']} ", "accent"),
            (self._yes, "strong" if self._chosen else "dim"),
        )
        sign: Piece = (self.app.signs.cursor, "accent")
        gap: Piece = (" ", "text")
        answers: Pieces = (
            gap if self._chosen else sign,
            *no,
            ("      ", "text"),
            sign if self._chosen else gap,
            *yes,
        )
        self.query_one("#question", Painted).show(*self._lines, (), answers)


def question_lines(question: Question, screen_width: int) -> tuple[Pieces, ...]:
    """What an action changes, as lines of the box that asks about it."""
    width = min(screen_width - _AROUND, _WIDEST)
    details = [len(detail) for affected in question.affected for _name, detail in affected.items]
    names = min(_WIDEST_NAME, width - max(details, default=0) - 4)
    lines: list[Pieces] = []
    for affected in question.affected:
        role: Role = "warn" if affected.is_warning else "dim"
        lines += [()] if lines else []
        if affected.heading:
            lines.append(((affected.heading, "warn" if affected.is_warning else "strong"),))
        for name, detail in affected.items[:_MOST_ITEMS]:
            lines.append(((f"  {foreign(name, names)}  ", "text"), (detail, "dim")))
        if len(affected.items) > _MOST_ITEMS:
            lines.append(((f"  and {len(affected.items) - _MOST_ITEMS} more", "dim"),))
        lines += [((text, role),) for text in textwrap.wrap(affected.note, max(20, width))]
    return tuple(lines)
