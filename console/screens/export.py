"""The export screen: the preview of a row in a format, and its export to the clipboard, a file or a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from textual.widget import Widget

from mlebench_console.console.nouns.scoreboard import SPLIT_STANDING, split_standings
from mlebench_console.console.pieces import Line, cells_of, cut, foreign, heading
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain, plain_lines
from mlebench_console.console.tui.list_screen import ListScreen
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.log_view import MOST_COPIED
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.scoreboard import (
    ExportRequest,
    ExportResult,
    Subject,
    export,
    or_problem,
)
from mlebench_console.engine.scoreboard.export import RowFormat, write_bundle
from mlebench_console.engine.scoreboard.model import Row
from mlebench_console.foundation.problems import Problem
from mlebench_console.foundation.text import plural

_NAMES = {
    RowFormat.MARKDOWN: "Markdown",
    RowFormat.CSV: "CSV",
    RowFormat.JSON: "JSON",
    RowFormat.LATEX: "LaTeX",
}
_FORMS = tuple(_NAMES)
# Longer lines, such as lists of competitions, are cut to this many lines in the preview.
_MOST_LINES = 3
# From this height on the figures stand above the row.
_HIGH = 36


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
        yield Prompt("agent", "the agent's name in the row", id="agent", done="use it")
        yield Prompt("models", "the models that it used", id="llms", done="use it")

    def on_mount(self) -> None:
        """Make the row."""
        self._export()

    def redraw(self) -> None:
        """Draw the choices and the preview."""
        preview = self.line_list
        width = preview.line_width
        self.header.show(*self._choices())
        if self._result is None:
            # A problem and a row may contain untrusted text.
            told = self._problem.splitlines() or ["making the row"]
            role: Role = "bad" if self._problem else "dim"
            preview.show(
                [Line(((f"  {foreign(text, max(20, width - 3)).rstrip()}", role),)) for text in told]
            )
            return
        result, form, signs = self._result, self._request.form, self.app.signs
        lines = self._missing_lines(result.shortcomings)
        if self.size.height >= _HIGH:
            # The row has the figures too, and in a low terminal it should be seen without scrolling.
            lines += [
                Line(),
                Line(heading("figures, any medal in %", width, signs)),
                *self._figures(result.row),
            ]
        title = f"the row as {_NAMES[form]}, as it is copied and written"
        lines += [Line(), Line(heading(title, width, signs))]
        lines += [
            Line(((" ", "text"), *pieces), key=(place, at), selectable=True)
            for place, text in enumerate(result.text(form).splitlines())
            for at, pieces in enumerate(_preview("".join(plain_lines(text)), max(20, width - 2)))
        ]
        preview.show(lines)

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

    def _choices(self) -> tuple[Pieces, ...]:
        """Return the formats, whether the row is ready for the leaderboard, and why the last file was not written."""
        width = self.line_list.line_width
        beside = 4 + sum(len(title) + 2 for title in _NAMES.values()) + 8 * self._request.pad_missing
        name = foreign(self._request.subject.name, max(20, width - beside), ellipsis=self.app.signs.ellipsis)
        pieces: list[Piece] = [(f" {name.rstrip()}   ", "strong")]
        for form, title in _NAMES.items():
            pieces += [(title, "accent" if form is self._request.form else "dim"), ("  ", "text")]
        if self._request.pad_missing:
            pieces.append((" padded", "warn"))
        lines: list[Pieces] = [cut(tuple(pieces), width)]
        if self._result is not None:
            lines.append(_readiness(len(self._result.shortcomings), self.app.drawing))
        if self._not_written:
            lines += [
                ((f" {part}", "bad"),)
                for part in cells_of(
                    foreign(f"not written: {self._not_written}", 3 * width).rstrip(), width - 2
                )
            ]
        return tuple(lines)

    def _missing_lines(self, found: Sequence[tuple[str, str]]) -> list[Line]:
        """Return what the row lacks before it is ready for the leaderboard."""
        key_name = self.app.drawing.keys
        lines = []
        for about, lacking in found:
            action, does = _MENDED_BY.get(about, ("", ""))
            text = f"{lacking}: {key_name(action)} {does}" if action else lacking
            parts = cells_of(plain(text.replace("\n", " ")), max(20, self.line_list.line_width - _ABOUT - 5))
            lines += [
                Line(
                    ((f"   {'' if place else about:<{_ABOUT}}", "dim"), (part, "text")),
                    key=(about, lacking, place),
                    selectable=True,
                )
                for place, part in enumerate(parts)
            ]
        return lines

    def _figures(self, row: Row) -> list[Line]:
        """Return the figures of the row by split, with what they are over."""
        known = split_standings(row)
        seeds = "seeds" if any(one.standing.cell is not None for one in known) else ""
        columns = SPLIT_STANDING.columns(
            f"split medals covers {seeds}",
            split={"width": 8},
            medals={"width": 14, "gap": 2},
            covers={"width": 12, "gap": 2, "title": "competitions"},
        )
        table = Table(columns, known, self.line_list.line_width, self.app.drawing)
        return [table.heading(), *map(table.line, known)]


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


def _preview(text: str, width: int) -> Iterator[Pieces]:
    """Yield a line of the export, wrapped to a few lines; a note says how much is not shown."""
    parts = cells_of(text or " ", width)
    if len(parts) <= _MOST_LINES:
        yield from (((part, "text"),) for part in parts)
        return
    yield from (((part, "text"),) for part in parts[: _MOST_LINES - 1])
    rest = " ".join(part.rstrip() for part in parts[_MOST_LINES - 1 :])
    longest = f"... and {len(rest):,} more characters, written in full"
    # The last line ends with a whole word.
    last = rest[: max(0, width - len(longest) - 1)].rpartition(" ")[0]
    more = f"... and {len(rest) - len(last):,} more characters, written in full"
    yield ((f"{last} " if last else "", "text"), (more, "dim"))
