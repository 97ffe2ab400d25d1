"""The integrity screen: the detectors' findings by severity, with their evidence: passages and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from textual.widget import Widget

from console import wording
from console.actions import integrity
from console.sanitize import plain
from console.screens.logs import FileScreen
from console.tui.list_screen import FilteredScreen
from console.tui.painting import Line, Pieces, cells_of, cut, fit, foreign, joined
from console.tui.screen import Queries
from console.tui.theme import Role, Signs
from console.tui.widgets.inputs import Prompt
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.tui.widgets.run_cell import outcome_role, outcome_sign
from console.tui.widgets.table import REST, Column, Table
from console.views.integrity import IntegrityFacts, Passage, ShownFinding, integrity_facts, passages
from console.views.lists import words_accept
from state.integrity import Severity

_ROLES: dict[Severity, Role] = {
    Severity.CLEAN: "good",
    Severity.NOTE: "dim",
    Severity.SUSPICIOUS: "warn",
    Severity.HIGH: "bad",
}
# Narrower screens show two passages below each other.
_SIDE_BY_SIDE = 110
# Terminals with fewer lines show passages without context.
_WITHOUT_CONTEXT = 28
_MOST_BESIDE = 8
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
        self._passages: tuple[tuple[int, str], tuple[Passage, ...]] | None = None

    def body(self) -> Iterable[Widget]:
        """Return the list, the evidence, and the prompts for filter and reasons."""
        header, lines, prompt = super().body()
        yield from (header, lines, Painted(id="evidence"))
        for name, (sign, hint) in _REASONS.items():
            yield Prompt(sign, hint, id=name, done=name)
        yield prompt

    def queries(self) -> Queries:
        """The findings."""
        return {"integrity": (partial(integrity_facts, run_ids=self._run_ids), self._take)}

    def redraw(self) -> None:
        """Draw the findings that pass the filter, and the evidence of the one under the cursor."""
        facts = self._facts
        if facts is None:
            return
        shown, signs = self.line_list, self.app.signs
        found = [one for one in facts.findings if self._is_shown(one)]
        left_out = sum(not _counts(one) for one in facts.findings) if not self._with_notes else 0
        self.header.show(_header(self._title, facts, self.words, left_out, shown.line_width, signs))
        table = Table(_COLUMNS, found, shown.line_width, signs)
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

    def _is_shown(self, one: ShownFinding) -> bool:
        texts = (one.run.competition_id, one.result.detector, one.finding.statement, one.finding.severity)
        run = f"run:{one.run.id} seed:{one.run.seed} {one.run.sweep_id}"
        return (self._with_notes or _counts(one)) and words_accept(self.words, *texts, run)

    def _current(self) -> ShownFinding | None:
        key = self.query_one(LineList).key
        return next((one for one in (self._facts.findings if self._facts else ()) if one.key == key), None)

    def _draw_evidence(self) -> None:
        evidence, one = self.query_one("#evidence", Painted), self._current()
        if one is None:
            evidence.show()
            return
        known = self._passages
        shown = known[1] if known is not None and known[0] == one.key else passages(one, 0)
        evidence.show(*_evidence(one, shown, self.size.width, self.app.signs)[: self.size.height])

    def _read_passages(self) -> None:
        """Read the context of the passages of the finding under the cursor, as far as there is room."""
        one, beside = self._current(), (self.size.height - _WITHOUT_CONTEXT) // 4
        if one is not None and beside > 0 and (self._passages is None or self._passages[0] != one.key):
            read = partial(passages, one, min(beside, _MOST_BESIDE))
            self.in_background(read, partial(self._take_passages, one.key), latest="passages")

    def _take_passages(self, key: tuple[int, str], found: tuple[Passage, ...]) -> None:
        self._passages = (key, found)
        self._draw_evidence()


def _counts(one: ShownFinding) -> bool:
    """Return whether a finding needs a review, or has one."""
    return one.finding.severity.is_flag or one.review is not None


def _header(title: str, facts: IntegrityFacts, words: str, left_out: int, width: int, signs: Signs) -> Pieces:
    groups: list[Pieces] = [
        ((f" {foreign(title, 40).rstrip()}", "strong"),),
        ((f"{facts.looked_at:,} of {wording.plural(facts.runs, 'run')} looked at", "text"),),
    ]
    if facts.looked_at:
        groups.append(((f"{facts.flagged} flagged", "warn" if facts.flagged else "good"),))
    if words:
        groups.append(((f"/ {foreign(words, 30).rstrip()}", "accent"),))
    if left_out:
        groups.append(((f"{wording.plural(left_out, 'note')} not shown", "dim"),))
    groups.append((("people decide: a finding alone excludes no run", "dim"),))
    return joined(groups, (f" {signs.dot} ", "faint"), width)


def _severity(one: ShownFinding) -> Pieces:
    if one.review is not None:
        return (("cleared" if one.is_cleared else "confirmed", "good" if one.is_cleared else "bad"),)
    return ((one.finding.severity, _ROLES[one.finding.severity]),)


_COLUMNS = (
    Column[ShownFinding]("suspicion", _severity, 10),
    Column[ShownFinding]("run", lambda one: str(one.run.id), 5, right=True, role="dim"),
    Column[ShownFinding]("competition", lambda one: one.run.competition_id, 14, grows=40, drop=1),
    Column[ShownFinding]("seed", lambda one: str(one.run.seed), 4, right=True, role="dim", drop=3),
    Column[ShownFinding]("detector", lambda one: one.result.detector, 15, role="dim", drop=2),
    Column[ShownFinding]("what was found", lambda one: one.finding.statement, 32, grows=REST),
)


def _evidence(one: ShownFinding, shown: Sequence[Passage], width: int, signs: Signs) -> list[Pieces]:
    """Return the evidence of a finding: statement, figures, review, passages."""
    room = max(20, width - 4)
    lines: list[Pieces] = [((signs.rule * width, "faint"),)]
    run, outcome = one.run, one.run.outcome
    earned: Pieces = ()
    if outcome is not None:
        score = "" if run.score is None else f" {wording.score(run.score)}"
        words = f"{outcome_sign(outcome, signs)} {wording.outcome(outcome)}{score}"
        earned = ((words, outcome_role(outcome)),)
    groups: tuple[Pieces, ...] = (
        ((f" run {run.id}, seed {run.seed} of {foreign(run.sweep_id, 30).rstrip()}", "dim"),),
        earned,
        ((f"{one.result.layer}/{one.result.detector}", "dim"),),
        ((f"finding {one.finding.key}", "dim"),),
    )
    lines.append(joined(filter(None, groups), (f" {signs.dot} ", "faint"), width))
    lines += [
        ((f" {part}", "strong"),)
        for part in cells_of(foreign(one.finding.statement, 4 * room), room)
        if part.strip()
    ]
    if one.finding.numbers:
        figures = ", ".join(f"{name} {value:,.4g}" for name, value in one.finding.numbers.items())
        lines += [((f" {part}", "text"),) for part in cells_of(foreign(figures, 2 * room).rstrip(), room)]
    if one.review is not None:
        verb = "cleared" if one.is_cleared else "confirmed"
        said = f"{verb} by {one.review.author}, {wording.date_and_time(one.review.at)}: {one.review.reason}"
        role: Role = "good" if one.is_cleared else "bad"
        lines += [((f" {part}", role),) for part in cells_of(foreign(said, 3 * room).rstrip(), room)]
    if len(shown) == 2 and width >= _SIDE_BY_SIDE:
        half = (width - 3) // 2
        above = max(len(each.before) for each in shown)  # so that both passages begin on the same line
        left, right = (_passage(each, half, above=above - len(each.before)) for each in shown)
        for place in range(max(len(left), len(right))):
            pair = [side[place] if place < len(side) else () for side in (left, right)]
            gap = " " * (half - sum(len(text) for text, _ in pair[0])) if not pair[0] else ""
            lines.append((*pair[0], (f"{gap} {signs.cursor} ", "faint"), *pair[1]))
    else:
        for each in shown:
            lines += _passage(each, width - 1)
    return lines


def _passage(shown: Passage, width: int, *, above: int = 0) -> list[Pieces]:
    """Return a passage with its source and context, sanitised and cut to a width."""
    excerpt = shown.excerpt
    lines: list[Pieces] = [((fit(f" {foreign(excerpt.place, width - 2).rstrip()}", width), "accent"),)]
    lines += [((" " * width, "text"),)] * above
    parts: tuple[tuple[Iterable[str], Role], ...] = (
        (shown.before, "dim"),
        (excerpt.text.split("\n") if excerpt.text else (), "text"),
        (shown.after, "dim"),
    )
    number = excerpt.first_line - len(shown.before)
    for texts, role in parts:
        for text in texts:
            label = f"{number:>5} " if excerpt.first_line else "      "
            lines.append(cut(((label, "dim"), (foreign(text.expandtabs(4), width - 6), role)), width))
            number += 1
    return lines
