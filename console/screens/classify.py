"""The form that corrects the class of failures: which class is right, and a note that is kept with the attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from console import wording
from console.actions import runs
from console.actions.action import NotApplicable, Question
from console.screens.confirm import question_lines
from console.tui.keys import bindings
from console.tui.painting import Pieces
from console.tui.widgets.inputs import TypingLine
from console.tui.widgets.painted import Painted
from state.lifecycle import FailureClass

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from state.records import Run

_MEANS = {
    FailureClass.INFRASTRUCTURE: "not the agent's fault; relaunching is free",
    FailureClass.TIMEOUT: "the time ran out before a valid submission",
    FailureClass.MEMORY: "the agent used more memory than its limit",
    FailureClass.DISK: "the agent used more disk space than its limit",
    FailureClass.CRASH: "the agent's own program failed",
    FailureClass.UNKNOWN: "not known yet",
}


def open_classify(app: ConsoleApp, chosen: Sequence[Run]) -> None:
    """Open the form for those of the runs that have failed, or say that none has."""
    try:
        question, failed = runs.classify_question(chosen)
    except NotApplicable as problem:
        app.say(str(problem))
    else:
        app.push_screen(ClassifyScreen(question, failed))


class ClassifyScreen(ModalScreen[None]):
    """A choice and a note; Esc leaves everything as it was."""

    BINDINGS = bindings("classify")
    app: ConsoleApp

    def __init__(self, question: Question, failed: Sequence[Run]) -> None:
        super().__init__()
        self._question = question
        self._failed = failed
        self._chosen = list(FailureClass).index(failed[0].failure_class or FailureClass.UNKNOWN)

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(id="box") as box:
            box.border_title = self._question.title
            box.border_subtitle = "Up and Down choose, Enter confirms, Esc cancels"
            yield Painted(id="question")
            yield TypingLine(placeholder="why (kept with the attempt)", id="note")

    def on_mount(self) -> None:
        """Ask."""
        self.query_one(Input).focus()
        self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Correct the class."""
        event.stop()
        self.dismiss()
        self.app.act(runs.classify, self._failed, list(FailureClass)[self._chosen], event.value.strip())

    def action_choose(self, step: int) -> None:
        """Choose another class."""
        self._chosen = (self._chosen + step) % len(FailureClass)
        self._draw()

    def action_leave(self) -> None:
        """Leave everything as it was."""
        self.dismiss()

    def _draw(self) -> None:
        sign = self.app.signs.cursor
        choices: list[Pieces] = [
            (
                (f"{sign if place == self._chosen else ' '} ", "accent"),
                (
                    f"{wording.FAILURE_LETTERS[kind]} {wording.FAILURE_WORDS[kind]:<18}",
                    "strong" if place == self._chosen else "text",
                ),
                (_MEANS[kind], "dim"),
            )
            for place, kind in enumerate(FailureClass)
        ]
        lines = question_lines(self._question, self.app.size.width)
        self.query_one("#question", Painted).show(*lines, (), *choices, ())
