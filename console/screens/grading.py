"""The grading screen: fields for competition and file, the report on the file, and the history of gradings."""

from __future__ import annotations

import csv
import itertools
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
from textual.containers import Vertical
from textual.fuzzy import FuzzySearch
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console import grade_submission
from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition, Edition
from mlebench_console.competitions.registry import all_ids, get
from mlebench_console.console import wording
from mlebench_console.console.nouns.competition import competition
from mlebench_console.console.nouns.grading import EARNED, GRADING, PastGrading
from mlebench_console.console.nouns.outcomes import outcome_sign
from mlebench_console.console.pieces import Line
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role, better_arrow
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.widgets.blocks import Block, listing, longest, section, shortened, wrapped
from mlebench_console.console.tui.widgets.inputs import Field, FilePaths, LabelledField
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.tui.widgets.ruler import margined_ruler, medal_role, to_next
from mlebench_console.engine.datasets.plans import is_ready
from mlebench_console.engine.grading.report import Report
from mlebench_console.foundation import files
from mlebench_console.foundation.problems import DataProblem, Problem, UsageProblem

HISTORY_NAME = "graded.json"
_MOST_KEPT = 200
_MOST_BYTES = 1 << 20
_NAMED_ROW = re.compile(r"(?:^|\. )Row (\d{1,9})\b")
_BESIDE = 1
# Rows further down are not looked up: reading them would take longer than the grading.
_MOST_ROWS = 5_000_000
_LONGEST = 4_000
Signature = tuple[int, ...] | None

_LOOK_SECONDS = 1.0
# Reads from disks that do not respond can't be cancelled; with this many pending, no further read is started.
_MOST_WAITING = 3
_MOST_CHOICES = 8


_LABEL = 14
_MOST_DEFECTS = 4
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


@dataclass(frozen=True)
class FileRow:
    """One row of a graded file; number 0 is the header."""

    number: int
    text: str
    is_wrong: bool


@dataclass(frozen=True)
class GradedFile:
    """The report on a file, with its competition and the duration of grading.

    Attributes:
        rows: the row that a refusal names, with its neighbours.
    """

    competition: Competition
    report: Report
    bytes: int | None
    seconds: float
    rows: tuple[FileRow, ...] = ()


def prepared_competitions(data_dir: Path) -> tuple[str, ...]:
    """Return the competitions whose data are prepared, which files can be graded for; damaged ones are left out."""

    def is_prepared(competition_id: str) -> bool:
        try:
            return is_ready(competition_id, "v1", data_dir)
        except DataProblem:
            return False

    return tuple(filter(is_prepared, all_ids()))


def grade_file(competition_id: str, path: Path, data_dir: Path, edition: Edition = "v1") -> GradedFile:
    """Grade a file; slow, so call it in a thread.

    Raises:
        Problem: unknown competition, unprepared dataset, or no such file.
    """
    found = get(competition_id)
    if not path.is_file():
        raise _no_file(path)
    began = time.monotonic()
    report = grade_submission(path, competition_id, data_dir=data_dir, edition=edition)
    rows = rows_behind(path, report.message) if report.score is None else ()
    return GradedFile(found, report, path.stat().st_size, time.monotonic() - began, rows)


def _no_file(path: Path) -> UsageProblem:
    """Return what is wrong with a path that is not that of a file."""
    if path.is_dir():
        return UsageProblem(f"{path} is a folder", "", "Name the CSV file in it.")
    missing = [folder for folder in path.parents if not folder.exists()]
    why = f"its folder {missing[-1]} does not exist" if missing else "its folder has no file of that name"
    return UsageProblem(f"there is no file {path}", why, "Correct the path.")


def file_signature(path: Path) -> tuple[int, ...] | None:
    """Return values that change when a file changes; None if it does not exist. Waits for the disk."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def past_grading(report: Report, path: Path, at: float) -> PastGrading:
    """Return a report's entry for the history."""
    earned = report.medal or ("above median" if report.above_median else "below median")
    return PastGrading(
        report.competition_id,
        str(path),
        at,
        report.edition,
        report.outcome,
        report.score,
        earned if report.score is not None else "",
        report.message,
    )


def read_past(state_dir: Path) -> tuple[PastGrading, ...]:
    """Read the history, newest first; empty if it is damaged."""
    try:
        with files.reading_untrusted(state_dir / HISTORY_NAME, max_bytes=_MOST_BYTES) as stream:
            return msgspec.json.decode(stream.read(), type=tuple[PastGrading, ...])
    except (OSError, msgspec.DecodeError, DataProblem):
        return ()


