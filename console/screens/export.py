"""The export screen: the preview of a row in a format, and its export to the clipboard, a file or a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual.widget import Widget

from mlebench_console.console.nouns.scoreboard import SPLIT_STANDING, split_standings
from mlebench_console.console.pieces import Line, cells_of
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.widgets.blocks import Block, listing, section, shortened, wrapped
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.log_view import MOST_COPIED
from mlebench_console.console.views.scoreboard import Subject, evidence_of
from mlebench_console.engine.places import Places
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.export import (
    Disclosure,
    RowFormat,
    disclose,
    row_text,
    shortcomings,
    write_bundle,
)
from mlebench_console.engine.scoreboard.model import Evidence, Row
from mlebench_console.foundation.files import write_text
from mlebench_console.foundation.problems import Problem, UsageProblem, writing
from mlebench_console.foundation.text import plural
from mlebench_console.state.database import open_for_reading

_NAMES = {
    RowFormat.MARKDOWN: "Markdown",
    RowFormat.CSV: "CSV",
    RowFormat.JSON: "JSON",
    RowFormat.LATEX: "LaTeX",
}
_FORMS = tuple(_NAMES)
# The prompts: sign, hint, and what Enter does.
_PROMPTS = {
    "write": ("file", "a new file, such as row.md", "write it"),
    "bundle": ("folder", "a new folder for reports, mapping, row and checksums", "write it"),
    "agent": ("agent", "the agent's name in the row", "use it"),
    "llms": ("models", "the models that it used", "use it"),
}
# Longer lines, such as lists of competitions, are cut to this many lines in the preview.
_MOST_LINES = 3
# From this height on the figures stand above the row.
_HIGH = 36


@dataclass(frozen=True)
class _MadeRow:
    """A row with its evidence and disclosure, ready to be written."""

    evidence: Evidence
    row: Row
    disclosure: Disclosure

    @property
    def shortcomings(self) -> tuple[tuple[str, str], ...]:
        """What the row lacks before it is ready for the leaderboard."""
        return shortcomings(self.row, self.disclosure)


def _made_row(places: Places, subject: Subject, pad_missing: bool, agent: str, llms: str) -> _MadeRow:
    """Make the row to export; reads every run's latest attempt.

    Raises:
        Problem: the experiment is gone, or damaged.
    """
    with closing(open_for_reading(places.state_dir)) as database:
        evidence = evidence_of(database, subject, places.config_file)
    evidence = evidence.labelled(agent=agent, llms=llms)
    row = row_of(evidence, pad_missing=pad_missing)
    return _MadeRow(evidence, row, disclose(evidence, row))


def _write_row(made: _MadeRow, form: RowFormat, path: Path) -> Path:
    """Write the row to a new file.

    Raises:
        UsageProblem: the file exists, or its folder does not.
        DataProblem: it can't be written.
    """
    if path.exists():
        raise UsageProblem(f"{path} exists already", "", "Name another file.")
    if not path.parent.is_dir():
        raise UsageProblem(f"there is no folder {path.parent}", "", "Name a file in another one.")
    with writing(path):
        write_text(path, row_text(made.row, made.disclosure, form))
    return path


class ExportScreen(ListScreen):
    """The preview of an export; nothing is written until a key is pressed."""

    CONTEXTS = ("export", "list")
    MODE = "board"

    def __init__(self, subject: Subject, *, pad_missing: bool = False) -> None:
        super().__init__()
        self._subject = subject
        self._form = RowFormat.MARKDOWN
        self._pad_missing = pad_missing
        # The operator's additions to the row.
        self._names = {"agent": "", "llms": ""}
        self._made: _MadeRow | Problem | None = None
        # Why the last file could not be written, until it was corrected.
        self._not_written = ""

    def body(self) -> Iterable[Widget]:
        """The choices, the preview."""
        yield from super().body()
        for name, (sign, hint, done) in _PROMPTS.items():
            yield Prompt(sign, hint, partial(self._answer, name), id=name, done=done, left=self._give_up)

    def on_mount(self) -> None:
        """Make the row."""
        self._make()

    def redraw(self) -> None:
        """Draw the choices and the preview."""
        preview = self.line_list
        self.header.show(*self._choices())
        made = self._made
        if not isinstance(made, _MadeRow):
            role: Role = "dim" if made is None else "bad"
            preview.show(((f"  {text}", role),) for text in str(made or "making the row").splitlines())
            return
        lines = self._missing(made.shortcomings)
        if self.size.height >= _HIGH:
            # The row has the figures too, and in a low terminal it should be seen without scrolling.
            lines += [(), section("figures, any medal in %"), _figures(made.row)]
        lines += [(), section(f"the row as {_NAMES[self._form]}, as it is copied and written")]
        texts = row_text(made.row, made.disclosure, self._form).splitlines()
        lines += [partial(_preview, place, plain(text)) for place, text in enumerate(texts)]
        preview.show(lines)

    def _give_up(self, _typed: str) -> None:
        """Forget why the last file could not be written."""
        self._not_written = ""
        self.redraw()

    def _answer(self, what: str, typed: str) -> None:
        """Write the export to the typed path, or use the typed name."""
        value, made = typed.strip(), self._made
        if what in self._names:
            self._names[what] = value
            self._make()
        elif value and isinstance(made, _MadeRow):
            path = Path(value).expanduser().absolute()
            write = partial(_write_row, made, self._form, path)
            if what == "bundle":
                state_dir, now = self.app.places.state_dir, self.app.now()
                write = partial(write_bundle, path, made.evidence, made.row, now=now, state_dir=state_dir)
            self.in_background(write, self._written, failed=partial(self._not_written_to, what, value))

    def _written(self, path: Path) -> None:
        """Show where it was written."""
        self._not_written = ""
        self.redraw()
        self.app.say(f"written to {path}")

    def _not_written_to(self, what: str, typed: str, problem: Problem) -> None:
        """Show why it was not written, and reopen the prompt with the typed path."""
        self._not_written = problem.in_one_line()
        self.redraw()
        if not self.query(".prompt.-open"):
            self.query_one(f"#{what}", Prompt).open(typed)

    def action_form(self, step: int) -> None:
        """Preview another format."""
        self._form = _FORMS[(_FORMS.index(self._form) + step) % len(_FORMS)]
        self.redraw()

    def action_pad(self) -> None:
        """Count lost and missing runs as no medal, or leave their seeds out."""
        self._pad_missing = not self._pad_missing
        self._make()

    def action_copy(self) -> None:
        """Copy it to the terminal's clipboard."""
        if not isinstance(self._made, _MadeRow):
            return
        text = row_text(self._made.row, self._made.disclosure, self._form)
        if len(text.encode()) > MOST_COPIED:
            self.app.say("too long for the clipboard: write it to a file", bad=True)
            return
        self.app.copy_to_clipboard(text)
        self.app.say(f"copied the row as {_NAMES[self._form]}")

    def action_write(self) -> None:
        """Ask for a file."""
        if not self.app.refuses():
            self.query_one("#write", Prompt).open(f"{self._subject.name}{self._form.suffix}")

    def action_bundle(self) -> None:
        """Ask for a folder."""
        if not self.app.refuses():
            self.query_one("#bundle", Prompt).open(f"{self._subject.name}-bundle")

    def action_ask(self, what: str) -> None:
        """Open the prompt for a name, such as that of the agent."""
        self.query_one(f"#{what}", Prompt).open(self._names[what])

    def _make(self) -> None:
        work = partial(_made_row, self.app.places, self._subject, self._pad_missing, **self._names)
        self.in_background(work, self._take, failed=self._take, latest="export")

    def _take(self, made: _MadeRow | Problem) -> None:
        self._made = made
        self.draw()

    def _choices(self) -> Iterator[Block]:
        """Yield the formats, whether the row is ready for the leaderboard, and why the last file was not written."""
        pieces: list[Piece] = [("   ", "text")]
        for form, title in _NAMES.items():
            pieces += [(title, "accent" if form is self._form else "dim"), ("  ", "text")]
        if self._pad_missing:
            pieces.append((" padded", "warn"))
        yield shortened(self._subject.name, "strong", before=((" ", "text"),), after=tuple(pieces))
        if isinstance(self._made, _MadeRow):
            yield _readiness(len(self._made.shortcomings), self.app.drawing)
        if self._not_written:
            yield wrapped(f"not written: {self._not_written}", "bad", most=3)

    def _missing(self, found: Sequence[tuple[str, str]]) -> list[Block]:
        """Return what the row lacks before it is ready for the leaderboard."""
        lines: list[Block] = []
        for about, lacking in found:
            action, does = _MENDED_BY.get(about, ("", ""))
            text = f"{lacking}: {self.app.drawing.keys(action)} {does}" if action else lacking
            lines.append(wrapped(text, "text", (f"   {about:<{_ABOUT}}", "dim"), key=(about, lacking)))
        return lines


