"""The launch screen: compose a sweep, see what it comes to and what is missing, mend that, launch it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from textual.containers import Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from competitions import registry
from console import wording
from console.screens import launch_lines
from console.screens.confirm import ConfirmScreen
from console.screens.launch_fields import COLUMNS, FIELDS
from console.tui.keys import bindings
from console.tui.painting import Pieces
from console.tui.screen import ConsoleScreen
from console.tui.widgets.inputs import Field, Row
from console.tui.widgets.painted import Painted
from console.views.composing import (
    OBFUSCATED,
    Composed,
    Draft,
    agents_known,
    compose,
)
from console.views.mending import build_images
from engine.sweeps.checks import Mend
from environment.runner import runtime

# Lines below what a draft comes to in which the dry run is worth its place without being asked for.
_ROOM_FOR_BOTH = 8
_QUESTION_MARGIN = 16


class LaunchScreen(ConsoleScreen):
    """A form on top, below what it comes to."""

    CONTEXTS = ("launch",)
    MODE = "launch"
    REMEMBERED_AS = "launch"
    BINDINGS = bindings("launch")
    AUTO_FOCUS = "#agent"

    def __init__(self) -> None:
        super().__init__()
        self._draft = Draft()
        self._composed: Composed | None = None
        self._dry_run = False
        self._building = ""
        self._number = 0
        self._launched = Draft()

    def body(self) -> Iterable[Widget]:
        """The fields in two columns, then what they come to."""
        columns = []
        for column in COLUMNS:
            rows = [Row(one.label, self._field(one.name, one.hint)) for one in column]
            columns.append(Vertical(*rows, classes="column"))
        yield Horizontal(*columns, id="form")
        yield Painted(id="composed")

    def _field(self, name: str, hint: str) -> Field:
        return Field(str(getattr(self._draft, name)), placeholder=hint, id=name, select_on_focus=False)

    def on_mount(self) -> None:
        """Learn which agents there are, and what the empty form lacks."""
        self.in_background(partial(agents_known, ""), lambda found: self._suggest([a.id for a in found]))
        self._work_out()

    def is_whole(self) -> bool:
        """The fields are made after their rows."""
        return super().is_whole() and len(self.query(Field)) == len(FIELDS)

    def beat(self) -> None:
        """What is missing may have come."""
        super().beat()
        self._work_out()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Work out what the draft comes to now."""
        event.stop()
        if event.input.id is not None:
            self._draft = self._draft.changed(event.input.id, event.value)
            self._work_out()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field; after the last, launch."""
        event.stop()
        if event.input.id == FIELDS[-1].name:
            self.action_launch()
        else:
            self.focus_next()

    def redraw(self) -> None:
        """Draw what the draft comes to."""
        width, signs, composed = self.size.width, self.app.signs, self._composed
        place = self.query_one("#composed", Painted)
        room = self.size.height - place.region.y - 1
        lines: list[Pieces] = []
        if self._is_left():
            can_launch = composed is not None and composed.can_launch
            lines.append(launch_lines.left(width, self.app.settings.keys, can_launch=can_launch))
            room -= 1
        if not self._dry_run or composed is None:
            keys = self.app.settings.keys
            lines += launch_lines.summary(composed, width, room, signs, keys, building=self._building)
        if self._dry_run or room - len(lines) >= _ROOM_FOR_BOTH:
            lines += launch_lines.order(composed, width, room - len(lines), signs)
        place.show(*lines)

    def action_launch(self) -> None:
        """Ask whether this is to be launched."""
        composed = self._composed
        if composed is None or composed.launch is None or not composed.can_launch:
            self.app.say("something is missing yet: see below the form")
            return
        request = composed.launch.to_arguments()
        title = f"Launch {wording.plural(composed.launch.run_count, 'run')}?"
        lines = tuple(launch_lines.what(composed, self.size.width - _QUESTION_MARGIN))
        self.app.confirm(
            ConfirmScreen(title, lines, "yes, launch"), partial(self._launch, self._draft, request)
        )

    def _launch(self, draft: Draft, request: dict[str, Any]) -> None:
        self._launched = draft
        self.app.request("sweep.launch", request)

    def action_dry_run(self) -> None:
        """Show in which order and when runs would start, or what is there and missing."""
        self._dry_run = not self._dry_run
        self.draw()

    def action_prepare(self) -> None:
        """Let what is not prepared be prepared first, or not."""
        self._draft = replace(self._draft, prepare=not self._draft.prepare)
        self._work_out()

    def action_build(self) -> None:
        """Build the images that are missing."""
        missing = self._composed.missing(Mend.BUILD) if self._composed is not None else ()
        if self._building or not missing:
            self.app.say("an image is being built" if self._building else "no image is missing")
            return
        self._building = "begun"

        def tell(line: str) -> None:
            self.app.call_from_thread(self._tell_building, line)

        work = partial(build_images, missing, self._draft.agents_dir, tell)
        self.in_background(work, lambda built: self._tell_building("", built))
        self.draw()

    def _tell_building(self, line: str, built: str = "") -> None:
        self._building = line
        if not line:
            self.app.say(built)
            self._work_out()
        self.draw()

    def action_engine(self) -> None:
        """Start the engine."""
        self.app.start_engine()

    def action_back(self) -> None:
        """Leave the field, so that letters are keys."""
        self.set_focus(None)
        self.draw()

    def on_descendant_focus(self) -> None:
        """A form that is gone on with needs no hint."""
        self.draw()

    def _is_left(self) -> bool:
        """Whether something is typed, but neither launched nor gone on with."""
        return self.focused is None and self._draft not in (Draft(), self._launched)

    def _suggest(self, agents: list[str]) -> None:
        for name, known in (
            ("agent", agents),
            ("competitions", [*registry.splits(), *registry.all_ids()]),
            ("network", list(runtime.NETWORKS)),
            ("edition", ["v1", "corrected"]),
            ("descriptions", [OBFUSCATED]),
            ("runtime", list(runtime.RUNTIMES)),
        ):
            self.query_one(f"#{name}", Field).suggester = SuggestFromList(known, case_sensitive=True)

    def _work_out(self) -> None:
        self._number += 1
        work = partial(compose, self._draft, self.app.places, self.app.engine)
        self.in_background(work, partial(self._take, self._number))

    def _take(self, number: int, composed: Composed) -> None:
        if number == self._number:
            self._composed = composed
            self.draw()
