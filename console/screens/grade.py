"""The grading screen: a competition, a file, and what that file is worth."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from competitions import registry
from competitions.model import Edition
from console.screens import grade_lines
from console.tui.keys import bindings, shown_key
from console.tui.painting import Pieces, foreign
from console.tui.screen import ConsoleScreen
from console.tui.widgets.inputs import CompetitionNames, Field, FilePaths, Row
from console.tui.widgets.line_list import LineList
from console.tui.widgets.painted import Painted
from console.views import fuzzy
from console.views.graded import (
    Past,
    keep_past,
    past_of,
    read_past,
)
from console.views.grading import Graded, grade_file, signature
from console.views.splits import competition
from foundation.problems import Problem

Signature = tuple[int, ...] | None

_LOOK_SECONDS = 1.0


class GradeScreen(ConsoleScreen):
    """Two fields and a verdict."""

    CONTEXTS = ("grade", "list")
    MODE = "grade"
    REMEMBERED_AS = "grade"
    BINDINGS = bindings("grade")
    AUTO_FOCUS = "#competition"

    def __init__(self) -> None:
        super().__init__()
        self._graded: Graded | None = None
        self._problem: Problem | None = None
        self._choices: tuple[str, ...] = ()
        self._number = 0
        self._busy = False
        self._edition: Edition = "v1"
        self._past: tuple[Past, ...] = ()
        self._watched: Path | None = None
        # What was graded last, and what was seen at the last look: a file is graded once it stands still.
        self._graded_as: Signature = None
        self._seen_as: Signature = None

    def body(self) -> Iterable[Widget]:
        """The fields, what fits what is typed, and the verdict."""
        yield Vertical(
            Row(
                "competition",
                Field(suggester=CompetitionNames(), placeholder="some of its letters", id="competition"),
            ),
            Painted(id="choices"),
            Row("submission", Field(suggester=FilePaths(), placeholder="path of a CSV file", id="path")),
            id="form",
        )
        yield Painted(id="metric")
        yield Painted(id="verdict")
        yield LineList(id="history")

    def on_mount(self) -> None:
        """Begin where one was the last time."""
        self.set_interval(_LOOK_SECONDS, self._look)
        self.in_background(partial(read_past, self.app.places.state_dir), self._take_past)

    def fill_in(self, competition_id: str, path: str) -> None:
        """Fill the fields, and grade if both are given."""
        if competition_id:
            self.query_one("#competition", Input).value = competition_id
        if path:
            self.query_one("#path", Input).value = path
        if competition_id and path:
            self._grade()
        else:
            self.query_one("#path" if competition_id else "#competition").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show which competitions fit what is typed."""
        event.stop()
        if event.input.id == "competition":
            typed = event.value.strip()
            self._choices = fuzzy.best(typed, registry.all_ids()) if typed else ()
        self.draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the best fitting competition, or grade."""
        event.stop()
        if event.input.id == "competition":
            if self._choices:
                event.input.value = self._choices[0]
            self.query_one("#path").focus()
        else:
            self._grade()

    def on_line_list_opened(self) -> None:
        """Grade again what was graded before."""
        key = self.query_one("#history", LineList).key
        if isinstance(key, Past):
            self.fill_in(key.competition_id, key.path)

    def action_submit(self) -> None:
        """Grade."""
        self._grade()

    def action_watch(self) -> None:
        """Grade again whenever the file changes, or no longer."""
        typed = self.query_one("#path", Input).value.strip()
        if self._watched is not None:
            self._watched = None
        elif typed:
            self._watched, self._graded_as, self._seen_as = Path(typed).expanduser(), None, None
            self._look()
        else:
            self.app.say("a file is needed to watch it")
        self.draw()

    def action_edition(self) -> None:
        """Grade by the other edition."""
        self._edition = "corrected" if self._edition == "v1" else "v1"
        if self._graded is not None or self._problem is not None:
            self._grade()
        self.draw()

    def action_back(self) -> None:
        """Leave the field, so that digits switch screens."""
        self.set_focus(None)
        self.draw()

    def is_whole(self) -> bool:
        """The fields are made after their rows."""
        return super().is_whole() and all(self.query(each) for each in ("#path", "#competition", "#history"))

    def redraw(self) -> None:
        """Draw what fits, and the verdict."""
        width = self.size.width
        chosen = competition(self.query_one("#competition", Input).value.strip())
        choices = () if chosen is not None else self._choices
        self.query_one("#choices", Painted).show(
            *(self._choice(place, name) for place, name in enumerate(choices))
        )
        self.query_one("#metric", Painted).show(
            *(
                (grade_lines.about(chosen, self._edition, self.app.signs, width),)
                if chosen is not None
                else ()
            )
        )
        watched: Pieces = ((" watching: it is graded again when it changes", "running"),)
        told = (*self._left(width), *self._verdict(width))
        self.query_one("#verdict", Painted).show(*((watched, ()) if self._watched is not None else ()), *told)
        shown = self.query_one("#history", LineList)
        room = shown.scrollable_content_region.width or width
        shown.show(grade_lines.history(self._past, room, self.app.signs))

    def _choice(self, place: int, name: str) -> Pieces:
        return (
            (name, "strong" if not place else "dim"),
            (f"  {self.app.signs.enter} takes it" if not place else "", "faint"),
        )

    def on_descendant_focus(self) -> None:
        """A form that is gone on with needs no hint."""
        self.draw()

    def _left(self, width: int) -> tuple[Pieces, ...]:
        """What to do about a form that was left half filled."""
        typed, path = (self.query_one(name, Input).value.strip() for name in ("#competition", "#path"))
        if self.focused is not None or bool(typed) == bool(path):
            return ()
        missing = "no file is named yet" if typed else "no competition is named yet"
        return (grade_lines.left(missing, shown_key(self.app.settings.keys)("grade.next"), width),)

    def _verdict(self, width: int) -> tuple[Pieces, ...]:
        if self._busy:
            return (((" grading", "running"),),)
        if self._problem is not None:
            lines = str(self._problem).splitlines()
            return tuple(
                ((f" {foreign(line, width - 2).rstrip()}", "bad" if not place else "dim"),)
                for place, line in enumerate(lines)
            )
        return () if self._graded is None else grade_lines.verdict(self._graded, width, self.app.signs)

    def _grade(self) -> None:
        typed = self.query_one("#competition", Input).value.strip()
        path = self.query_one("#path", Input).value.strip()
        if not typed or not path:
            self.app.say("a competition and a file are needed")
            return
        self._number += 1
        self._busy, self._problem, self._graded = True, None, None
        self.draw()
        file = Path(path).expanduser()
        work = partial(_graded_or_problem, typed, file, self.app.places.data_dir, self._edition)
        self.in_background(work, partial(self._take, self._number, file))

    def _take(self, number: int, path: Path, found: Graded | Problem) -> None:
        if number != self._number:
            return
        self._busy = False
        if isinstance(found, Problem):
            self._problem = found
        else:
            self._graded = found
            newest = past_of(found.report, path.absolute(), self.app.now())
            older = [each for each in self._past if not _same_file(each, newest)]
            self._past = (newest, *older)
            if not self.app.readonly:
                self.in_background(partial(keep_past, self.app.places.state_dir, self._past), lambda _: None)
        self.draw()

    def _take_past(self, past: tuple[Past, ...]) -> None:
        self._past = past
        if past and self.is_whole() and not self.query_one("#competition", Input).value:
            # Filled in, not graded: the file may be another one by now.
            self.query_one("#competition", Input).value = past[0].competition_id
            self.query_one("#path", Input).value = past[0].path
        self.draw()

    def _look(self) -> None:
        """Look whether the watched file has changed."""
        if self._watched is not None and not self._busy:
            self.in_background(partial(signature, self._watched), self._seen)

    def _seen(self, found: Signature) -> None:
        still = found == self._seen_as
        self._seen_as = found
        if self._watched is None or self._busy or found is None or not still or found == self._graded_as:
            return
        self._graded_as = found
        self._grade()


def _same_file(one: Past, other: Past) -> bool:
    return (one.competition_id, one.path, one.edition) == (other.competition_id, other.path, other.edition)


def _graded_or_problem(competition_id: str, path: Path, data_dir: Path, edition: Edition) -> Graded | Problem:
    try:
        return grade_file(competition_id, path, data_dir, edition)
    except Problem as problem:
        return problem