def write_past(state_dir: Path, past: tuple[PastGrading, ...]) -> None:
    """Write the history, if the state directory exists."""
    if state_dir.is_dir():
        kept = [asdict(each) for each in past[:_MOST_KEPT]]
        files.write_json(state_dir / HISTORY_NAME, kept, durable=False)


def rows_behind(path: Path, message: str) -> tuple[FileRow, ...]:
    """Read the header, the row that a message names and its neighbours; empty if it names none.

    Rows are counted as graders do, as records of the table: a cell may contain line ends.
    """
    named = _NAMED_ROW.search(message)
    wanted = int(named[1]) if named else 0
    if not 0 < wanted <= _MOST_ROWS:
        return ()
    found: list[FileRow] = []
    try:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            for number, cells in enumerate(itertools.islice(csv.reader(stream), wanted + _BESIDE + 1)):
                if number == 0 or abs(number - wanted) <= _BESIDE:
                    text = ",".join(cells)[:_LONGEST]
                    found.append(FileRow(number, text, number == wanted))
    except (OSError, csv.Error):
        pass  # the report is sufficient without them
    return tuple(found)


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
        yield Painted(id="verdict")
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
        yield Painted(id="metric")
        yield LineList(id="history")
        yield Painted(id="about")

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
        key = self.query_one(LineList).key
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
            partial(_graded, asked, self.app.places.data_dir, self._waiting),
            partial(self._take, asked),
            failed=partial(self._take, asked),
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
        history = self.query_one(LineList) if self.is_composed() else None
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
        metric: list[Block] = []
        if chosen is not None:
            metric.append(_metric(chosen, self._edition, self.app.drawing))
            if self._is_unprepared(chosen.id):
                metric.append((_label(""), ("its data are not prepared: Data prepares them", "warn")))
        self.query_one("#metric", Painted).show(*metric)
        verdict = self.query_one("#verdict", Painted)
        verdict.show(*self._watching(), *self._hint(), *self._result())
        verdict.display = bool(verdict.text)
        has_room = self._asked is None and self._found is None
        self.query_one(LineList).show(
            [*_history(self._past, explains=has_room), *_graded_for(self._prepared)]
        )
        self._draw_about()

    def _watching(self) -> Iterable[Block]:
        """Return which file is graded again when it changes."""
        if self._watched is None:
            return ()
        stop = self.app.drawing.keys("grade.watch")
        # Elsewhere the first field, or the history, shows the competition.
        of = f" for {self._watched.competition_id}" if self.size.width >= _WIDE else ""
        before: Piece = (" watching ", "running")
        after: Piece = (f"{of}: graded again when it changes, {stop} stops", "running")
        path = str(self._watched.path)
        return (shortened(path, "running", before=(before,), after=(after,), is_path=True), ())

    def _draw_about(self) -> None:
        """Draw the full path and the problem of the history's line under the cursor."""
        history = self.query_one(LineList)
        about = self.query_one("#about", Painted)
        key = history.key if history.has_focus else None
        about.show(*(_about_past(key) if isinstance(key, PastGrading) else ()))

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

    def _hint(self) -> Iterable[Block]:
        """Return the hint for a form that was left half filled."""
        typed, path = self._typed()
        if self.focused is not None or bool(typed) == bool(path):
            return ()
        missing = "no file is named yet" if typed else "no competition is named yet"
        back = f" {missing}: {self.app.drawing.keys('grade.next')} goes back"
        return (longest(((f"{back} to the fields, digits switch screens", "accent"),), ((back, "accent"),)),)

    def _result(self) -> Iterable[Block]:
        if self._asked is not None:
            key = self.app.drawing.keys("grade.back")
            after: Piece = (f"   {key} {key} waits no longer", "running")
            grading = shortened(f" grading {self._asked.path.name}", "running", after=(after,))
            return (grading, *self._report())
        if isinstance(self._found, Problem):
            problem, failed = self._found, self.app.signs.failed
            return (
                wrapped(problem.what, "bad", _label(f"{failed} not graded")),
                wrapped(problem.why, "warn", _label("cause")),
                wrapped(problem.next_step, "text", _label("next")),
            )
        return self._report()

    def _report(self) -> Iterable[Block]:
        """Return the report shown last, if it is of the same file still."""
        if not isinstance(self._found, GradedFile):
            return ()
        name = self.app.drawing.keys
        again = f"{name('grade.run')} grades it again, {name('grade.watch')} whenever it changes"
        drawing, (width, height) = self.app.drawing, self.size
        return _report(
            self._found, f"mend the file; {again}", drawing, wide=width >= _WIDE, high=height >= _HIGH
        )

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


def _label(text: str) -> Piece:
    return f" {text:<{_LABEL}}", "dim"


