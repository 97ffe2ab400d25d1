"""The integrity screen: the detectors' findings by severity, with their evidence: passages and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from rich.cells import cell_len
from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.actions import integrity
from mlebench_console.console.lists import words_accept
from mlebench_console.console.nouns.integrity import FINDING, FindingRow
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import (
    Line,
    beside,
    cells_of,
    cut,
    foreign,
    foreign_path,
    joined,
)
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.tui.list_screen import FilteredScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.integrity import (
    ExcerptInFile,
    IntegrityFacts,
    integrity_facts,
    passages,
)
from mlebench_console.foundation.text import plural

# Narrower screens show two passages below each other.
_SIDE_BY_SIDE = 110
# The lines of the terminal that are not for passages, and the most lines before and after one.
_OTHER_LINES = 22
_MOST_BESIDE = 20
# Terminals with fewer lines have shorter texts, for more lines of passages.
_LOW = 32
# The prompts for reasons: sign and hint.
_REASONS = {
    "clear": ("c", "why it says nothing against the run (kept, and disclosed with the row)"),
    "confirm": ("C", "why it holds (kept, and disclosed with the row)"),
}


class IntegrityScreen(FilteredScreen):
    """A list of findings, and below it the evidence of the one under the cursor."""

    CONTEXTS = ("integrity", "list")
    MODE = "board"

    def __init__(self, title: str, run_ids: Collection[int] | None = None) -> None:
        super().__init__()
        self._title = title
        self._run_ids = run_ids
        self._facts: IntegrityFacts | None = None
        self._with_notes = False
        self._reviewed: tuple[int, str] | None = None
        # The passages of a finding with their context, and the finding's key.
        self._passages: tuple[tuple[int, str], tuple[ExcerptInFile, ...]] | None = None

    def body(self) -> Iterable[Widget]:
        """Return the list, the evidence, and the prompts for filter and reasons."""
        header, lines, prompt = super().body()
        yield from (header, lines, Painted(id="evidence"))
        for name, (sign, hint) in _REASONS.items():
            yield Prompt(sign, hint, id=name, done=name)
        yield prompt

    def toggled_on(self) -> Collection[str]:
        """Return the key of the notes."""
        return ("integrity.notes",) if self._with_notes else ()

    def queries(self) -> Queries:
        """The findings."""
        return {"integrity": (partial(integrity_facts, run_ids=self._run_ids), self._take)}

    def redraw(self) -> None:
        """Draw the findings that pass the filter, and the evidence of the one under the cursor."""
        facts = self._facts
        if facts is None:
            return
        shown, _signs = self.line_list, self.app.signs
        found = [one for one in facts.findings if self._is_shown(one)]
        left_out = sum(not one.counts for one in facts.findings) if not self._with_notes else 0
        notes = self.app.drawing.keys("integrity.notes")
        self.header.show(self._header(self._title, facts, self.words, left_out, notes))
        table = Table(FINDING.fields, found, shown.line_width, self.app.drawing)
        if found:
            shown.show([table.line(one, key=one.key) for one in found], heading=table.heading())
        elif facts.looked_at:
            shown.show([Line((("  nothing speaks against these runs", "dim"),))])
        else:
            whose = "EXPERIMENT" if self._run_ids is None else plain(self._title, limit=80)
            shown.show(
                [
                    Line((("  nobody has looked at these runs yet; this does:", "dim"),)),
                    Line(((f"  mlebench-console integrity run {whose}", "text"),)),
                ]
            )
        # The list is only as high as needed; the rest is for the evidence.
        shown.styles.height = min(len(found) + 1, self.size.height * 9 // 20) if found else 3
        self._read_passages()
        self._draw_evidence()

    def on_line_list_cursor_moved(self) -> None:
        """Show the evidence of another finding."""
        self._read_passages()
        self._draw_evidence()

    def action_open(self) -> None:
        """Open the file of the finding's first passage at its line, or else the run."""
        one = self._current()
        if one is None:
            return
        for excerpt in one.finding.excerpts:
            path = one.file_of(excerpt)
            if path is not None:
                # Line numbers of a notebook count only its code cells.
                line = 0 if path.suffix == ".ipynb" else excerpt.first_line
                self.app.push_screen(FileScreen(path, line=line))
                return
        self.app.show_run(one.run.id)

    def action_log(self) -> None:
        """Open the run's log."""
        one = self._current()
        if one is not None:
            self.app.show_run(one.run.id)

    def action_notes(self) -> None:
        """Show notes too, or only findings that need a review."""
        self._with_notes = not self._with_notes
        self.redraw()
        self.refresh_frame()

    def action_review(self, what: str) -> None:
        """Open the prompt for the reason to clear or confirm the finding under the cursor."""
        one = self._current()
        if one is not None and not self.app.refuses():
            self._reviewed = one.key
            self.query_one(f"#{what}", Prompt).open("")

    # Textual calls the handlers of base classes as well, unless that is prevented.

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Filter while typing, unless a reason is being typed."""
        if message.prompt.id in _REASONS:
            message.prevent_default()

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Review the finding with the typed reason, or keep the filter."""
        if message.prompt.id in _REASONS:
            message.prevent_default()
            self.line_list.focus()
            if self._reviewed is not None:
                number, key = self._reviewed
                cleared = message.prompt.id == "clear"
                self.app.act(integrity.review, number, key, cleared=cleared, reason=message.value)

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Close the prompt without a review."""
        if message.prompt.id in _REASONS:
            message.prevent_default()
            self.line_list.focus()

    def action_back(self) -> None:
        """Clear the filter; without one, go back."""
        if self.words:
            super().action_back()
        else:
            self.app.pop_screen()

    def _take(self, found: IntegrityFacts) -> None:
        self._facts = found

    def _is_shown(self, one: FindingRow) -> bool:
        texts = (one.run.competition_id, one.result.detector, one.finding.statement, one.finding.severity)
        run = f"run:{one.run.id} seed:{one.run.seed} {one.run.sweep_id}"
        return (self._with_notes or one.counts) and words_accept(self.words, *texts, run)

    def _current(self) -> FindingRow | None:
        key = self.query_one(LineList).key
        return next((one for one in (self._facts.findings if self._facts else ()) if one.key == key), None)

    def _draw_evidence(self) -> None:
        evidence, one = self.query_one("#evidence", Painted), self._current()
        if one is None:
            evidence.show()
            return
        known = self._passages
        is_read = known is not None and known[0] == one.key
        shown = known[1] if known and is_read else tuple(map(ExcerptInFile, one.finding.excerpts))
        key = self.app.drawing.keys
        is_low = self.size.height < _LOW
        next_step = f"{key('integrity.open')} opens the file at the line"
        next_step += "" if is_low else f", {key('integrity.log')} the log"
        if not self.app.readonly:
            review = f"{key('integrity.clear')} clears it and {key('integrity.confirm')} confirms it"
            disclosed = "" if is_low else " with a reason that is disclosed with the row"
            next_step = f"{review}{disclosed}; {next_step}"
        drawn = self._evidence(one, shown, next_step)
        evidence.show(*drawn[: self.size.height])

    def _read_passages(self) -> None:
        """Read the passages of the finding under the cursor with as many lines around them as there is room for."""
        one = self._current()
        if one is not None and (self._passages is None or self._passages[0] != one.key):
            below = 1 if self.size.width >= _SIDE_BY_SIDE else max(1, len(one.finding.excerpts))
            beside = max(1, (self.size.height - _OTHER_LINES) // (2 * below))
            read = partial(passages, one, min(beside, _MOST_BESIDE))
            self.in_background(read, partial(self._take_passages, one.key), latest="passages")

    def _take_passages(self, key: tuple[int, str], found: tuple[ExcerptInFile, ...]) -> None:
        self._passages = (key, found)
        self._draw_evidence()

    def _evidence(self, one: FindingRow, shown: Sequence[ExcerptInFile], next_step: str) -> list[Pieces]:
        """Return the evidence of a finding: statement, run, figures, review, what one can do, passages."""
        width, drawing = self.size.width, self.app.drawing
        room = max(20, width - 4)

        def told(label: str, text: str, role: Role, most_lines: int) -> list[Pieces]:
            parts = cells_of(foreign(text, most_lines * (room - _LABEL)).rstrip(), room - _LABEL)
            return [
                ((f" {'' if place else label:<{_LABEL}}", "dim"), (part, role))
                for place, part in enumerate(parts)
                if part.strip()
            ]

        lines: list[Pieces] = [((drawing.signs.rule * width, "faint"),)]
        lines += told("found", one.finding.statement, "strong", 4)
        run, outcome = one.run, one.run.outcome
        sweep = foreign(run.sweep_id, 30).rstrip()
        earned: Pieces = ()
        if outcome is not None:
            score = "" if run.score is None else f" {wording.score(run.score)}"
            words = f"{outcome_sign(outcome, drawing.signs)} {wording.outcome(outcome)}{score}"
            earned = ((words, outcome_role(outcome)),)
        looked = wording.age(drawing.now - one.result.looked_at)
        ago = "now" if looked == "now" else f"{looked} ago"
        groups: tuple[Pieces, ...] = (
            (
                (f" {'run':<{_LABEL}}", "dim"),
                (f"{run.id}, seed {run.seed} of {sweep}", "text"),
            ),
            earned,
            ((f"by {one.result.layer}/{one.result.detector}, {ago}", "dim"),),
            ((f"finding {one.finding.key}", "dim"),),
        )
        lines.append(joined(filter(None, groups), (f" {drawing.signs.dot} ", "faint"), width))
        if one.finding.numbers:
            figures = ", ".join(f"{name} {value:,.4g}" for name, value in one.finding.numbers.items())
            lines += told("figures", figures, "text", 2)
        if one.review is not None:
            verb = "cleared" if one.is_cleared else "confirmed"
            said = (
                f"{verb} by {one.review.author}, {wording.date_and_time(one.review.at)}: {one.review.reason}"
            )
            lines += told("review", said, "good" if one.is_cleared else "bad", 3)
        lines += [*told("next", next_step, "text", 2), ()]
        if len(shown) == 2 and width >= _SIDE_BY_SIDE:
            half = (width - 3) // 2
            above = max(len(each.before) for each in shown)  # so that both passages begin on the same line
            both = [_passage(each, half, drawing, above=above - len(each.before)) for each in shown]
            lines += beside(both, (half, half), (f" {drawing.signs.axis} ", "faint"))
        else:
            for each in shown:
                lines += _passage(each, width - 1, drawing)
        return lines

    def _header(self, title: str, facts: IntegrityFacts, words: str, left_out: int, notes: str) -> Pieces:
        """Return how many runs were looked at and what was found; `notes` is the key that shows the notes left out."""
        groups: list[Pieces] = [
            ((f" {foreign(title, 40).rstrip()}", "strong"),),
            ((f"{facts.looked_at:,} of {plural(facts.runs, 'run')} looked at", "text"),),
        ]
        if facts.looked_at:
            groups.append(((f"{facts.flagged} flagged", "warn" if facts.flagged else "good"),))
        if words:
            groups.append(((f"/ {foreign(words, 30).rstrip()}", "accent"),))
        if left_out:
            groups.append(((f"{plural(left_out, 'note')} not shown: {notes}", "dim"),))
        groups.append((("people decide: a finding alone excludes no run", "dim"),))
        return joined(groups, (f" {self.app.drawing.signs.dot} ", "faint"), self.line_list.line_width)


_LABEL = 9


def _passage(shown: ExcerptInFile, width: int, drawing: Drawing, *, above: int = 0) -> list[Pieces]:
    """Return a passage with its file and the lines around it, cut to a width; its own lines are marked."""
    excerpt = shown.excerpt
    when = "" if shown.written_at is None else f"written {wording.date_and_time(shown.written_at)}"
    facts = "".join(f" {drawing.signs.dot} {fact}" for fact in (when, shown.trouble) if fact)
    place = foreign_path(excerpt.place, max(16, width - 2 - cell_len(facts)), ellipsis=drawing.signs.ellipsis)
    lines: list[Pieces] = [cut(((f" {place}", "accent"), (facts, "dim")), width)]
    lines += [()] * above
    hits = excerpt.text.split("\n") if excerpt.text else []
    number = excerpt.first_line - len(shown.before)
    for texts, is_hit in ((shown.before, False), (hits, True), (shown.after, False)):
        for text in texts:
            label = f"{number:>5} " if excerpt.first_line else "      "
            mark: Piece = (">" if is_hit else " ", "warn")
            drawn = hit_pieces(text, shown.line) if is_hit else ((plain(text.expandtabs(4)), "dim"),)
            lines.append(
                cut((mark, (label, "warn" if is_hit else "dim"), *drawn), width, drawing.signs.ellipsis)
            )
            number += 1
    return lines


def hit_pieces(text: str, line: str) -> tuple[Piece, ...]:
    """Return a line of a passage; where the passage is a part of it, that part is highlighted."""
    begin, found, end = line.partition(text)
    if not found or not (begin.strip() or end.strip()):
        return ((plain((line or text).expandtabs(4)), "text"),)
    return (plain(begin.expandtabs(4)), "text"), (plain(found), "hit"), (plain(end), "text")