def _figures(row: Row) -> Block:
    """Return the figures of the row by split, with what they are over."""
    known = split_standings(row)
    seeds = "seeds" if any(one.standing.cell is not None for one in known) else ""
    columns = SPLIT_STANDING.columns(
        f"split medals covers {seeds}",
        split={"width": 8},
        medals={"width": 14, "gap": 2},
        covers={"width": 12, "gap": 2, "title": "competitions"},
    )
    return listing(columns, known)


def _readiness(missing: int, drawing: Drawing) -> Pieces:
    """Return whether a row is ready for the leaderboard."""
    if not missing:
        return ((f" {drawing.signs.done} nothing is missing: ready for the leaderboard", "good"),)
    count = plural(missing, "thing is", "things are")
    return ((f" {drawing.signs.failed} not ready for the leaderboard: {count} missing", "warn"),)


# The keys that mend what a row lacks.
_MENDED_BY = {
    "agent": ("export.agent", "types it"),
    "models": ("export.models", "types them"),
    "integrity": ("experiment.integrity", "on the screen of its experiment"),
}
_ABOUT = 14


def _preview(place: int, text: str, drawing: Drawing) -> Iterator[Line]:
    """Draw a line of the export, wrapped to a few lines; a note says how much is not shown."""
    parts = cells_of(text or " ", max(20, drawing.width - 2))
    note: Pieces = ()
    if len(parts) > _MOST_LINES:
        rest = " ".join(part.rstrip() for part in parts[_MOST_LINES - 1 :])
        longest = f"... and {len(rest):,} more characters, written in full"
        # The last line ends with a whole word.
        last = rest[: max(0, drawing.width - len(longest) - 3)].rpartition(" ")[0]
        more = f"... and {len(rest) - len(last):,} more characters, written in full"
        parts[_MOST_LINES - 1 :] = [f"{last} " if last else ""]
        note = ((more, "dim"),)
    for at, part in enumerate(parts):
        after = note if at == len(parts) - 1 else ()
        yield Line(((" ", "text"), (part, "text"), *after), key=(place, at), selectable=True)
