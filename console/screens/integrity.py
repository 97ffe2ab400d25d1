"""The integrity screen: the detectors' findings by severity, with their evidence: passages and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual.widget import Widget

from mlebench_console.console import wording
from mlebench_console.console.actions.integrity import review
from mlebench_console.console.lists import words_accept
from mlebench_console.console.nouns.integrity import FINDING, FindingRow, finding_rows
from mlebench_console.console.nouns.outcomes import outcome_role, outcome_sign
from mlebench_console.console.pieces import beside
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.sanitize import plain
from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.console.tui.list_screen import FilteredScreen
from mlebench_console.console.tui.screen import Queries
from mlebench_console.console.tui.widgets.blocks import Block, in_one_line, laid_out, shortened, wrapped
from mlebench_console.console.tui.widgets.inputs import Prompt
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.engine.scoreboard.integrity import PUBLIC_KERNEL
from mlebench_console.foundation.files import reading_untrusted
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.text import plural
from mlebench_console.state import integrity, runs
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Excerpt, RunIntegrity
from mlebench_console.state.records import Run

_MOST_BYTES = 4 << 20
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


@dataclass(frozen=True)
class ExcerptInFile:
    """A passage with the lines before and after it, if its file still contains it.

    Attributes:
        line: the whole line that contains a passage of one line.
        written_at: when the file was written last; None if unknown.
        trouble: why the lines around it can't be shown.
    """

    excerpt: Excerpt
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    line: str = ""
    written_at: float | None = None
    trouble: str = ""


def passages(one: FindingRow, beside: int) -> tuple[ExcerptInFile, ...]:
    """Read the passages of a finding with up to `beside` lines before and after each; waits for the disk."""
    return tuple(_in_its_file(excerpt, one.file_of(excerpt), beside) for excerpt in one.finding.excerpts)


def _in_its_file(excerpt: Excerpt, path: Path | None, beside: int) -> ExcerptInFile:
    if path is None:
        is_elsewhere = excerpt.source.startswith(PUBLIC_KERNEL)
        return ExcerptInFile(excerpt, trouble="" if is_elsewhere else "the file is no longer there")
    try:
        written_at = path.stat().st_mtime
        with reading_untrusted(path, max_bytes=_MOST_BYTES) as stream:
            lines = stream.read().decode("utf-8", "replace").split("\n")
    except (DataProblem, OSError):
        return ExcerptInFile(excerpt, trouble="the file can't be read")
    # Line numbers of a notebook count only its code cells.
    if path.suffix == ".ipynb" or not excerpt.first_line or not excerpt.text:
        return ExcerptInFile(excerpt, written_at=written_at)
    first, text = excerpt.first_line - 1, excerpt.text.split("\n")
    last = first + len(text)
    # The last line of a long passage may be cut, and a passage of one line may be a part of it.
    if lines[first : last - 1] != text[:-1] or text[-1].strip() not in "".join(lines[last - 1 : last]):
        return ExcerptInFile(excerpt, written_at=written_at, trouble="the file has changed since")
    return ExcerptInFile(
        excerpt,
        tuple(lines[max(0, first - beside) : first]),
        tuple(lines[last : last + beside]),
        lines[first] if len(text) == 1 else "",
        written_at,
    )


@dataclass(frozen=True)
class IntegrityFacts:
    """The findings in some runs.

    Attributes:
        runs: the number of runs that have ended.
        looked_at: the number of them that detectors have examined.
        flagged: the number of runs with a flag that is not cleared.
        findings: the most serious first, cleared ones last.
    """

    runs: int
    looked_at: int
    flagged: int
    findings: tuple[FindingRow, ...]


def integrity_facts(database: Database, run_ids: Collection[int] | None = None) -> IntegrityFacts:
    """Read the findings in some runs, or in all."""
    members = {
        one.id: one
        for one in runs.of_all_sweeps(database)
        if one.has_ended and (run_ids is None or one.id in run_ids)
    }
    known = integrity.of_runs(database, members)
    found = [
        shown
        for number, one in known.items()
        if one.results
        for shown in _of_run(database, members[number], one)
    ]
    found.sort(key=lambda one: (one.is_cleared, -one.finding.severity.rank, one.run.id, one.result.detector))
    return IntegrityFacts(
        len(members),
        sum(bool(one.results) for one in known.values()),
        sum(one.severity.is_flag for one in known.values()),
        tuple(found),
    )


def _of_run(database: Database, run: Run, known: RunIntegrity) -> list[FindingRow]:
    attempt = runs.latest_attempt(database, run.id)
    directory = database.path.parent / (attempt.directory if attempt is not None else "")
    return finding_rows(run, known, directory)


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
            yield Prompt(sign, hint, partial(self._review, name), id=name, done=name)
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
        shown = self.line_list
        found = [one for one in facts.findings if self._is_shown(one)]
        left_out = sum(not one.counts for one in facts.findings) if not self._with_notes else 0
        notes = self.app.drawing.keys("integrity.notes")
        self.header.show(self._header(facts, left_out, notes))
        table = Table(FINDING.fields, found, self.app.drawing.within(shown.line_width))
        if found:
            shown.show([table.line(one, key=one.key) for one in found], heading=table.heading())
        elif facts.looked_at:
            shown.show([(("  nothing speaks against these runs", "dim"),)])
        else:
            whose = "EXPERIMENT" if self._run_ids is None else self._title
            command: Pieces = ((f"  mlebench-console integrity run {whose}", "text"),)
            shown.show([(("  nobody has looked at these runs yet; this does:", "dim"),), command])
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

    def _review(self, what: str, reason: str) -> None:
        """Review the finding with the typed reason."""
        if self._reviewed is not None:
            number, key = self._reviewed
            self.app.act(review, number, key, cleared=what == "clear", reason=reason)

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
            reviewing = f"{key('integrity.clear')} clears it and {key('integrity.confirm')} confirms it"
            disclosed = "" if is_low else " with a reason that is disclosed with the row"
            next_step = f"{reviewing}{disclosed}; {next_step}"
        evidence.show(*_evidence(one, next_step, self.app.drawing), partial(_side_by_side, shown))

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

    def _header(self, facts: IntegrityFacts, left_out: int, notes: str) -> Block:
        """Return how many runs were looked at and what was found; `notes` is the key that shows the notes left out."""
        groups: list[Pieces] = [
            ((f" {self._title}", "strong"),),
            ((f"{facts.looked_at:,} of {plural(facts.runs, 'run')} looked at", "text"),),
        ]
        if facts.looked_at:
            groups.append(((f"{facts.flagged} flagged", "warn" if facts.flagged else "good"),))
        if self.words:
            groups.append(((f"/ {self.words}", "accent"),))
        if left_out:
            groups.append(((f"{plural(left_out, 'note')} not shown: {notes}", "dim"),))
        groups.append((("people decide: a finding alone excludes no run", "dim"),))
        return in_one_line(groups)


def _label(text: str) -> Piece:
    return f" {text:<9}", "dim"


def _evidence(one: FindingRow, next_step: str, drawing: Drawing) -> Iterator[Block]:
    """Yield the evidence of a finding: statement, run, figures, review, what one can do."""
    yield lambda drawing: [((drawing.signs.rule * drawing.width, "faint"),)]
    yield wrapped(one.finding.statement, "strong", _label("found"))
    run, outcome = one.run, one.run.outcome
    looked = wording.age(drawing.now - one.result.looked_at)
    ago = "now" if looked == "now" else f"{looked} ago"
    groups: list[Pieces] = [((f"{run.id}, seed {run.seed} of {run.sweep_id}", "text"),)]
    if outcome is not None:
        score = "" if run.score is None else f" {wording.score(run.score)}"
        earned = f"{outcome_sign(outcome, drawing.signs)} {wording.outcome(outcome)}{score}"
        groups.append(((earned, outcome_role(outcome)),))
    groups.append(((f"by {one.result.layer}/{one.result.detector}, {ago}", "dim"),))
    groups.append(((f"finding {one.finding.key}", "dim"),))
    yield in_one_line(groups, _label("run"))
    figures = ", ".join(f"{name} {value:,.4g}" for name, value in one.finding.numbers.items())
    yield wrapped(figures, "text", _label("figures"), most=2)
    if one.review is not None:
        verb = "cleared" if one.is_cleared else "confirmed"
        by = f"{verb} by {one.review.author}, {wording.date_and_time(one.review.at)}"
        role: Role = "good" if one.is_cleared else "bad"
        yield wrapped(f"{by}: {one.review.reason}", role, _label("review"), most=3)
    yield wrapped(next_step, "text", _label("next"), most=2)
    yield ()


def _side_by_side(shown: Sequence[ExcerptInFile], drawing: Drawing) -> Iterator[Block]:
    """Draw the passages of a finding, two of them side by side where there is room."""
    if len(shown) != 2 or drawing.width < _SIDE_BY_SIDE:
        for each in shown:
            yield partial(_passage, each, 0)
        return
    half = (drawing.width - 3) // 2
    above = max(len(each.before) for each in shown)  # so that both passages begin on the same line
    both = [
        laid_out([partial(_passage, each, above - len(each.before))], drawing.within(half)) for each in shown
    ]
    columns = [[line.pieces for line in lines] for lines in both]
    yield from beside(columns, (half, half), (f" {drawing.signs.axis} ", "faint"))


def _passage(shown: ExcerptInFile, above: int, drawing: Drawing) -> Iterator[Block]:
    """Draw a passage with its file, some empty lines, and the lines around it; its own lines are marked."""
    excerpt = shown.excerpt
    when = "" if shown.written_at is None else f"written {wording.date_and_time(shown.written_at)}"
    facts = "".join(f" {drawing.signs.dot} {fact}" for fact in (when, shown.trouble) if fact)
    yield shortened(excerpt.place, "accent", before=((" ", "text"),), after=((facts, "dim"),), is_path=True)
    yield from [()] * above
    hits = excerpt.text.split("\n") if excerpt.text else []
    number = excerpt.first_line - len(shown.before)
    for texts, is_hit in ((shown.before, False), (hits, True), (shown.after, False)):
        for text in texts:
            label = f"{number:>5} " if excerpt.first_line else "      "
            mark: Piece = (">" if is_hit else " ", "warn")
            drawn = hit_pieces(text, shown.line) if is_hit else ((plain(text.expandtabs(4)), "dim"),)
            yield mark, (label, "warn" if is_hit else "dim"), *drawn
            number += 1


def hit_pieces(text: str, line: str) -> tuple[Piece, ...]:
    """Return a line of a passage; where the passage is a part of it, that part is highlighted."""
    begin, found, end = line.partition(text)
    if not found or not (begin.strip() or end.strip()):
        return ((plain((line or text).expandtabs(4)), "text"),)
    return (plain(begin.expandtabs(4)), "text"), (plain(found), "hit"), (plain(end), "text")
