"""Dialogs over a screen: help, a question, correcting a failure's class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.console import wording
from mlebench_console.console.actions import run as run_actions
from mlebench_console.console.actions.action import NotApplicable, Question
from mlebench_console.console.fields import REST, NounField
from mlebench_console.console.lists import words_accept
from mlebench_console.console.logs.reader import last_lines
from mlebench_console.console.nouns.need import IDLE_LETTER, LATE_LETTER, UNGRADABLE_LETTER
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import Line
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, Signs
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.keys import Context, bindings
from mlebench_console.console.tui.screen import fit_to_terminal
from mlebench_console.console.tui.widgets.blocks import Block, Layout, laid_out, shortened, wrapped
from mlebench_console.console.tui.widgets.inputs import Prompt, TypingLine
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.engine.needs.causes import recorded_cause
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import FailureClass, Outcome

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp
    from mlebench_console.console.views.run import RunFacts
    from mlebench_console.state.records import Run

# The greatest share of the screen (in percent) for a box, the rows of its frame, and the rows of the answers.
_BOX_SHARE, _BOX_FRAME, _ANSWERS = 90, 4, 2
# The most things that a question lists, and the least and greatest width of their names.
_MOST_ITEMS, _NAME_WIDTHS = 8, (16, 46)
_FEWEST_EVIDENCE, _MOST_EVIDENCE = 4, 16
_CLASS_WIDTH = max(len(words) for words in wording.FAILURE_WORDS.values())
# How much room the names of keys and signs have.
_NAMES_WIDTH = 12
# Titles of contexts whose names are not clear enough.
_TITLES: dict[str, str] = {
    "app": "Everywhere",
    "list": "In lists",
    "matrix": "In the matrix",
    "log": "In a log",
    "field": "In a field",
    "submissions": "On its submissions",
    "logs": "Logs of several runs",
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
    FailureClass.UNKNOWN: "it could not be determined",
}


class Dialog(ModalScreen[ScreenResultType]):
    """A box with a title, a hint below, and lines."""

    BOX: ClassVar[type[Widget]] = Vertical
    app: BaseApp

    def __init__(self, title: str, hint: str = "") -> None:
        super().__init__()
        self._title = title
        self._hint = hint

    def compose(self) -> ComposeResult:
        """Compose the box."""
        yield Painted(id="tiny")
        with self.BOX(id="box") as box:
            # Text alone: a title as a string would be parsed for markup.
            box.border_title = Content(plain(self._title))
            box.border_subtitle = Content(plain(self._hint))
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

    def lines(self) -> Iterable[Block]:
        """Return what the box shows."""
        raise NotImplementedError

    def fields(self) -> Iterable[Widget]:
        """Return the widgets below the lines, such as input fields."""
        return ()


class HelpScreen(Dialog[None]):
    """All keys that work on the screen below, and the meanings of signs; they can be searched."""

    CONTEXTS: ClassVar[tuple[Context, ...]] = ("help",)
    BINDINGS = bindings("help")
    BOX = VerticalScroll
    # A wide terminal has room for the signs beside the keys.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (180, "-wide")]  # noqa: RUF012 as the base class declares it

    def __init__(self, contexts: tuple[Context, ...]) -> None:
        super().__init__("Keys and signs")
        self._contexts = contexts
        self._words = ""

    def compose(self) -> ComposeResult:
        """Compose the box and, below it, where the search is typed."""
        keys = self.app.drawing.keys
        self._hint = f"{keys('help.search')} searches, {keys('help.close')} closes"
        yield from super().compose()
        hint = "words of what a key does or a sign means"
        search = self._search
        yield Prompt("/", hint, search, id="search", done="search", typed=search, left=search)

    def fields(self) -> Iterable[Widget]:
        """Return the signs, below the keys or beside them."""
        yield Painted(id="signs")

    def draw(self) -> None:
        """Draw the keys and the signs that the search lets through."""
        keys, signs = list(self._keys()), list(self._signs())
        searched: list[Block] = [(("/ ", "accent"), (self._words, "text")), ()] if self._words else []
        if not keys and not signs:
            searched.append((("  no key and no sign has these words", "dim"),))
        self.query_one("#lines", Painted).show(*searched, *keys)
        self.query_one("#signs", Painted).show(*signs)

    def _keys(self) -> Iterator[Block]:
        """Yield the keys by context."""
        app = self.app
        for context in (*self._contexts, "app"):
            found: list[tuple[Piece, str, Role, str]] = []
            for key in app.settings.keys.of(context):
                names = " ".join(app.settings.name_of(name) for name in key.keys)
                role: Role = "faint" if key.changes and app.readonly else "text"
                found.append(((names, "accent"), key.help, role, key.label))
            yield from self._part(context_title(context), found)

    def _signs(self) -> Iterator[Block]:
        """Yield the signs."""
        meanings = sign_meanings(self.app.signs)
        yield from self._part("Signs", [((sign, role), means, "text", "") for sign, role, means in meanings])

    def _part(self, title: str, entries: Iterable[tuple[Piece, str, Role, str]]) -> Iterator[Block]:
        """Yield those entries under a title that the search lets through: name, meaning, role, further words."""
        kept: list[Block] = [
            wrapped(meaning, role, (f"  {name:<{_NAMES_WIDTH}} ", name_role))
            for (name, name_role), meaning, role, words in entries
            if words_accept(self._words, title, words, name, meaning)
        ]
        if kept:
            yield ((title, "strong"),)
            yield from kept
            yield ()

    def _search(self, words: str) -> None:
        """Show what has these words; called while they are typed."""
        self._words = words.strip()
        self.draw()

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
        (
            f"{signs.running} idle 3h",
            "warn",
            "running, but no output, submission or processor use for that long;"
            f" {IDLE_LETTER} or {signs.running}{IDLE_LETTER} in short",
        ),
        (
            f"{signs.running} no valid",
            "warn",
            f"no valid submission yet, and little time is left; {LATE_LETTER} or {signs.running}{LATE_LETTER} in short",
        ),
        (
            f"{signs.running} no grade",
            "warn",
            f"its submission can't be graded; {UNGRADABLE_LETTER} or {signs.running}{UNGRADABLE_LETTER} in short",
        ),
        (signs.queued, "dim", "queued, or waiting"),
        (signs.failed, "bad", "failed; the letter after it is the class of the failure:"),
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
        (signs.marked, "accent", "marked: actions apply to what is marked"),
        (signs.noted, "accent", "with a note or tags"),
        (signs.cursor, "accent", "the cursor"),
        ("?", "warn", "a dataset whose rules are not accepted on Kaggle yet"),
        (f"{signs.invalid} ", "warn", "a dataset that Kaggle no longer has"),
        (f"{signs.dot} ", "dim", "a dataset that is not prepared, or a step that is not needed"),
        (wording.UNKNOWN, "dim", "not known"),
        (f"{signs.up} {signs.down}", "dim", "beside a score: higher, or lower, is better"),
        (
            f"{signs.ascending} {signs.descending}",
            "accent",
            f"the column that the list is sorted by; {signs.ascending}: in reversed order",
        ),
        (f"{signs.bar_begin}2{signs.bar_segment}", "text", "in a timeline: the second attempt of a run"),
        (signs.bar_chosen * 2, "text", "in a timeline: the chosen attempt"),
        ("+", "text", "in a timeline: several attempts that are too short to be told apart"),
        (f"{signs.now} {signs.expected}", "dim", "in a timeline: now, and the expected end"),
        (signs.pointer, "text", "where a score stands among the cut-offs for medals"),
    ]


def context_title(context: str) -> str:
    """Return the title of a context of keys."""
    return _TITLES.get(context, context.capitalize())


class ConfirmScreen(Dialog[str]):
    """Asks for confirmation of an action that can't be undone; Enter takes the chosen answer, at first no.

    The answer is `no`, `yes` or, if it is offered, `free`.
    """

    BINDINGS = bindings("confirm")

    def __init__(self, title: str, content: Sequence[Block], yes: str, free_part: str = "") -> None:
        super().__init__(title)
        self._content = content
        self._answers = {"no": "no, leave it", **({"free": free_part} if free_part else {}), "yes": yes}
        self._chosen = "no"

    @classmethod
    def of(cls, question: Question, size: Size, free_part: str = "") -> ConfirmScreen:
        """Return the dialog for the question of an action, drawn for a size of the terminal."""
        below = _ANSWERS + 2 * bool(free_part)
        room = _BOX_SHARE * size.height // 100 - _BOX_FRAME - below
        return cls(question.title, [question_block(question, room)], question.yes, free_part)

    def lines(self) -> Iterable[Block]:
        """Return what the action changes, and the answers: two on one line, three below one another."""
        keys = self.app.drawing.keys
        answers: list[Pieces] = []
        for answer, text in self._answers.items():
            is_chosen = answer == self._chosen
            sign: Piece = (self.app.signs.cursor if is_chosen else " ", "accent")
            key: Piece = (f" {keys(f'confirm.{answer}')} ", "accent")
            answers.append((sign, key, (text, "strong" if is_chosen else "text")))
        if len(answers) == 2:
            answers = [(*answers[0], ("      ", "text"), *answers[1])]
        return (*self._content, (), *answers)

    def action_answer(self, answer: str) -> None:
        """Answer and go back."""
        if answer in self._answers:
            self.dismiss(answer)

    def action_choose(self, step: int) -> None:
        """Choose the next or previous answer."""
        known = list(self._answers)
        self._chosen = known[(known.index(self._chosen) + step) % len(known)]
        self.draw()

    def action_take(self) -> None:
        """Give the chosen answer."""
        self.dismiss(self._chosen)


def question_block(question: Question, room: int) -> Layout:
    """Return the question about what an action changes.

    The list of affected things is cut so that everything else, above all warnings, is visible without scrolling.
    """

    def lines(drawing: Drawing) -> Iterable[Block]:
        tried = (laid_out(_asked(question, most), drawing) for most in range(_MOST_ITEMS, -1, -1))
        for found in tried:
            if len(found) <= room:
                break
        return found

    return lines


def _asked(question: Question, most: int) -> Iterator[Block]:
    """Yield the affected things, the first so many of each group; one of a group without a heading."""
    for place, affected in enumerate(question.affected):
        role: Role = "warn" if affected.is_warning else "dim"
        if place:
            yield ()
        if affected.heading:
            yield ((affected.heading, "warn" if affected.is_warning else "strong"),)
        shown = affected.items[: most if most or affected.heading else 1]
        yield partial(_items, question, shown)
        if len(affected.items) > len(shown) and shown:
            yield ((f"  and {len(affected.items) - len(shown)} more", "dim"),)
        yield wrapped(affected.note, role, ("", "text"), most=_MOST_EVIDENCE)


def _items(question: Question, shown: Sequence[tuple[str, str]], drawing: Drawing) -> Iterable[Line]:
    """Draw some of the affected things, in columns of the same widths for all of them."""
    least, greatest = _NAME_WIDTHS
    columns = (
        NounField[tuple[str, str]]("name", lambda item, _: item[0], least, grows=greatest),
        NounField[tuple[str, str]]("detail", lambda item, _: item[1], 10, grows=REST, role="dim"),
    )
    every = [item for affected in question.affected for item in affected.items]
    table = Table(columns, every, drawing)
    return map(table.line, shown)


def open_classify(app: BaseApp, chosen: Sequence[Run]) -> None:
    """Open the dialog for those runs that have failed, or show a message if none has."""
    if app.refuses():
        return
    try:
        question, failed = run_actions.classify_question(chosen)
    except NotApplicable as problem:
        app.say(str(problem))
    else:
        app.push_screen(ClassifyScreen(question, failed))


class ClassifyScreen(Dialog[None]):
    """Asks for the right failure class, with the evidence, and for a note that is kept with the attempts."""

    BINDINGS = bindings("classify")

    def __init__(self, question: Question, failed: Sequence[Run]) -> None:
        super().__init__(question.title)
        self._question = question
        self._failed = failed
        # The class that all of them have; otherwise none is chosen, so that Enter alone changes nothing.
        present = {run.failure_class or FailureClass.UNKNOWN for run in failed}
        self._chosen = list(FailureClass).index(present.pop()) if len(present) == 1 else None
        # How the first of them ended, and the last lines of its log; read after the dialog has opened.
        self._ended = ""
        self._printed: Sequence[str] = ()

    def compose(self) -> ComposeResult:
        """Compose the box with a hint about its keys."""
        keys = self.app.drawing.keys
        up, down, leave = (keys(f"classify.{name}") for name in ("up", "down", "leave"))
        enter = self.app.settings.name_of("enter")
        self._hint = f"{up} {down} choose, {enter} confirms, {leave} cancels"
        yield from super().compose()

    def on_mount(self) -> None:
        """Draw what is known, and read how the first run ended."""
        from mlebench_console.console.views.run import run_facts

        super().on_mount()
        wanted, config_file, now = self._failed[0].id, self.app.places.config_file, self.app.now()
        self.app.read_state(lambda database: run_facts(database, wanted, config_file, now), self._take)

    def fields(self) -> Iterable[Widget]:
        """Return the field for the note."""
        yield TypingLine(placeholder=" why (kept with the attempt)", id="note")

    def lines(self) -> Iterable[Block]:
        """Return the affected runs, their causes, how the first one ended, and the choices."""
        # The classes, an empty line before and after them, and the note.
        room = _BOX_SHARE * self.app.size.height // 100 - _BOX_FRAME - len(FailureClass) - 3
        yield from self._evidence(room)
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

    def _evidence(self, room: int) -> list[Block]:
        """Return what is known of the failures: by cause the number of runs, then of the first run its last lines."""
        first = self._failed[0]
        causes = Counter(
            (wording.failure(run), recorded_cause(run)[1] or run.failure_text) for run in self._failed
        ).most_common()
        classes = max(len(words) for (words, _cause), _count in causes)
        several = len(self._failed) > 1
        lines: list[Block] = []
        if several:
            shown = causes[: max(1, room - _FEWEST_EVIDENCE)]
            for (words, cause), count in shown:
                lines.append(((f"{count:>4,}{self.app.signs.times}  {words:<{classes}}  {cause}", "text"),))
            if len(causes) > len(shown):
                lines.append(((f"      and {plural(len(causes) - len(shown), 'other cause')}", "dim"),))
        lines.append(
            shortened(
                first.competition_id,
                "strong",
                before=((("the first, " if several else ""), "dim"),),
                after=((f" seed {first.seed}", "strong"), (f"  {self._ended}", "dim")),
            )
        )
        if not several:
            lines.append(wrapped(first.failure_text, "bad", ("", "text"), most=2))
        left = max(0, min(room - len(lines) - (not several), _MOST_EVIDENCE))
        printed = self._printed[-left:] if left else ()
        return [*lines, *((("  ", "text"), (text, "dim")) for text in printed)]

    def _take(self, facts: RunFacts) -> None:
        """Show how the first run ended, and read the end of its log."""
        attempt = facts.attempt
        if attempt is None or not self.is_attached:
            return
        # That it exited is in the code, and at 80 columns the name needs the room.
        self._ended = wording.how_it_ended(attempt)
        if attempt.ended_at is not None and attempt.started_at is not None:
            self._ended += f" after {wording.span(attempt.ended_at - attempt.started_at)}"
        self.draw()
        if facts.log is not None:
            self.app.in_background(partial(last_lines, facts.log, _MOST_EVIDENCE), self._take_printed)

    def _take_printed(self, printed: Sequence[str]) -> None:
        if self.is_attached:
            self._printed = [text for text in printed if text.strip()]
            self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Correct the class."""
        event.stop()
        if self._chosen is None:
            self.app.say("choose a class first: they have failed for different reasons")
            return
        self.dismiss()
        self.app.act(
            run_actions.classify, self._failed, list(FailureClass)[self._chosen], event.value.strip()
        )

    def action_choose(self, step: int) -> None:
        """Choose another class."""
        before = self._chosen if self._chosen is not None else min(-step, 0)
        self._chosen = (before + step) % len(FailureClass)
        self.draw()

    def action_leave(self) -> None:
        """Close the dialog without a change."""
        self.dismiss()
