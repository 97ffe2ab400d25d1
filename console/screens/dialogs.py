"""Dialogs over a screen: help, a yes-or-no question, correcting a failure's class, rebinding a key."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Input

from console import wording
from console.actions import runs
from console.actions.action import NotApplicable, Question
from console.tui.keys import TABLE, Context, bindings, hidden_by, key_name, key_names, rebound_keys
from console.tui.painting import Piece, Pieces, foreign
from console.tui.screen import fit_to_terminal
from console.tui.theme import Role, Signs
from console.tui.widgets.inputs import Prompt, TypingLine
from console.tui.widgets.painted import Painted
from console.tui.widgets.run_cell import outcome_role, outcome_sign
from console.views.lists import words_accept
from foundation.problems import Problem
from state.lifecycle import FailureClass, Outcome

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from state.records import Run

# The cells around the lines of a question: the screen's margin, the box's border and padding.
_AROUND = 16
_WIDEST = 82
_WIDEST_NAME = 46
_MOST_ITEMS = 8
# The greatest share of the screen (in percent) for a box, the rows of its frame, and the rows of the answers.
_BOX_SHARE, _BOX_FRAME, _ANSWERS = 90, 4, 2
_CLASS_WIDTH = max(len(words) for words in wording.FAILURE_WORDS.values())
# How wide the help is, what of that is around its lines, and how much room the names of keys and signs have.
_WIDEST_HELP = 84
_AROUND_HELP = 10
_NAMES_WIDTH = 16
# Titles of contexts whose names are not clear enough.
_TITLES: dict[str, str] = {
    "app": "Everywhere",
    "list": "In lists",
    "matrix": "In the matrix",
    "log": "In a log",
    "field": "In a field",
    "submissions": "On its submissions",
    "merged": "Merged logs",
    "dataset": "One dataset",
    "experiment": "One experiment",
    "compare": "Comparing",
    "diff": "Comparing code",
    "export": "Exporting",
    "help": "In this help",
    "confirm": "Confirmation",
    "classify": "Correcting a class",
}
_MEANS = {
    FailureClass.INFRASTRUCTURE: "not the agent's fault; relaunching is free",
    FailureClass.TIMEOUT: "the time ran out before a valid submission",
    FailureClass.MEMORY: "the agent used more memory than its limit",
    FailureClass.DISK: "the agent used more disk space than its limit",
    FailureClass.BUDGET: "its budget of model calls was used up",
    FailureClass.CRASH: "the agent's own program failed",
    FailureClass.UNKNOWN: "not known yet",
}


class Dialog(ModalScreen[ScreenResultType]):
    """A box with a title, a hint below, and lines."""

    BOX: ClassVar[type[Widget]] = Vertical
    app: ConsoleApp

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self._title = title
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Compose the box."""
        yield Painted(id="tiny")
        with self.BOX(id="box") as box:
            box.border_title = self._title
            box.border_subtitle = self._hint
            yield Painted(id="lines")
            yield from self.fields()

    def on_mount(self) -> None:
        """Draw the lines."""
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Ask a terminal that is too small to grow."""
        fit_to_terminal(self, event.size)

    def draw(self) -> None:
        """Draw the lines."""
        self.query_one("#lines", Painted).show(*self.lines())

    def lines(self) -> Iterable[Pieces]:
        """Return the lines."""
        raise NotImplementedError

    def fields(self) -> Iterable[Widget]:
        """Return the input fields below the lines."""
        return ()


class HelpScreen(Dialog[None]):
    """All keys that work on the screen below, and the meanings of signs; they can be searched."""

    CONTEXTS: ClassVar[tuple[Context, ...]] = ("help",)
    BINDINGS = bindings("help")
    BOX = VerticalScroll

    def __init__(self, contexts: tuple[Context, ...]) -> None:
        super().__init__("Keys and signs")
        self._contexts = contexts
        self._words = ""

    def compose(self) -> ComposeResult:
        """Compose the box and, below it, where the search is typed."""
        keys = key_names(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)
        self._hint = f"{keys('help.search')} searches, {keys('help.close')} closes"
        yield from super().compose()
        yield Prompt("/", "words of what a key does or a sign means", id="search", done="search")

    def lines(self) -> Iterable[Pieces]:
        """Return the keys by context, then the signs, filtered by the search."""
        app = self.app
        # By title: the lines, each with further words by which it is found.
        parts: list[tuple[str, list[tuple[str, Pieces]]]] = []
        for context in (*self._contexts, "app"):
            found: list[tuple[str, Pieces]] = []
            for key in app.settings.keys.of(context):
                names = " ".join(key_name(name, ascii_only=app.settings.ascii_only) for name in key.keys)
                role: Role = "faint" if key.changes and app.readonly else "text"
                found.append((key.label, ((f"  {names:<{_NAMES_WIDTH}} ", "accent"), (key.help, role))))
            parts.append((context_title(context), found))
        signs: list[tuple[str, Pieces]] = [
            ("", ((f"  {sign:<{_NAMES_WIDTH}} ", role), (meaning, "text")))
            for sign, role, meaning in sign_meanings(app.signs)
        ]
        room = min(_WIDEST_HELP, 9 * app.size.width // 10) - _AROUND_HELP - _NAMES_WIDTH
        lines: list[Pieces] = []
        if self._words:
            lines += [(("/ ", "accent"), (foreign(self._words, 60).rstrip(), "text"))]
        for title, found in (*parts, ("Signs", signs)):
            kept = [
                line
                for words, line in found
                if words_accept(self._words, title, words, *(text for text, _role in line))
            ]
            if kept:
                wrapped = [part for line in kept for part in _wrapped_help(line, max(10, room))]
                lines += [(), ((title, "strong"),), *wrapped]
        if self._words and len(lines) == 1:
            lines += [(), (("  no key and no sign has these words", "dim"),)]
        return lines if self._words else lines[1:]

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Search while typing."""
        self._words = message.value.strip()
        self.draw()

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Keep what was found."""
        self.on_prompt_changed(message)
        self.query_one("#box").focus()

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Take back what was typed."""
        self.on_prompt_done(Prompt.Done(message.prompt, message.value))

    def action_search(self) -> None:
        """Type what to search for."""
        self.query_one(Prompt).open(self._words)

    def action_box(self, scroll: str) -> None:
        """Scroll the box."""
        getattr(self.query_one("#box"), scroll)(animate=False)

    def action_close(self) -> None:
        """Show everything again after a search, or close."""
        if self._words:
            self._words = ""
            self.draw()
        else:
            self.dismiss()