def _metric(found: Competition, edition: Edition, drawing: Drawing) -> Block:
    """Return the line with the metric, its better direction, and the edition."""
    arrow, dot = better_arrow(found.thresholds, drawing.signs), drawing.signs.dot
    which = f", {wording.better(found.thresholds)} {arrow} {dot} {found.complexity} {dot} edition {edition}"
    return shortened(found.metric.name, "dim", before=(_label("metric"),), after=((which, "dim"),))


def _report(graded: GradedFile, mend: str, drawing: Drawing, *, wide: bool, high: bool) -> Iterator[Block]:
    """Yield a report: the result, its place among the cut-offs, and for a refused file what to do."""
    report, cuts = graded.report, graded.competition.thresholds
    yield _verdict(graded, drawing)
    took = f"   {wording.size(graded.bytes)}, graded in {graded.seconds:.1f} s, " if wide else "   "
    after: Piece = (f"{took}edition {report.edition}", "dim")
    file = shortened(report.submission_path, before=(_label("file"),), after=(after,), is_path=True)
    if report.score is None:
        yield from _listed("why", report.message.splitlines(), "warn")
        for place, row in enumerate(graded.rows):
            number = f"{row.number:,}" if row.number else "heading"
            label = _label("" if place else "rows")
            yield label, (f"{number:>9}  ", "dim"), (row.text, "warn" if row.is_wrong else "dim")
        yield wrapped(mend, "text", _label("next"))
    yield file
    if report.score is not None or high:
        yield ()
        yield margined_ruler(cuts, report.score)
    if report.defects:
        yield ()
        yield _label("known defects"), (f"of this competition in edition {report.edition}", "dim")
        # Leave room for the history below.
        yield from _listed("", report.defects[:_MOST_DEFECTS], "dim", most=4 if high else 1)


def _verdict(graded: GradedFile, drawing: Drawing) -> Block:
    """Return the result in one line: medal, score, distance to the next medal, rank; or why there is none."""
    report, cuts = graded.report, graded.competition.thresholds
    if report.score is None:
        why = _OUTCOMES.get(report.outcome, report.outcome)
        return ((f" {f'{drawing.signs.invalid} not valid':<{_LABEL}}", "bad"), (why, "bad"))
    earned = report.medal or ("above median" if report.above_median else "below median")
    sign = outcome_sign(EARNED[earned], drawing.signs)
    head: Pieces = (
        (f" {f'{sign} {earned}':<{_LABEL - 1}} ", medal_role(cuts, report.score)),
        (f"{report.score:.5f}", "strong"),
        (f" {better_arrow(cuts, drawing.signs)}   ", "dim"),
        (to_next(cuts, report.score), "text"),
    )
    if report.percentile is None:
        return head
    ranks = (wording.rank(report.percentile), wording.rank(report.percentile, short=True))
    return longest(*((*head, (f"   {rank}", "text")) for rank in ranks), head)


def _listed(label: str, texts: Iterable[str], role: Role, *, most: int = 4) -> Iterator[Block]:
    """Yield texts below each other, the first one behind a label."""
    for place, text in enumerate(texts):
        yield wrapped(text, role, _label("" if place else label), most=most)


def _about_past(past: PastGrading) -> Iterator[Block]:
    """Yield the full path of a line of the history, as far as it fits, and why it had no score."""
    yield shortened(past.path, before=(_label("path"),), is_path=True)
    yield _label("graded"), (f"{wording.date_and_time(past.at)}, edition {past.edition}", "dim")
    yield wrapped(past.message, "warn", _label("why"))


def _history(past: Sequence[PastGrading], *, explains: bool) -> Iterator[Block]:
    """Yield the history, newest first; if it is empty, an explanation of the screen."""
    if not past:
        if explains:
            yield wrapped(_PURPOSE, "dim", ("  ", "text"))
        return
    edition = "edition" if any(each.edition != "v1" for each in past) else ""
    why = "why" if any(each.message for each in past) else ""
    columns = GRADING.columns(f"age graded competition result {edition} file {why}")
    yield section("graded before", str(len(past)))
    yield listing(columns, past, key=lambda each: each)


def _graded_for(prepared: tuple[str, ...] | None) -> Iterator[Block]:
    """Yield the competitions that files can be graded for, under a heading; nothing until they are known."""
    if prepared is None:
        return
    yield ()
    yield section("prepared competitions", str(len(prepared)))
    yield from (Line(((f"  {name}", "text"),), key=name, selectable=True) for name in prepared)
    if not prepared:
        yield (("  none yet: a dataset has to be prepared on Data first", "warn"),)


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


def _graded(asked: _Asked, data_dir: Path, waiting: set[_Asked]) -> GradedFile:
    try:
        return grade_file(asked.competition_id, asked.path, data_dir, asked.edition)
    finally:
        waiting.discard(asked)
