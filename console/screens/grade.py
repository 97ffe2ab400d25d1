"""The grading screen: a competition, a file, and what that file is worth."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from textual.containers import Vertical
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input

from competitions import registry
from console.keys import bindings
from console.model import fuzzy, paths
from console.model.grading import Graded, grade_file
from console.model.splits import competition
from console.painting import Pieces, foreign
from console.screens import grade_lines
from console.screens.base import ConsoleScreen
from console.widgets.form import Field, Row
from console.widgets.painted import Painted
from foundation.problems import Problem


class _Names(Suggester):
    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        found = [name for name in registry.all_ids() if name.lower().startswith(value.lower())]
        return found[0] if found and value else None


class _Files(Suggester):
    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        # In a thread of asyncio's: looking a name up may wait for a slow disk.
        import asyncio

        return await asyncio.to_thread(paths.complete, value) if value else None


class GradeScreen(ConsoleScreen):
    """Two fields and a verdict."""

    CONTEXTS = ("grade",)
    MODE = "grade"
    BINDINGS = bindings("grade")
    AUTO_FOCUS = "#competition"

    def __init__(self) -> None:
        super().__init__()
        self._graded: Graded | None = None
        self._problem: Problem | None = None
        self._choices: tuple[str, ...] = ()
        self._number = 0
        self._busy = False

    def body(self) -> Iterable[Widget]:
        """The fields, what fits what is typed, and the verdict."""
        yield Vertical(
            Row(
                "competition", Field(suggester=_Names(), placeholder="some of its letters", id="competition")
            ),
            Painted(id="choices"),
            Row("submission", Field(suggester=_Files(), placeholder="path of a CSV file", id="path")),
            id="form",
        )
        yield Painted(id="metric")
        yield Painted(id="verdict")

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

    def action_submit(self) -> None:
        """Grade."""
        self._grade()

    def action_back(self) -> None:
        """Leave the field, so that digits switch screens."""
        self.set_focus(None)
        self.draw()

    def is_whole(self) -> bool:
        """The fields are made after their rows."""
        return super().is_whole() and bool(self.query("#path")) and bool(self.query("#competition"))

    def redraw(self) -> None:
        """Draw what fits, and the verdict."""
        width = self.size.width
        chosen = competition(self.query_one("#competition", Input).value.strip())
        choices = () if chosen is not None else self._choices
        self.query_one("#choices", Painted).show(
            *(self._choice(place, name) for place, name in enumerate(choices))
        )
        self.query_one("#metric", Painted).show(
            *((grade_lines.about(chosen, self.app.signs, width),) if chosen is not None else ())
        )
        self.query_one("#verdict", Painted).show(*self._verdict(width))

    def _choice(self, place: int, name: str) -> Pieces:
        return (
            (name, "strong" if not place else "dim"),
            (f"  {self.app.signs.enter} takes it" if not place else "", "faint"),
        )

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
        work = partial(_graded_or_problem, typed, Path(path).expanduser(), self.app.places.data_dir)
        self.app.in_thread(work, partial(self._take, self._number))

    def _take(self, number: int, found: Graded | Problem) -> None:
        if number != self._number:
            return
        self._busy = False
        if isinstance(found, Problem):
            self._problem = found
        else:
            self._graded = found
        self.draw()


def _graded_or_problem(competition_id: str, path: Path, data_dir: Path) -> Graded | Problem:
    try:
        return grade_file(competition_id, path, data_dir)
    except Problem as problem:
        return problem