def _wrapped_help(line: Pieces, room: int) -> list[Pieces]:
    """Return a name and its meaning, wrapped to several lines if needed."""
    name, (meaning, role) = line
    first, *more = textwrap.wrap(meaning, room)
    return [(name, (first, role)), *(((" " * len(name[0]), "text"), (part, role)) for part in more)]


def sign_meanings(signs: Signs) -> list[tuple[str, Role, str]]:
    """Return all signs with their roles and meanings."""
    return [
        *(
            (outcome_sign(outcome, signs), outcome_role(outcome), wording.OUTCOME_WORDS[outcome])
            for outcome in Outcome
        ),
        (
            signs.running,
            "running",
            "starting, running, or being collected or graded; a dataset: being prepared",
        ),
        ("[S]", "running", f"what a live run would get now, here silver; [{signs.dot}]: nothing graded yet"),
        (signs.queued, "dim", "queued, or waiting"),
        (signs.failed, "bad", "failed; behind it the class of the failure:"),
        *(
            (
                f"{signs.failed} {wording.FAILURE_LETTERS[kind]}",
                "bad",
                f"{wording.FAILURE_WORDS[kind]}: {means}",
            )
            for kind, means in _MEANS.items()
        ),
        (signs.stopped, "dim", "stopped"),
        (signs.paused, "warn", "a paused sweep: no more runs start"),
        (signs.done, "good", "finished, prepared, or done"),
        (
            f"0.5{signs.reroll}",
            "text",
            "re-rolled: relaunched after it finished or failed by the agent's own doing",
        ),
        (signs.marked, "accent", "marked: actions are about what is marked"),
        (signs.noted, "accent", "with a note or tags"),
        (signs.cursor, "accent", "the cursor"),
        ("?", "warn", "a dataset whose rules nobody has accepted"),
        (f"{signs.invalid} ", "warn", "a dataset that Kaggle no longer has"),
        (f"{signs.dot} ", "dim", "a dataset that is not there, or a step that is not needed"),
        (wording.UNKNOWN, "dim", "not known"),
        (f"{signs.up} {signs.down}", "accent", "the column that sorts, smallest or largest first"),
        (signs.pointer, "text", "where a score stands among the cut-offs for medals"),
    ]


