"""The export screen: the preview of a row in a format, and its export to the clipboard, a file or a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual.widget import Widget

from console.sanitize import plain_lines
from console.tui.list_screen import ListScreen
from console.tui.painting import Line, Piece, Pieces, cells_of, cut, foreign, joined
from console.tui.theme import Role, Signs
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.log_view import MOST_COPIED
from console.views.scoreboard import (
    ExportRequest,
    ExportResult,
    Subject,
    export,
    or_problem,
    seeds_text,
    standing_text,
)
from engine.scoreboard import Row, RowFormat
from engine.scoreboard.export import write_bundle
from foundation.problems import Problem

_NAMES = {
    RowFormat.MARKDOWN: "Markdown",
    RowFormat.CSV: "CSV",
    RowFormat.JSON: "JSON",
    RowFormat.LATEX: "LaTeX",
}
_FORMS = tuple(_NAMES)
# Longer lines, such as lists of competitions, are cut to this many lines in the preview.
_MOST_LINES = 3


class ExportScreen(ListScreen):
    """The preview of an export; nothing is written until a key is pressed."""

    CONTEXTS = ("export", "list")
    MODE = "board"

    def __init__(self, subject: Subject, *, pad_missing: bool = False) -> None:
        super().__init__()
        self._request = ExportRequest(subject, pad_missing=pad_missing)
        self._result: ExportResult | None = None
        self._problem = ""
        # Why the last file could not be written, until it was corrected.
        self._not_written = ""

    def body(self) -> Iterable[Widget]:
        """The choices, the preview."""
        yield from super().body()
        yield Prompt("file", "a new file, such as row.md", id="write", done="write it")
        yield Prompt(
            "folder", "a new folder for reports, mapping, row and checksums", id="bundle", done="write it"
        )
        yield Prompt("agent", "the agent's name in the row", id="agent", done="take it")
        yield Prompt("models", "the models that it used", id="llms", done="take it")

    def on_mount(self) -> None:
        """Make the row."""
        self._export()

    def redraw(self) -> None:
        """Draw the choices and the preview."""
        preview = self.line_list
        width = preview.line_width
        self.header.show(*self._choices(width))
        if self._result is None:
            # A problem and a row may contain untrusted text.
            told = self._problem.splitlines() or ["making the row"]
            role: Role = "bad" if self._problem else "dim"
            preview.show(
                [Line(((f"  {foreign(text, max(20, width - 3)).rstrip()}", role),)) for text in told]
            )
            return
        shown = [
            Line(((" ", "text"), *pieces), key=(place, at), selectable=True)
            for place, text in enumerate(self._result.text(self._request.form).splitlines())
            for at, pieces in enumerate(_preview("".join(plain_lines(text)), max(20, width - 2)))
        ]
        preview.show(shown)

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Ignore changes: only Enter has an effect."""
        message.stop()

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Close the prompt without an export."""
        message.stop()
        self._not_written = ""
        self.redraw()
        self.line_list.focus()

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Write the export to the typed path, or use the typed name."""
        message.stop()
        self.line_list.focus()
        value, result = message.value.strip(), self._result
        if message.prompt.id == "agent":
            self._request = replace(self._request, agent=value)
            self._export()
        elif message.prompt.id == "llms":
            self._request = replace(self._request, llms=value)
            self._export()
        elif value and result is not None:
            path = Path(value).expanduser().absolute()
            work = partial(result.write_row, self._request.form, path)
            if message.prompt.id == "bundle":
                work = partial(
                    write_bundle,
                    path,
                    result.evidence,
                    result.row,
                    now=self.app.now(),
                    state_dir=self.app.places.state_dir,
                )
            prompt = message.prompt
            self.in_background(partial(or_problem, work), partial(self._written, prompt, value))

    def _written(self, prompt: Prompt, typed: str, outcome: Path | Problem) -> None:
        """Show where it was written; on a problem, reopen the prompt with the typed path."""
        self._not_written = outcome.in_one_line() if isinstance(outcome, Problem) else ""
        self.redraw()
        if isinstance(outcome, Problem):
            if not self.query(".prompt.-open"):
                prompt.open(typed)
        else:
            self.app.say(f"written to {outcome}")

    def action_form(self, step: int) -> None:
        """Preview another format."""
        self._request = replace(
            self._request, form=_FORMS[(_FORMS.index(self._request.form) + step) % len(_FORMS)]
        )
        self.redraw()

    def action_pad(self) -> None:
        """Count lost and missing runs as no medal, or leave their seeds out."""
        self._request = replace(self._request, pad_missing=not self._request.pad_missing)
        self._export()

    def action_copy(self) -> None:
        """Copy it to the terminal's clipboard."""
        if self._result is None:
            return
        text = self._result.text(self._request.form)
        if len(text.encode()) > MOST_COPIED:
            self.app.say("too long for the clipboard: write it to a file", bad=True)
            return
        self.app.copy_to_clipboard(text)
        self.app.say(f"copied the row as {_NAMES[self._request.form]}")

    def action_write(self) -> None:
        """Ask for a file."""
        if not self.app.refuses():
            self.query_one("#write", Prompt).open(f"{self._request.subject.name}{self._request.form.suffix}")

    def action_bundle(self) -> None:
        """Ask for a folder."""
        if not self.app.refuses():
            self.query_one("#bundle", Prompt).open(f"{self._request.subject.name}-bundle")

    def action_ask(self, what: str) -> None:
        """Open the prompt for a name, such as that of the agent."""
        self.query_one(f"#{what}", Prompt).open(
            self._request.agent if what == "agent" else self._request.llms
        )

    def _export(self) -> None:
        work = partial(export, self.app.places, self._request)
        self.in_background(partial(or_problem, work), self._take, latest="export")

    def _take(self, found: ExportResult | Problem) -> None:
        self._result = None if isinstance(found, Problem) else found
        self._problem = str(found) if isinstance(found, Problem) else ""
        self.draw()

    def _choices(self, width: int) -> tuple[Pieces, ...]:
        pieces: list[Piece] = [(f" {foreign(self._request.subject.name, 30).rstrip()}   ", "strong")]
        for form, name in _NAMES.items():
            pieces += [(name, "accent" if form is self._request.form else "dim"), ("  ", "text")]
        if self._request.pad_missing:
            pieces.append((" padded", "warn"))
        lines: list[Pieces] = [cut(tuple(pieces), width)]
        row = self._result.row if self._result is not None else None
        if row is not None:
            lines.append(joined(_figures(row, self.app.signs), ("  ", "text"), width))
        if row is not None and row.conflict:
            text = foreign(row.conflict, max(10, width - 18)).rstrip()
            lines.append(((f" does not make a row: {text}", "bad"),))
        elif row is not None and row.running:
            lines.append(((" still running: only complete seeds count", "warn"),))
        if self._not_written:
            lines += [
                ((f" {part}", "bad"),)
                for part in cells_of(
                    foreign(f"not written: {self._not_written}", 3 * width).rstrip(), width - 2
                )
            ]
        return (*lines, ())


def _figures(row: Row, signs: Signs) -> Iterator[Pieces]:
    """Return the main figures of the row, which the formats surround with other text."""
    standings = (("its own", row.own), *row.columns.items())
    for place, (name, standing) in enumerate(standings):
        if standing is not None:
            cell = standing.cell
            text = standing_text(standing) if cell is None else cell.figures(1, signs.plus_minus)
            role: Role = "dim" if cell is None else "strong"
            yield ((f"{'' if place else ' %  '}{name.capitalize()} ", "dim"), (text, role))
    yield ((seeds_text(row) + " seeds", "dim"),)


def _preview(text: str, width: int) -> Iterator[Pieces]:
    """Yield a line of the export, wrapped to a few lines; a note says how much is not shown."""
    parts = cells_of(text or " ", width)
    if len(parts) <= _MOST_LINES:
        yield from (((part, "text"),) for part in parts)
        return
    yield from (((part, "text"),) for part in parts[: _MOST_LINES - 1])
    left = len("".join(parts[_MOST_LINES - 1 :]))
    more = f"... and {left:,} more characters, written in full"
    last = parts[_MOST_LINES - 1][: max(0, width - len(more) - 1)].rstrip()
    yield ((f"{last} ", "text"), (more, "dim"))
