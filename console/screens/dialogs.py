"""Dialogs over a screen: help, a question, correcting a failure's class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, chain, zip_longest
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
from mlebench_console.console.lists import words_accept
from mlebench_console.console.logs.reader import last_lines
from mlebench_console.console.nouns.need import IDLE_LETTER, LATE_LETTER, UNGRADABLE_LETTER
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import cells_of, foreign, foreign_lines, width_of
from mlebench_console.console.roles import Piece, Pieces, Role, Signs
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.keys import Context, bindings
from mlebench_console.console.tui.screen import fit_to_terminal
from mlebench_console.console.tui.widgets.inputs import Prompt, TypingLine
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.engine.needs.causes import recorded_cause
from mlebench_console.foundation.text import plural
from mlebench_console.state.lifecycle import FailureClass, Outcome

if TYPE_CHECKING:
    from mlebench_console.console.tui.base_app import BaseApp
    from mlebench_console.console.views.run import RunFacts
    from mlebench_console.state.records import Run

# The cells of a box's border and padding, and the widest lines of a question.
_AROUND = 6
_WIDEST = 86
_WIDEST_NAME = 46
_MOST_ITEMS = 8
# The greatest share of the screen (in percent) for a box, the rows of its frame, and the rows of the answers.
_BOX_SHARE, _BOX_FRAME, _ANSWERS = 90, 4, 2
# The width of the box for classes, what of it is around its lines, and how many lines of evidence it shows.
_WIDEST_CLASSIFY, _AROUND_EVIDENCE = 120, 6
_FEWEST_EVIDENCE, _MOST_EVIDENCE = 4, 16
_CLASS_WIDTH = max(len(words) for words in wording.FAILURE_WORDS.values())
# How wide the help is, what of that is around its lines, and how much room the names of keys and signs have.
_WIDEST_HELP, _WIDEST_WIDE_HELP = 84, 180
_AROUND_HELP = 10
_NAMES_WIDTH = 12
# From this width of the terminal on the help has two columns.
_WIDE_TERMINAL = 180
# The cells around the names of keys and signs, and how many lines of a block are not divided from its title.
_INDENT, _LEAST_OF_BLOCK = 3, 4
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
        keys = self.app.drawing.keys
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
                names = " ".join(app.settings.name_of(name) for name in key.keys)
                role: Role = "faint" if key.changes and app.readonly else "text"
                found.append((key.label, ((f"  {names:<{_NAMES_WIDTH}} ", "accent"), (key.help, role))))
            parts.append((context_title(context), found))
        signs: list[tuple[str, Pieces]] = [
            ("", ((f"  {sign:<{_NAMES_WIDTH}} ", role), (meaning, "text")))
            for sign, role, meaning in sign_meanings(app.signs)
        ]
        is_wide = app.size.width >= _WIDE_TERMINAL
        self.set_class(is_wide, "-wide")
        whole = min(_WIDEST_WIDE_HELP if is_wide else _WIDEST_HELP, 9 * app.size.width // 10) - _AROUND_HELP
        column = whole // (1 + is_wide)
        room = column - _NAMES_WIDTH - _INDENT
        blocks: list[list[Pieces]] = []
        for title, found in (*parts, ("Signs", signs)):
            kept = [
                line
                for words, line in found
                if words_accept(self._words, title, words, *(text for text, _role in line))
            ]
            if kept:
                wrapped = [part for line in kept for part in _wrapped_help(line, max(10, room))]
                blocks.append([((title, "strong"),), *wrapped, ()])
        if not blocks:
            blocks.append([(("  no key and no sign has these words", "dim"),)])
        lines: list[Pieces] = []
        if self._words:
            lines += [(("/ ", "accent"), (foreign(self._words, 60).rstrip(), "text")), ()]
        return [*lines, *(_in_two_columns(blocks, column) if is_wide else chain(*blocks))]

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


def _in_two_columns(blocks: Sequence[Sequence[Pieces]], width: int) -> Iterable[Pieces]:
    """Put blocks of lines beside each other in two columns of equal height, of which one may divide a block."""
    lines = list(chain(*blocks))
    half = (len(lines) + 1) // 2
    begins = list(accumulate(map(len, blocks), initial=0))
    # A title stays with the lines below it.
    half = next((begin for begin in begins if begin < half < begin + _LEAST_OF_BLOCK), half)
    left, right = lines[:half], lines[half:]
    if half not in begins:
        divided = max(place for place, begin in enumerate(begins) if begin < half)
        right.insert(0, (*blocks[divided][0], (" continued", "dim")))
    for one, other in zip_longest(left, right, fillvalue=()):
        yield (*one, (" " * max(1, width - width_of(one)), "text"), *other)


def _wrapped_help(line: Pieces, room: int) -> list[Pieces]:
    """Return a name and its meaning, wrapped to several lines if needed."""
    name, (meaning, role) = line
    first, *more = foreign_lines(meaning, room)
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

    def __init__(self, title: str, lines: tuple[Pieces, ...], yes: str, free_part: str = "") -> None:
        super().__init__(title)
        self._lines = lines
        self._answers = {"no": "no, leave it", **({"free": free_part} if free_part else {}), "yes": yes}
        self._chosen = "no"

    @classmethod
    def of(cls, question: Question, size: Size, free_part: str = "") -> ConfirmScreen:
        """Return the dialog for the question of an action, drawn for a size of the terminal."""
        lines = question_lines(question, size, below=_ANSWERS + 2 * bool(free_part))
        return cls(question.title, lines, question.yes, free_part)

    def lines(self) -> Iterable[Pieces]:
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
        return (*self._lines, (), *answers)

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


def question_lines(question: Question, screen: Size, *, below: int = _ANSWERS) -> tuple[Pieces, ...]:
    """Return the lines of a question about what an action changes; `below` lines of the box come after them.

    The list of affected things is cut so that everything else, above all warnings, is visible without scrolling.
    """
    room = _BOX_SHARE * screen.height // 100 - _BOX_FRAME - below
    tried = (_question_lines(question, screen.width, most) for most in range(_MOST_ITEMS, 0, -1))
    return next((lines for lines in tried if len(lines) <= room), _question_lines(question, screen.width, 0))


def question_width(screen_width: int) -> int:
    """Return how wide the lines of a question may be on a screen."""
    return min(_BOX_SHARE * screen_width // 100 - _AROUND, _WIDEST)


def _question_lines(question: Question, screen_width: int, most: int) -> tuple[Pieces, ...]:
    width = question_width(screen_width)
    items = [item for affected in question.affected for item in affected.items]
    longest, details = (max((len(item[place]) for item in items), default=0) for place in (0, 1))
    # Names may take half of the width before a long detail is cut.
    names = min(_WIDEST_NAME, longest, max(width // 2, width - details - 4))
    lines: list[Pieces] = []
    for affected in question.affected:
        role: Role = "warn" if affected.is_warning else "dim"
        lines += [()] if lines else []
        if affected.heading:
            lines.append(((affected.heading, "warn" if affected.is_warning else "strong"),))
        shown = affected.items[: most if most or affected.heading else 1]
        for name, detail in shown:
            room = width - names - 4
            lines.append(((f"  {foreign(name, names)}  ", "text"), (foreign(detail, room).rstrip(), "dim")))
        if len(affected.items) > len(shown) and shown:
            lines.append(((f"  and {len(affected.items) - len(shown)} more", "dim"),))
        lines += [((text, role),) for text in foreign_lines(affected.note, width)]
    return tuple(lines)


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

    def lines(self) -> Iterable[Pieces]:
        """Return the affected runs, their causes, how the first one ended, and the choices."""
        width, height = (_BOX_SHARE * cells // 100 for cells in self.app.size)
        width = min(width, _WIDEST_CLASSIFY) - _AROUND_EVIDENCE
        # The classes, an empty line before and after them, and the note.
        room = height - _BOX_FRAME - len(FailureClass) - 3
        yield from self._evidence(width, room)
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

    def _evidence(self, width: int, room: int) -> list[Pieces]:
        """Return what is known of the failures: by cause the number of runs, then of the first run its last lines."""
        first = self._failed[0]
        causes = Counter(
            (wording.failure(run), recorded_cause(run)[1] or run.failure_text) for run in self._failed
        ).most_common()
        classes = max(len(words) for (words, _cause), _count in causes)
        ellipsis = self.app.signs.ellipsis
        before = "the first, " if len(self._failed) > 1 else ""
        room_of_name = max(16, width - len(f"{before} seed {first.seed}  {self._ended}"))
        competition = foreign(first.competition_id, room_of_name, ellipsis=ellipsis).rstrip()
        name: Piece = (f"{competition} seed {first.seed}", "strong")
        lines: list[Pieces] = []
        if len(self._failed) > 1:
            shown = causes[: max(1, room - _FEWEST_EVIDENCE)]
            for (words, cause), count in shown:
                text = f"{count:>4,}{self.app.signs.times}  {words:<{classes}}  {cause}"
                text = foreign(text, width, ellipsis=ellipsis)
                lines.append(((text.rstrip(), "text"),))
            if len(causes) > len(shown):
                lines.append(((f"      and {plural(len(causes) - len(shown), 'other cause')}", "dim"),))
            lines.append(((before, "dim"), name, (f"  {self._ended}", "dim")))
        else:
            lines.append((name, (f"  {self._ended}", "dim")))
            text = plain(first.failure_text.replace("\n", " "), limit=2 * width)
            lines += [((part, "bad"),) for part in cells_of(text, width)[:2]]
        left = max(0, min(room - len(lines), _MOST_EVIDENCE))
        printed = self._printed[-left:] if left else ()
        return lines + [((f"  {foreign(text, width - 2).rstrip()}", "dim"),) for text in printed]

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
