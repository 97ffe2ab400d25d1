"""The grading screen: fields for competition and file, the report on the file, and the history of gradings."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.cells import cell_len
from textual.containers import Vertical
from textual.fuzzy import FuzzySearch
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.console import wording
from mlebench_console.console.nouns.competition import competition
from mlebench_console.console.nouns.grading import EARNED, GRADING, PastGrading
from mlebench_console.console.nouns.outcomes import outcome_sign
from mlebench_console.console.pieces import (
    Line,
    fitting,
    foreign,
    foreign_lines,
    foreign_path,
    heading,
)
from mlebench_console.console.roles import Piece, Pieces, Role, better_arrow
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.widgets.inputs import Field, FilePaths, LabelledField
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.ruler import medal_role, ruler, to_next
from mlebench_console.console.tui.widgets.table import Table
from mlebench_console.console.views.grading import (
    FileRow,
    GradedFile,
    file_signature,
    grade_file,
    past_grading,
    prepared_competitions,
    read_past,
    write_past,
)
from mlebench_console.foundation.problems import Problem, UsageProblem

Signature = tuple[int, ...] | None

_LOOK_SECONDS = 1.0
# Reads from disks that do not respond can't be cancelled; with this many pending, no further read is started.
_MOST_WAITING = 3
_MOST_CHOICES = 8


_LABEL = 14
_MOST_DEFECTS = 4
# The most lines of a text.
_MOST_LINES = 4
# In lower terminals each known defect has one line.
_HIGH = 32
# From this width on the history has dates beside times.
_WIDE = 100
_PURPOSE = (
    "Grades one CSV file against the answers of a prepared dataset, as the submission of a run is graded; no agent "
    "sees the score. What was graded is listed here."
)
_OUTCOMES = {
    "no_file": "no submission file",
    "not_csv": "not a table that can be read",
    "too_large": "larger than any right submission",
    "rejected": "refused by the competition's rules",
    "grader_error": "so odd that its grader failed",
    "limits_exceeded": "grading exceeded its limits",
}


@dataclass(frozen=True, eq=False)
class _Asked:
    """A requested grading; requests are compared by identity."""

    competition_id: str
    path: Path
    edition: Edition


class GradeScreen(ConsoleScreen):
    """Two fields, the report on the file, and the history."""

    CONTEXTS = ("grade", "list", "field")
    MODE = "grade"
    AUTO_FOCUS = "#competition"

    def __init__(self) -> None:
        super().__init__()
        self._found: GradedFile | Problem | None = None
        self._choices: tuple[str, ...] = ()
        self._edition: Edition = "v1"
        self._past: tuple[PastGrading, ...] = ()
        # The competitions with prepared data; None until they are known.
        self._prepared: tuple[str, ...] | None = None
        self._watched: _Asked | None = None
        # The request being graded, and the number of pending reads and gradings, which a stalled mount may block.
        self._asked: _Asked | None = None
        self._waiting: set[_Asked] = set()
        self._is_looking = False
        # The texts of the fields at the last request.
        self._about = ("", "")
        # The file's signatures at the last grading and at the last check: a file is graded once it stops changing.
        self._graded_as: Signature = None
        self._seen_as: Signature = None

    def body(self) -> Iterable[Widget]:
        """Return the report, the fields, the matching competitions, and the history."""
        yield GradingLines(id="verdict")
        yield Vertical(
            LabelledField(
                "competition",
                Field(
                    suggester=SuggestFromList(registry.all_ids(), case_sensitive=False),
                    placeholder="some of its letters",
                    id="competition",
                ),
            ),
            Painted(id="choices"),
            LabelledField(
                "submission", Field(suggester=FilePaths(), placeholder="path of a CSV file", id="path")
            ),
            id="form",
        )
        yield GradingLines(id="metric")
        yield GradingHistory(id="history")
        yield GradingLines(id="about")

    def on_mount(self) -> None:
        """Read the history."""
        self.set_interval(_LOOK_SECONDS, self._look)
        self.in_background(partial(read_past, self.app.places.state_dir), self._take_past)

    def on_screen_resume(self) -> None:
        """Look again which datasets are prepared: some may have become so meanwhile."""
        self.in_background(partial(prepared_competitions, self.app.places.data_dir), self._take_prepared)

    def fill_in(self, competition_id: str, path: str) -> None:
        """Fill the fields, and grade if both are given."""
        self._type(competition_id, path)
        if competition_id and path:
            self.action_submit()
        else:
            self.query_one("#path" if competition_id else "#competition").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the competitions that match the typed text."""
        event.stop()
        if isinstance(self._found, Problem) and self._typed() != self._about:
            self._found = None  # the report is about the previous text
        if event.input.id == "competition":
            typed = event.value.strip()
            self._choices = best_fits(typed, registry.all_ids()) if typed else ()
        self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Accept the best matching competition, or grade."""
        event.stop()
        if event.input.id == "competition":
            if self._choices:
                event.input.value = self._choices[0]
            self.query_one("#path").focus()
        else:
            self.action_submit()

    def on_line_list_opened(self) -> None:
        """Grade the file of the history's line again, or fill in the competition of the line."""
        key = self.query_one(GradingHistory).key
        if isinstance(key, PastGrading):
            self.fill_in(key.competition_id, key.path)
        elif isinstance(key, str):
            self.fill_in(key, "")

    def on_line_list_cursor_moved(self) -> None:
        """Show details of another line of the history, and the keys for it."""
        self._draw_about()
        self.refresh_frame()

    def on_descendant_focus(self) -> None:
        """Remove the hint when a field gets the focus; show details when the history gets it."""
        self.draw()

    def action_submit(self) -> None:
        """Grade the file."""
        asked = self._asked_for()
        if asked is not None:
            self._grade(asked)

    def _asked_for(self) -> _Asked | None:
        """Return the request for the typed texts, or show what is missing."""
        self._about = typed, path = self._typed()
        try:
            if typed:
                registry.get(typed)
        except Problem as problem:
            self._asked, self._found = None, problem
            self.draw()
            return None
        if not typed or not path:
            missing = "a competition and a file are" if not typed and not path else None
            self.app.say(f"{missing or ('a file is' if typed else 'a competition is')} needed")
            return None
        return _Asked(typed, Path(path).expanduser(), self._edition)

    def _grade(self, asked: _Asked) -> None:
        """Start a grading; the result of an earlier one that is still running is dropped."""
        if len(self._waiting) >= _MOST_WAITING:
            self._asked = None
            self._found = UsageProblem(
                f"{len(self._waiting)} files have not been read yet",
                "their disk does not answer",
                "Try again later.",
            )
            self.draw()
            return
        self._waiting.add(asked)
        if not self._is_about(asked):
            self._found = None
        self._asked = asked
        self.draw()
        self.in_background(
            partial(_graded_or_problem, asked, self.app.places.data_dir, self._waiting),
            partial(self._take, asked),
        )

    def _is_about(self, asked: _Asked) -> bool:
        """Return whether the report shown is about the same file, and so stays until the next one has come."""
        found = self._found
        return isinstance(found, GradedFile) and (found.competition.id, found.report.submission_path) == (
            asked.competition_id,
            str(asked.path),
        )

    def action_watch(self) -> None:
        """Start or stop grading the file again whenever it changes."""
        if self._watched is not None:
            self._watched = None
        else:
            self._watched, self._graded_as, self._seen_as = self._asked_for(), None, None
            self._look()
        self.draw()
        self.refresh_frame()

    def action_edition(self) -> None:
        """Grade by the other edition."""
        self._edition = "corrected" if self._edition == "v1" else "v1"
        if self._found is not None:
            self.action_submit()
        self.draw()

    def action_back(self) -> None:
        """Leave the field, so that digits switch screens; outside of a field, give up the running grading."""
        if self.focused is None and self._asked is not None:
            self._asked = None
        self.set_focus(None)
        self.draw()

    def is_composed(self) -> bool:
        """Whether the fields exist, which are created after their rows."""
        return super().is_composed() and all(
            self.query(each) for each in ("#path", "#competition", "#history", "#about")
        )

    def toggled_on(self) -> Collection[str]:
        """Return the key of watching."""
        return ("grade.watch",) if self._watched is not None else ()

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now: in a field, in the history, or outside of both."""
        history = self.query_one(GradingHistory) if self.is_composed() else None
        is_in_list = history is not None and history.has_focus
        if key.id == "grade.run" and history is not None and is_in_list:
            return "grade again" if isinstance(history.key, PastGrading) else "choose"
        if key.id == "grade.back" and not self.is_typing:
            return "leave list" if is_in_list else "wait no longer" if self._asked is not None else ""
        return "" if key.id == "field.complete" and not self.is_typing else super().label_of(key)

    def redraw(self) -> None:
        """Draw the matching competitions, the report, and the history."""
        signs = self.app.signs
        chosen = competition(self._typed()[0])
        choices: list[Pieces] = []
        for name in self._choices if chosen is None else ():
            first = not choices
            hint = f"  {signs.enter} chooses it" if first else ""
            lacks = "  not prepared" if self._is_unprepared(name) else ""
            choices.append(((name, "strong" if first else "dim"), (lacks, "warn"), (hint, "dim")))
        self.query_one("#choices", Painted).show(*choices)
        about, verdict = self.query_one("#metric", GradingLines), self._verdict
        metric: list[Pieces] = []
        if chosen is not None:
            metric.append(about.metric(chosen, self._edition))
            if self._is_unprepared(chosen.id):
                metric.append(_labelled("", ("its data are not prepared: Data prepares them", "warn")))
        about.show(*metric)
        watching: tuple[Pieces, ...] = ()
        if self._watched is not None:
            path, of = str(self._watched.path), f" for {self._watched.competition_id}"
            stop = self.app.drawing.keys("grade.watch")
            after = f": graded again when it changes, {stop} stops"
            room = self.size.width - len(f" watching {of}{after}") - 1
            if room < 12:
                of, room = "", room + len(of)  # the first field, or the history, shows the competition
            ends = foreign_path(path, max(10, room), ellipsis=signs.ellipsis).strip()
            watching = (verdict.line(f"watching {ends}{of}{after}", "running"), ())
        verdict.show(*watching, *self._hint(), *self._result())
        verdict.display = bool(verdict.text)
        history = self.query_one(GradingHistory)
        has_room = self._asked is None and self._found is None
        lines = history.past(self._past, explains=has_room)
        history.show([*lines, *history.prepared(self._prepared)])
        self._draw_about()

    def _draw_about(self) -> None:
        """Draw the full path and the problem of the history's line under the cursor."""
        history = self.query_one(GradingHistory)
        about = self.query_one("#about", GradingLines)
        about.show(*(about.past(history.key) if history.has_focus else ()))

    @property
    def _verdict(self) -> GradingLines:
        """The report on the file."""
        return self.query_one("#verdict", GradingLines)

    def _typed(self) -> tuple[str, str]:
        """The typed competition and path."""
        names = ("#competition", "#path")
        typed, path = (self.query_one(name, Input).value.strip() for name in names)
        return typed, path

    def _type(self, competition_id: str, path: str) -> None:
        """Fill the fields; empty texts leave a field unchanged."""
        for name, value in (("#competition", competition_id), ("#path", path)):
            if value:
                field = self.query_one(name, Input)
                field.value = value
                # Scroll a long path to its end, once the field's width is known.
                self.call_after_refresh(field.action_end)

    def _hint(self) -> tuple[Pieces, ...]:
        """Return the hint for a form that was left half filled."""
        typed, path = self._typed()
        if self.focused is not None or bool(typed) == bool(path):
            return ()
        missing = "no file is named yet" if typed else "no competition is named yet"
        key = self.app.drawing.keys("grade.next")
        forms = (
            f"{missing}: {key} goes back to the fields, digits switch screens",
            f"{missing}: {key} goes back",
        )
        return (fitting([((f" {text}", "accent"),) for text in forms], self.size.width),)

    def _result(self) -> tuple[Pieces, ...]:
        if self._asked is not None:
            key = self.app.drawing.keys("grade.back")
            text = f"grading {self._asked.path.name}   {key} {key} waits no longer"
            return (self._verdict.line(text, "running"), *self._report())
        if isinstance(self._found, Problem):
            problem, failed = self._found, self.app.signs.failed
            told = self._verdict.listed(f"{failed} not graded", [problem.what], "bad")
            told += self._verdict.listed("cause", filter(None, [problem.why]), "warn")
            return (*told, *self._verdict.listed("next", filter(None, [problem.next_step]), "text"))
        return self._report()

    def _report(self) -> tuple[Pieces, ...]:
        """Return the report shown last, if it is of the same file still."""
        if not isinstance(self._found, GradedFile):
            return ()
        name = self.app.drawing.keys
        again = f"{name('grade.run')} grades it again, {name('grade.watch')} whenever it changes"
        return self._verdict.report(self._found, f"mend the file; {again}")

    def _take(self, asked: _Asked, found: GradedFile | Problem) -> None:
        if asked is not self._asked:
            return  # another request was made meanwhile
        self._asked, self._found = None, found
        if isinstance(found, GradedFile):
            newest = past_grading(found.report, asked.path.absolute(), self.app.now())
            older = [each for each in self._past if not _same_file(each, newest)]
            self._past = (newest, *older)
            if not self.app.readonly:
                self.in_background(partial(write_past, self.app.places.state_dir, self._past))
        self.draw()

    def _take_past(self, past: tuple[PastGrading, ...]) -> None:
        self._past = past
        if past and self.is_composed() and not self._typed()[0]:
            # Only filled in, not graded: the file may have changed since.
            self._type(past[0].competition_id, past[0].path)
        self.draw()

    def _is_unprepared(self, competition_id: str) -> bool:
        """Return whether a competition's data are known to be missing; known only of edition v1."""
        return self._edition == "v1" and self._prepared is not None and competition_id not in self._prepared

    def _take_prepared(self, prepared: tuple[str, ...]) -> None:
        self._prepared = prepared
        self.draw()

    def _look(self) -> None:
        """Check whether the watched file has changed, one check at a time."""
        if self._watched is not None and self._asked is None and not self._is_looking:
            self._is_looking = True
            self.in_background(
                partial(file_signature, self._watched.path), partial(self._take_signature, self._watched)
            )

    def _take_signature(self, watched: _Asked, found: Signature) -> None:
        self._is_looking = False
        if watched is not self._watched:
            return
        is_still = found == self._seen_as
        self._seen_as = found
        if self._asked is not None or found is None or not is_still or found == self._graded_as:
            return
        self._graded_as = found
        self._grade(replace(watched, edition=self._edition))