def context_title(context: str) -> str:
    """Return the title of a context of keys."""
    return _TITLES.get(context, context.capitalize())


class ConfirmScreen(Dialog[bool]):
    """Asks for confirmation of an action that can't be undone; Enter takes the chosen answer, at first no."""

    BINDINGS = bindings("confirm")

    def __init__(self, title: str, lines: tuple[Pieces, ...], yes: str) -> None:
        super().__init__(title)
        self._lines = lines
        self._yes = yes
        self._chosen = False

    def lines(self) -> Iterable[Pieces]:
        """Return what the action changes, and the answers."""
        no = self._answer("confirm.no", "no, leave it", chosen=not self._chosen)
        yes = self._answer("confirm.yes", self._yes, chosen=self._chosen)
        return (*self._lines, (), (*no, ("      ", "text"), *yes))

    def _answer(self, key: str, text: str, *, chosen: bool) -> Pieces:
        keys = key_names(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)
        sign: Piece = (self.app.signs.cursor, "accent") if chosen else (" ", "text")
        return (sign, (f" {keys(key)} ", "accent"), (text, "strong" if chosen else "dim"))

    def action_answer(self, answer: bool) -> None:
        """Answer and go back."""
        self.dismiss(answer)

    def action_choose(self) -> None:
        """Choose the other answer."""
        self._chosen = not self._chosen
        self.draw()

    def action_take(self) -> None:
        """Give the chosen answer."""
        self.dismiss(self._chosen)


def question_lines(question: Question, screen: Size, *, below: int = _ANSWERS) -> tuple[Pieces, ...]:
    """Return the lines of a question about what an action changes; `below` lines of the box come after them.

    The list of affected things is cut so that everything else, above all warnings, is visible without scrolling.
    """
    room = _BOX_SHARE * screen.height // 100 - _BOX_FRAME - below
    tried = (_question_lines(question, screen.width, most) for most in range(_MOST_ITEMS, 0, -1))
    return next((lines for lines in tried if len(lines) <= room), _question_lines(question, screen.width, 0))


def _question_lines(question: Question, screen_width: int, most: int) -> tuple[Pieces, ...]:
    width = min(screen_width - _AROUND, _WIDEST)
    details = [len(detail) for affected in question.affected for _name, detail in affected.items]
    names = min(_WIDEST_NAME, width - max(details, default=0) - 4)
    lines: list[Pieces] = []
    for affected in question.affected:
        role: Role = "warn" if affected.is_warning else "dim"
        lines += [()] if lines else []
        if affected.heading:
            lines.append(((affected.heading, "warn" if affected.is_warning else "strong"),))
        shown = affected.items[: most if most or affected.heading else 1]
        for name, detail in shown:
            lines.append(((f"  {foreign(name, names)}  ", "text"), (detail, "dim")))
        if len(affected.items) > len(shown) and shown:
            lines.append(((f"  and {len(affected.items) - len(shown)} more", "dim"),))
        lines += [((text, role),) for text in textwrap.wrap(affected.note, max(20, width))]
    return tuple(lines)


