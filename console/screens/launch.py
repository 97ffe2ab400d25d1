"""The launch screen: compose a sweep, see what it comes to and what is missing, launch it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from textual.containers import Vertical
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from competitions import registry
from console.keys import bindings, shown
from console.model import wording
from console.model.composing import Composed, Draft, agents_known, compose
from console.painting import Pieces, foreign, heading
from console.screens.base import ConsoleScreen
from console.screens.confirm import ConfirmScreen
from console.widgets.form import Field, Row
from console.widgets.painted import Painted

_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("agent", "agent", "its id, such as aide or aide/dev"),
    ("competitions", "competitions", "a split, or names: low, medium, high, all, spaceship-titanic ..."),
    ("seeds", "seeds", "seeds of every competition"),
    ("limit", "time limit", "24h, 90m, 1h30m"),
    ("concurrency", "at once", "how many runs at once"),
    ("gpus", "GPUs", "of every run"),
    ("network", "network", "none or open"),
    ("runtime", "runtime", "process, bubblewrap, plain or docker"),
    ("edition", "edition", "v1 or corrected"),
    ("name", "name", "the sweep's; made from the agent's if left empty"),
    ("experiment", "experiment", "the leaderboard row it belongs to, if any"),
    ("agents_dir", "agents folder", "yours, in MLE-bench's format, if any"),
)
_DRY_RUN_LINES = 12


class LaunchScreen(ConsoleScreen):
    """A form on top, below what it comes to."""

    CONTEXTS = ("launch",)
    MODE = "launch"
    BINDINGS = bindings("launch")
    AUTO_FOCUS = "#agent"

    def __init__(self) -> None:
        super().__init__()
        self._draft = Draft()
        self._composed: Composed | None = None
        self._dry_run = False
        self._number = 0

    def body(self) -> Iterable[Widget]:
        """The fields, then what they come to."""
        values = {field: str(getattr(self._draft, field)) for field, _label, _hint in _FIELDS}
        fields = [
            Row(label, Field(values[field], placeholder=hint, id=field, select_on_focus=False))
            for field, label, hint in _FIELDS
        ]
        yield Vertical(*fields, id="form")
        yield Painted(id="composed")

    def on_mount(self) -> None:
        """Learn which agents there are, and what the empty form lacks."""
        self.app.in_thread(partial(agents_known, ""), lambda found: self._suggest([a.id for a in found]))
        self._work_out()

    def is_whole(self) -> bool:
        """The fields are made after their rows."""
        return super().is_whole() and len(self.query(Field)) == len(_FIELDS)

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
        if event.input.id == _FIELDS[-1][0]:
            self.action_launch()
        else:
            self.focus_next()

    def redraw(self) -> None:
        """Draw what the draft comes to."""
        self.query_one("#composed", Painted).show(*self._lines(self.size.width))

    def action_launch(self) -> None:
        """Ask whether this is to be launched."""
        composed = self._composed
        if composed is None or composed.request is None or not composed.can_launch:
            self.app.say("something is missing yet: see below the form")
            return
        request = dict(composed.request)
        title = f"Launch {wording.plural(composed.runs, 'run')}?"
        lines = tuple(self._summary(composed))
        self.app.confirm(
            ConfirmScreen(title, lines, "yes, launch"), lambda: self.app.ask("sweep.launch", request)
        )

    def action_dry_run(self) -> None:
        """Show what would be launched, or hide it."""
        self._dry_run = not self._dry_run
        self.draw()

    def action_prepare(self) -> None:
        """Let what is not prepared be prepared first, or not."""
        self._draft = replace(self._draft, prepare=not self._draft.prepare)
        self._work_out()

    def action_engine(self) -> None:
        """Start the engine."""
        self.app.start_engine()

    def action_back(self) -> None:
        """Leave the field, so that letters are keys."""
        self.set_focus(None)
        self.draw()

    def _suggest(self, agents: list[str]) -> None:
        for name, known in (
            ("agent", agents),
            ("competitions", [*registry.splits(), *registry.all_ids()]),
            ("network", ["none", "open"]),
            ("edition", ["v1", "corrected"]),
            ("runtime", ["process", "bubblewrap", "plain", "docker"]),
        ):
            self.query_one(f"#{name}", Field).suggester = SuggestFromList(known, case_sensitive=True)

    def _work_out(self) -> None:
        self._number += 1
        work = partial(compose, self._draft, self.app.places, self.app.engine)
        self.app.in_thread(work, partial(self._take, self._number))

    def _take(self, number: int, composed: Composed) -> None:
        if number == self._number:
            self._composed = composed
            self.draw()

    def _lines(self, width: int) -> list[Pieces]:
        composed, signs = self._composed, self.app.signs
        lines: list[Pieces] = [(), heading("what it comes to", width, signs)]
        if composed is None:
            return lines
        lines += self._summary(composed)
        keys = {key.id: shown(key.keys[0]) for key in self.app.settings.keys.of("launch")}
        mends = {"p": keys["launch.prepare"], "e": keys["launch.engine"]}
        for check in composed.checks:
            sign = (f"  {signs.done if check.good else signs.failed} ", "good" if check.good else "warn")
            text = foreign(check.text, width - 30).rstrip()
            mend = f"   {mends[check.key]} mends it" if check.key and not check.good else ""
            lines.append((sign, (text, "text" if check.good else "warn"), (mend, "accent")))  # type: ignore[arg-type]  # two roles
        if self._dry_run and composed.request is not None:
            lines += [(), heading("dry run: in this order", width, signs), *self._order(composed)]
        return lines

    @staticmethod
    def _summary(composed: Composed) -> list[Pieces]:
        if not composed.runs or composed.seconds_at_most is None or composed.request is None:
            return []
        told = (
            f"{wording.plural(len(composed.competitions), 'competition')} x {composed.request['seeds']} seeds"
        )
        at_most = wording.span(composed.seconds_at_most)
        return [
            (("  " + str(composed.request["agent_id"]), "strong"), (f" on {told}", "text")),
            (
                (f"  {wording.plural(composed.runs, 'run')}, at most {at_most} in all", "text"),
                (f" with {composed.request['concurrency']} at once", "dim"),
            ),
        ]

    @staticmethod
    def _order(composed: Composed) -> list[Pieces]:
        assert composed.request is not None  # asked only then
        runs = [
            (name, seed) for seed in range(1, composed.request["seeds"] + 1) for name in composed.competitions
        ]
        lines: list[Pieces] = [
            ((f"  {place:>4}  ", "dim"), (foreign(name, 50), "text"), (f" seed {seed}", "dim"))
            for place, (name, seed) in enumerate(runs[:_DRY_RUN_LINES], start=1)
        ]
        more = len(runs) - _DRY_RUN_LINES
        return [*lines, ((f"        and {more} more", "dim"),)] if more > 0 else lines