class GradingLines(Painted):
    """Lines about one file behind labels, as wide as the screen."""

    def metric(self, found: Competition, edition: Edition) -> Pieces:
        """Return the line with the metric, its better direction, and the edition."""
        drawing = self.app.drawing
        arrow = better_arrow(found.thresholds, drawing.signs)
        rest = f" {drawing.signs.dot} {found.complexity} {drawing.signs.dot} edition {edition}"
        which = f", {wording.better(found.thresholds)} {arrow}{rest}"
        name = foreign(
            found.metric.name, max(10, self.screen.size.width - _LABEL - 2 - cell_len(which))
        ).rstrip()
        return _labelled("metric", (f"{name}{which}", "dim"))

    def report(self, graded: GradedFile, mend: str) -> tuple[Pieces, ...]:
        """Return a report: the result, its place among the cut-offs, and for a refused file what to do."""
        drawing, (width, height) = self.app.drawing, self.screen.size
        report, cuts = graded.report, graded.competition.thresholds
        lines: list[Pieces] = [self._verdict(graded)]
        ends = [
            f"   {wording.size(graded.bytes)}, graded in {graded.seconds:.1f} s, edition {report.edition}"
        ]
        ends.append(f"   edition {report.edition}")
        took = ends[0] if width >= _WIDE else ends[1]
        path = foreign_path(
            report.submission_path, max(20, width - _LABEL - len(took) - 2), ellipsis=drawing.signs.ellipsis
        )
        file: Pieces = _labelled("file", (path, "text"), (took, "dim"))
        if report.score is None:
            lines += self.listed("why", report.message.splitlines(), "warn")
            lines += self._rows(graded.rows)
            lines += [*self.listed("next", [mend], "text"), file]
        else:
            lines.append(file)
        if report.score is not None or height >= _HIGH:
            lines.append(())
            lines += [
                ((" ", "text"), *pieces) for pieces in ruler(cuts, report.score, width - 2, drawing.signs)
            ]
        if report.defects:
            lines += [
                (),
                _labelled("known defects", (f"of this competition in edition {report.edition}", "dim")),
            ]
            # Leave room for the history below.
            most_lines = _MOST_LINES if height >= _HIGH else 1
            lines += self.listed("", report.defects[:_MOST_DEFECTS], "dim", most_lines=most_lines)
        return tuple(lines)

    def _verdict(self, graded: GradedFile) -> Pieces:
        """Return the result in one line: medal, score, distance to the next medal, rank; or why there is none."""
        drawing = self.app.drawing
        report, cuts = graded.report, graded.competition.thresholds
        if report.score is None:
            why = _OUTCOMES.get(report.outcome, report.outcome)
            return ((f" {f'{drawing.signs.invalid} not valid':<{_LABEL}}", "bad"), (why, "bad"))
        earned = report.medal or ("above median" if report.above_median else "below median")
        head: Pieces = (
            (
                f" {f'{outcome_sign(EARNED[earned], drawing.signs)} {earned}':<{_LABEL - 1}} ",
                medal_role(cuts, report.score),
            ),
            (f"{report.score:.5f}", "strong"),
            (f" {better_arrow(cuts, drawing.signs)}   ", "dim"),
        )
        further: Pieces = ((to_next(cuts, report.score), "text"),)
        forms: list[Pieces] = [(*head, *further)]
        if report.percentile is not None:
            ranks = (wording.rank(report.percentile), wording.rank(report.percentile, short=True))
            forms[:0] = [(*head, *further, ("   ", "text"), (rank, "text")) for rank in ranks]
        return fitting(forms, self.screen.size.width)

    def _rows(self, rows: Sequence[FileRow]) -> list[Pieces]:
        """Return the file's rows that a refusal names."""
        lines = []
        for place, row in enumerate(rows):
            number = f"{row.number:,}" if row.number else "heading"
            text = foreign(row.text, max(10, self.screen.size.width - _LABEL - 14)).rstrip()
            pieces: Pieces = ((f"{number:>9}  ", "dim"), (text, "warn" if row.is_wrong else "dim"))
            lines.append(_labelled("" if place else "rows", *pieces))
        return lines

    def past(self, key: Hashable) -> tuple[Pieces, ...]:
        """Return the full path of a line of the history, as far as it fits, and why it had no score."""
        if not isinstance(key, PastGrading):
            return ()
        path = _labelled("path", (foreign_path(key.path, self.screen.size.width - _LABEL - 2), "text"))
        day = _labelled("graded", (f"{wording.date_and_time(key.at)}, edition {key.edition}", "dim"))
        return (path, day, *(self.listed("why", [key.message], "warn") if key.message else ()))

    def listed(
        self, label: str, texts: Iterable[str], role: Role, *, most_lines: int = _MOST_LINES
    ) -> list[Pieces]:
        """Return texts below each other, the first one behind a label."""
        shown = (
            part
            for text in texts
            for part in foreign_lines(text, self.screen.size.width - _LABEL - 2, most_lines)
        )
        return [_labelled("" if place else label, (text, role)) for place, text in enumerate(shown)]

    def line(self, text: str, role: Role) -> Pieces:
        """Return one line of text, cut to the width."""
        return ((f" {foreign(text, self.screen.size.width - 2).rstrip()}", role),)

    def lines(self, text: str, role: Role) -> list[Pieces]:
        """Return a text on as many lines as it needs."""
        return [
            ((f" {part}", role),) for part in foreign_lines(text, self.screen.size.width - 2, _MOST_LINES)
        ]