def open_classify(app: ConsoleApp, chosen: Sequence[Run]) -> None:
    """Open the dialog for those runs that have failed, or show a message if none has."""
    try:
        question, failed = runs.classify_question(chosen)
    except NotApplicable as problem:
        app.say(str(problem))
    else:
        app.push_screen(ClassifyScreen(question, failed))


class ClassifyScreen(Dialog[None]):
    """Asks for the right failure class, and for a note that is kept with the attempts."""

    BINDINGS = bindings("classify")

    def __init__(self, question: Question, failed: Sequence[Run]) -> None:
        super().__init__(question.title)
        self._question = question
        self._failed = failed
        self._chosen = list(FailureClass).index(failed[0].failure_class or FailureClass.UNKNOWN)

    def compose(self) -> ComposeResult:
        """Compose the box with a hint about its keys."""
        keys = key_names(self.app.settings.keys, ascii_only=self.app.settings.ascii_only)
        up, down, leave = (keys(f"classify.{name}") for name in ("up", "down", "leave"))
        enter = key_name("enter", ascii_only=self.app.settings.ascii_only)
        self._hint = f"{up} {down} choose, {enter} confirms, {leave} cancels"
        yield from super().compose()

    def fields(self) -> Iterable[Widget]:
        """Return the field for the note."""
        yield TypingLine(placeholder="why (kept with the attempt)", id="note")

    def lines(self) -> Iterable[Pieces]:
        """Return the affected runs and the choices."""
        # The classes, an empty line before and after them, and the note.
        below = len(FailureClass) + 3
        yield from question_lines(self._question, self.app.size, below=below)
        yield ()
        for place, kind in enumerate(FailureClass):
            chosen = place == self._chosen
            # Without the letters that stand for classes elsewhere: here they would look like keys.
            words = f"{wording.FAILURE_WORDS[kind]:<{_CLASS_WIDTH}}  "
            yield (
                (f"{self.app.signs.cursor if chosen else ' '} ", "accent"),
                (words, "strong" if chosen else "text"),
                (_MEANS[kind], "dim"),
            )
        yield ()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Correct the class."""
        event.stop()
        self.dismiss()
        self.app.act(runs.classify, self._failed, list(FailureClass)[self._chosen], event.value.strip())

    def action_choose(self, step: int) -> None:
        """Choose another class."""
        self._chosen = (self._chosen + step) % len(FailureClass)
        self.draw()

    def action_leave(self) -> None:
        """Close the dialog without a change."""
        self.dismiss()


class RebindScreen(Dialog[str | None]):
    """Waits for a key to bind; a key that hides another action must be pressed twice."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key for {name}")
        self._key = next(key for key in TABLE if key.id == name)
        self._warning = ""
        self._pressed = ""

    def lines(self) -> Iterable[Pieces]:
        """Return the action, and the problem of the key that was pressed."""
        now = " ".join(key_name(key) for key in self.app.settings.keys.named(self._key.id).keys)
        leave = key_name("escape", ascii_only=self.app.settings.ascii_only)
        warning: tuple[Pieces, ...] = (((self._warning, "warn"),), ()) if self._warning else ()
        return (
            ((self._key.help, "strong"),),
            (("now ", "dim"), (now, "accent")),
            (),
            *warning,
            (("press the new key", "text"), (f"   {leave} cancels", "dim")),
        )

    def on_key(self, event: events.Key) -> None:
        """Bind the pressed key, or show why it can't be bound."""
        event.stop()
        event.prevent_default()
        if event.key == "escape":
            self.dismiss(None)
            return
        known = {key.id: ",".join(key.keys) for key in self.app.settings.keys.keys}
        try:
            table = rebound_keys(known | {self._key.id: event.key})
        except Problem as problem:
            self._warning, self._pressed = problem.what, ""
        else:
            hidden = hidden_by(table, self._key.id)
            if not hidden or self._pressed == event.key:
                self.dismiss(event.key)
                return
            self._pressed = event.key
            name = key_name(event.key, ascii_only=self.app.settings.ascii_only)
            self._warning = f"{name} would hide '{', '.join(hidden)}' there: press it again to use it anyway"
        self.draw()