class GradingHistory(LineList):
    """What was graded before, and the competitions that files can be graded for."""

    def past(self, past: Sequence[PastGrading], *, explains: bool) -> list[Line]:
        """Return the history, newest first; if it is empty, an explanation of the screen."""
        width, drawing = self.line_width, self.app.drawing
        if not past:
            parts = foreign_lines(_PURPOSE, width - 3) if explains else []
            return [Line(((f"  {part}", "dim"),)) for part in parts]
        edition = "edition" if any(each.edition != "v1" for each in past) else ""
        why = "why" if any(each.message for each in past) else ""
        columns = GRADING.columns(f"age graded competition result {edition} file {why}")
        table = Table(columns, past, width, drawing)
        title = Line(heading("graded before", width, drawing.signs, note=str(len(past))))
        return [title, table.heading(), *(table.line(each, key=each) for each in past)]

    def prepared(self, prepared: tuple[str, ...] | None) -> list[Line]:
        """Return the competitions that files can be graded for, under a heading; nothing until they are known."""
        if prepared is None:
            return []
        title = Line(
            heading("prepared competitions", self.line_width, self.app.drawing.signs, note=str(len(prepared)))
        )
        nothing = Line((("  none yet: a dataset has to be prepared on Data first", "warn"),))
        lines = [Line(((f"  {name}", "text"),), key=name, selectable=True) for name in prepared]
        return [Line(), title, *(lines or [nothing])]


def best_fits(typed: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that contain the typed text, or else those with its letters in the same order."""
    wanted = typed.lower().replace(" ", "")
    places = {name: place for name in names if (place := name.lower().find(wanted)) >= 0}
    found = sorted(places, key=lambda name: (places[name], len(name)))
    if not found:
        search = FuzzySearch()
        scores = {name: score for name in names if (score := search.match(wanted, name)[0]) > 0}
        found = sorted(scores, key=lambda name: (-scores[name], name))
    return tuple(found[:_MOST_CHOICES])


def _same_file(one: PastGrading, other: PastGrading) -> bool:
    return (one.competition_id, one.path, one.edition) == (other.competition_id, other.path, other.edition)


def _graded_or_problem(asked: _Asked, data_dir: Path, waiting: set[_Asked]) -> GradedFile | Problem:
    try:
        return grade_file(asked.competition_id, asked.path, data_dir, asked.edition)
    except Problem as problem:
        return problem
    finally:
        waiting.discard(asked)


def _labelled(label: str, *pieces: Piece) -> Pieces:
    return ((f" {label:<{_LABEL}}", "dim"), *pieces)
