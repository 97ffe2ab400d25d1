"""The launch screen: the form for a sweep, its forecast and checks, and keys that provide what is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from textual.containers import Container, Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.actions.action import Action
from mlebench_console.console.actions.image import start_build
from mlebench_console.console.pieces import cut, fit, fitting, foreign, foreign_lines, heading
from mlebench_console.console.roles import Drawing, Piece, Pieces, Role
from mlebench_console.console.screens.dialogs import ConfirmScreen, question_width
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.widgets.inputs import Field, FilePaths, LabelledField, Prompt
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.console.views.launch import (
    Composed,
    LaunchForm,
    agents_known,
    compose,
    form_of_file,
    form_of_sweep,
    form_text,
)
from mlebench_console.engine.checks import Check, Health, Remedy
from mlebench_console.engine.control import Answer
from mlebench_console.engine.images import BuildStatus, build_status
from mlebench_console.engine.options.sweep import FORM_OPTIONS, FormGroup
from mlebench_console.engine.requests import BuildImages
from mlebench_console.engine.sweeps.forecast import CONCURRENCY
from mlebench_console.foundation.files import write_text
from mlebench_console.foundation.problems import writing
from mlebench_console.foundation.text import plural

# With this many free lines below the summary, the dry run is shown without being requested; if it is, it has at least
# the second number.
_ROOM_FOR_BOTH, _LEAST_OF_DRY_RUN = 8, 4
# From this height on groups of fields have titles.
_TALL_ENOUGH = 40
# From this width on nearly every field's description fits on one line.
_WIDE_ENOUGH = 150
_KEYS = {
    Remedy.PREPARE: ("launch.prepare", "prepares them first"),
    Remedy.ENGINE: ("launch.engine", "starts it"),
    Remedy.BUILD: ("launch.build", "builds them"),
}
_REMEDIES = {key: remedy for remedy, (key, _does) in _KEYS.items()}
# The forecast takes so many lines.
_FORECAST_LINES = 2
# A check takes at most so many lines.
_MOST_OF_CHECK = 3
_LABEL_WIDTH = 18
_SEED_WIDTH = 9
_LOOK_SECONDS = 1.0
_TIME_WIDTH = 14
# How wide a column of the dry run is.
_ORDER_WIDTH = 92


# The groups of fields, by half of the form and by column of a half.
_GROUPS = (
    ((FormGroup.WHAT,), (FormGroup.SCHEDULING, FormGroup.MODELS)),
    ((FormGroup.WHERE, FormGroup.LIMITS), (FormGroup.BUDGET,)),
)


class LaunchScreen(ConsoleScreen):
    """A form at the top, its forecast and checks below."""

    CONTEXTS = ("launch", "field")
    MODE = "launch"
    AUTO_FOCUS = "#agent"

    def __init__(self) -> None:
        super().__init__()
        self._form = LaunchForm()
        self._composed: Composed | None = None
        # The form that was composed last, and whether to launch once it is the one that is shown.
        self._composed_of: LaunchForm | None = None
        self._wants_launch = False
        # The last valid form: its summary stays visible while a field is invalid.
        self._last_good: Composed | None = None
        self._dry_run = False
        self._build = BuildStatus()
        self._launched = LaunchForm()

    def body(self) -> Iterable[Widget]:
        """Return the fields by group, in two columns or beside each other in four, and the forecast below."""
        halves = (
            Container(
                *(Vertical(*_fields(groups, self._form), classes="column") for groups in half),
                classes="half",
            )
            for half in _GROUPS
        )
        yield Horizontal(*halves, id="form")
        yield Painted(id="composed")
        yield Prompt("load", "a sweep as TOML", id="load", done="load it", suggester=FilePaths())
        yield Prompt("save", "a file, such as sweep.toml", id="save", done="save it", suggester=FilePaths())

    def on_mount(self) -> None:
        """Read the agents, and check the empty form."""
        self.in_background(partial(agents_known, ""), lambda found: self._suggest([a.id for a in found]))
        self.set_interval(_LOOK_SECONDS, self._look_at_build)
        self._work_out()

    def is_composed(self) -> bool:
        """Whether the fields exist, which are created after their rows."""
        return (
            super().is_composed()
            and sum(1 for _ in self.walk_children(Field)) == len(FORM_OPTIONS)
            and any(child.id == "save" for child in self.children)
        )

    def fill_in(self, *, sweep_id: str = "", file: Path | None = None) -> None:
        """Fill the form in from an earlier sweep or from a file."""
        if file is not None:
            self.in_background(partial(form_of_file, file), self._fill_in, latest="filling")
        else:
            self.app.read_state(partial(form_of_sweep, sweep_id=sweep_id), self._fill_in)

    def action_clear(self) -> None:
        """Reset the form."""
        self._fill_in(LaunchForm())

    def _fill_in(self, form: LaunchForm) -> None:
        self._form = form
        for field in self.query(Field):
            field.value = form.texts[field.id or ""]
            # The beginning of a text that is longer than its field is more useful than its end.
            field.cursor_position = len(field.value) if field.has_focus else 0
        self.app.say(f"filled in from {form.source}" if form.source else "the form is as it was at first")
        self._work_out()

    def tick(self) -> None:
        """Check again: what was missing may have been provided."""
        super().tick()
        self._work_out()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check the changed form."""
        event.stop()
        if event.input.id is not None:
            self._form = self._form.changed(event.input.id, event.value)
            self._work_out()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next field; after the last, launch."""
        event.stop()
        if event.input.id == FORM_OPTIONS[-1].name:
            self.action_launch()
        else:
            self.focus_next()

    def label_of(self, key: Key) -> str:
        """Return the word for what a key would do now; empty for keys of fields outside of them, and without need."""
        if key.id in ("field.complete", "launch.back") and not self.is_typing:
            return ""
        if key.id in _REMEDIES and not (key.id == "launch.prepare" and self._form.prepare):
            checks = () if self._composed is None else self._composed.checks
            if all(check.allows_work for check in checks if check.remedy is _REMEDIES[key.id]):
                return ""
        return super().label_of(key)

    def toggled_on(self) -> Collection[str]:
        """Return the key of preparing, once missing datasets are to be prepared first."""
        return ("launch.prepare",) if self._form.prepare else ()

    def redraw(self) -> None:
        """Draw the form's forecast and checks."""
        width, composed = self.size.width, self._composed
        page = _Page(width, self.app.drawing)
        self.set_class(width >= _WIDE_ENOUGH, "-wide")
        self.set_class(self.size.height >= _TALL_ENOUGH, "-tall")
        # In a low terminal the dry run has most of the form's lines.
        self.set_class(self._dry_run and self.size.height < _TALL_ENOUGH, "-dry")
        for labelled in self.query(LabelledField):
            name = labelled.query_one(Field).id or ""
            labelled.show_problem(composed.wrong.get(name, "") if composed is not None else "")
        place = self.query_one("#composed", Painted)
        room = self.size.height - place.region.y - 1
        # The room for the description of a field is that of the dry run.
        lines = [] if self._dry_run else self._about(width) or [()]
        if self._is_left():
            can_launch = composed is not None and composed.can_launch
            lines = [page.hint_of_left_form(can_launch=can_launch), ()]
        left = room - len(lines)
        most = left - _LEAST_OF_DRY_RUN if self._dry_run else left
        if composed is None:
            lines.append(page.heading())
        else:
            lines += page.summary(
                composed, self._last_good, self._form, self._build, most, with_good=not self._dry_run
            )
        left = room - len(lines)
        if self._dry_run or left >= _ROOM_FOR_BOTH:
            gap = [()] if left > _ROOM_FOR_BOTH else []
            lines += [*gap, *page.dry_run(composed, self._last_good, left - len(gap))]
        place.show(*lines)

    def action_launch(self) -> None:
        """Ask for confirmation and launch; what was typed just before is checked first."""
        self._wants_launch = self._composed_of != self._form
        if self._wants_launch:
            return
        composed = self._composed
        if composed is None or composed.launch is None or not composed.can_launch:
            bad = (
                next((check.text for check in composed.checks if not check.allows_work), "")
                if composed
                else ""
            )
            self.app.say(f"not launched: {bad}" if bad else "something is missing: see below the form")
            return
        action = Action((composed.launch,))
        title = f"Launch {plural(composed.launch.run_count, 'run')}?"
        page = _Page(question_width(self.size.width), self.app.drawing)
        lines = [*page.forecast(composed), *page.price(composed)]
        lines += [line for check in composed.checks if check.warns for line in page.check(check)]
        self.app.confirm(
            ConfirmScreen(title, tuple(lines), "yes, launch"), partial(self._launch, self._form, action)
        )

    def _launch(self, form: LaunchForm, action: Action) -> None:
        self._launched = form
        self.app.carry_out(action, self._go_to)

    def _go_to(self, answer: Answer) -> None:
        """Show the launched sweep, unless the operator has switched screens meanwhile."""
        if self.is_current and answer.sweep_id is not None:
            self.app.show_sweep(answer.sweep_id)

    def action_dry_run(self) -> None:
        """Show the order and times of starts, or the checks again."""
        self._dry_run = not self._dry_run
        self.draw()
        self.call_after_refresh(self.draw)  # the form has its new height

    def action_prepare(self) -> None:
        """Switch whether missing datasets are prepared first."""
        self._form = replace(self._form, prepare=not self._form.prepare)
        self._work_out()

    def action_build(self) -> None:
        """Start a build of the missing images by the engine; it goes on without this console."""
        missing = self._composed.missing(Remedy.BUILD) if self._composed is not None else ()
        if self.app.refuses():
            return
        if self._build.is_running or not missing:
            self.app.say("images are being built" if self._build.is_running else "no image is missing")
            return
        order = BuildImages(names=missing, agents_dir=self._form.texts["agents_dir"])
        self.in_background(partial(start_build, self.app.places, order), lambda _: self._look_at_build())

    def _look_at_build(self) -> None:
        """Read the status of the engine's build, whoever has requested it."""
        if self.is_current:
            self.in_background(
                partial(build_status, self.app.places.state_dir), self._take_build, latest="build"
            )

    def _take_build(self, found: BuildStatus) -> None:
        before, self._build = self._build, found
        if before.is_running and not found.is_running:
            self._work_out()
        if before != found:
            self.draw()

    def action_ask(self, what: str) -> None:
        """Open the prompt for a file to fill the form in from, or to write it to."""
        self.query_one(f"#{what}", Prompt).open("")

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        """Ignore changes: only Enter has an effect."""
        message.stop()

    def on_prompt_left(self, message: Prompt.Left) -> None:
        """Go back to the form."""
        message.stop()
        self.query_one(Field).focus()

    def on_prompt_done(self, message: Prompt.Done) -> None:
        """Fill the form in from a file, or write it to one."""
        message.stop()
        self.query_one(Field).focus()
        typed = message.value.strip()
        path = Path(typed).expanduser()
        if not typed or (message.prompt.id == "save" and self.app.refuses()):
            return
        if message.prompt.id == "load":
            self.fill_in(file=path)
            return
        if path.exists():
            self.app.confirm(
                ConfirmScreen(f"Replace {path.name}?", (((str(path), "text"),),), "yes, replace"),
                partial(self._save, path),
            )
        else:
            self._save(path)

    def _save(self, path: Path) -> None:
        form = self._form

        def save() -> None:
            text = form_text(form)
            with writing(path):
                write_text(path, text)

        self.in_background(
            save, lambda _: self.app.say(f"written to {path}: 'sweep launch {path}' launches it")
        )

    def action_engine(self) -> None:
        """Start the engine."""
        self.app.start_engine()

    def action_back(self) -> None:
        """Leave the field, so that letters are keys."""
        self.set_focus(None)
        self.draw()

    def on_descendant_focus(self) -> None:
        """Redraw without the hint for a form that was left."""
        self.draw()

    def _about(self, width: int) -> list[Pieces]:
        """Return the description of the focused field, with the same number of lines for every field."""
        option = next(
            (one for one in FORM_OPTIONS if self.focused is not None and one.name == self.focused.id), None
        )
        if option is None or option.form is None:
            return []
        # Shorter descriptions are padded with blank lines, so that the lines below don't move.
        most = 2 if width < _WIDE_ENOUGH else 1
        text = f"{option.form.label}: {option.about}"
        told = foreign_lines(text, width - 3, most)
        return [((f"  {line}", "dim"),) for line in told] + [()] * (2 - len(told))

    def _is_left(self) -> bool:
        """Return whether something is typed, but not launched, and no field has the focus."""
        return self.focused is None and self._form not in (LaunchForm(), self._launched)

    def _suggest(self, agents: list[str]) -> None:
        known = {"agent": agents, "competitions": [*registry.splits(), *registry.all_ids()]}
        known |= {option.name: list(option.typed_choices) for option in FORM_OPTIONS if option.typed_choices}
        for name, values in known.items():
            self.query_one(f"#{name}", Field).suggester = SuggestFromList(values, case_sensitive=True)

    def _work_out(self) -> None:
        work = partial(compose, self._form, self.app.places, self.app.engine)
        self.in_background(work, partial(self._take, self._form), latest="composed")

    def _take(self, form: LaunchForm, composed: Composed) -> None:
        self._composed, self._composed_of = composed, form
        if composed.launch is not None:
            self._last_good = composed
        self.draw()
        self.refresh_frame()
        if self._wants_launch and self.is_current:
            self.action_launch()


@dataclass(frozen=True)
class _Page:
    """The lines below the form: checks and forecast of a launch, in one width."""

    width: int
    drawing: Drawing

    def heading(self) -> Pieces:
        """Draw the heading of the summary."""
        return heading("checks and forecast", self.width, self.drawing.signs)

    def summary(
        self,
        composed: Composed,
        last_good: Composed | None,
        form: LaunchForm,
        build: BuildStatus,
        room: int,
        *,
        with_good: bool,
    ) -> list[Pieces]:
        """Draw the forecast and the checks, failed ones first, as many as fit; good ones only if asked for."""
        lines = [self.heading()]
        drawn = [self.check(check) for check in composed.checks if not check.allows_work]
        is_short = sum(map(len, drawn)) + _FORECAST_LINES >= room
        if is_short:
            # Each has one line, so that none is hidden by the explanation of another.
            drawn = [[cut(each[0], self.width, self.drawing.signs.ellipsis)] for each in drawn]
        lines += [line for each in drawn for line in each]
        if composed.launch is not None:
            lines += self.forecast(composed)[is_short:]
        elif last_good is not None:
            parts = ["".join(text for text, _ in line).strip() for line in self.forecast(last_good)]
            lines.append(self._line(f"before: {', '.join(parts)}", "dim"))
        if others := form.others.given():
            said = ", ".join(f"{name} {value}" for name, value in others.items())
            clears = f"   {self.drawing.keys('launch.clear')} clears"
            lines.append(self._line(f"besides, from {form.source}: {said}", "text", (clears, "dim")))
        lines += self._build(composed, build)
        lines += self.price(composed)
        for check in sorted(composed.checks, key=lambda check: not check.warns):
            if check.allows_work and (with_good or check.warns):
                lines += self.check(check)
        if len(lines) <= room:
            return lines
        shown = lines[: max(1, room - 1)]
        more = plural(len(lines) - len(shown), "more line")
        return [*shown, ((f"  {more} in a higher terminal", "dim"),)]

    def _line(self, text: str, role: Role, *after: Piece) -> Pieces:
        """Draw a text that may come from outside, cut where it does not fit before what follows it."""
        room = self.width - 3 - sum(len(piece) for piece, _ in after)
        return ((f"  {foreign(text, room).rstrip()}", role), *after)

    def _build(self, composed: Composed, build: BuildStatus) -> list[Pieces]:
        """Draw the status of the engine's build, or why the last build of a missing image failed."""
        names = ", ".join(build.names) or "images"
        if build.is_running:
            head = f"  building {names}  "
            room = max(8, self.width - len(head) - 1)
            return [((head, "accent"), (foreign(build.line, room).rstrip(), "dim"))]
        missing = composed.missing(Remedy.BUILD)
        if build.problem is None or not set(missing) & set(build.names or missing):
            return []
        again = f"; {self.drawing.keys('launch.build')} builds again"
        why = f"building {names} failed: {build.problem.in_one_line()}"
        return [self._line(why, "bad", (again, "accent"))]

    def hint_of_left_form(self, *, can_launch: bool) -> Pieces:
        """Draw the hint for a form that was left before it was launched."""
        keys = self.drawing.keys
        why = f" yet: {keys('launch.launch')} launches it" if can_launch else ": something is missing"
        back = f"  not launched{why}, {keys('field.next')} goes back to the fields"
        return fitting([((f"{back}, digits switch screens", "accent"),), ((back, "accent"),)], self.width)

    def forecast(self, composed: Composed) -> list[Pieces]:
        """Draw the number of runs, how many run at once, and how long they take."""
        launch, forecast = composed.launch, composed.forecast
        if launch is None or forecast is None:
            return []
        spec = launch.spec
        on = f" on {plural(len(spec.competitions), 'competition')} x {spec.seeds} seeds"
        lines: list[Pieces] = [(("  " + spec.agent_id, "strong"), (on, "text"))]
        runs = plural(launch.run_count, "run")
        if not forecast.planned:
            never = f"  {runs}, none of which can ever start: too few {forecast.bound_by}"
            return [*lines, ((never, "warn"),)]
        at_most = f"at most {wording.span(forecast.seconds_at_most)}"
        at_once = f"{forecast.at_once} at once"
        about = (
            f"about {wording.span(forecast.seconds)} judging by earlier runs, " if forecast.measured else ""
        )
        told: Pieces = ((f"  {runs}, {about}{at_most} in all", "text"),)
        limited = "as asked" if forecast.bound_by == CONCURRENCY else f"limited by {forecast.bound_by}"
        bound = f", {at_once}, {limited}"
        lines.append(fitting([(*told, (bound, "dim")), (*told, (f", {at_once}", "dim")), told], self.width))
        if forecast.jobs is not None:
            jobs = wording.jobs_forecast(forecast.jobs, self.drawing.now)
            lines += [self._line(text, "text") for text in jobs]
        return lines

    def price(self, composed: Composed) -> list[Pieces]:
        """Draw what a higher concurrency would change, and what it may cost."""
        launch, forecast = composed.launch, composed.forecast
        if launch is None or forecast is None or not forecast.planned:
            return []
        more, cost = (
            foreign_lines(text, self.width - 3)
            for text in (wording.room_left(forecast), wording.launch_cost(forecast, launch))
        )
        return [*(((f"  {line}", "warn"),) for line in more), *(((f"  {line}", "dim"),) for line in cost)]

    def dry_run(self, composed: Composed | None, last_good: Composed | None, room: int) -> list[Pieces]:
        """Draw the order and times of starts, as many as fit; for an invalid form those of the last valid one."""
        shown = composed if composed is not None and composed.forecast is not None else last_good
        if composed is None or shown is None or shown.forecast is None:
            return []
        title = "dry run: in this order" if shown is composed else "dry run before a field could not be read"
        width, signs = self.width, self.drawing.signs
        lines: list[Pieces] = [heading(title, width, signs)]
        planned = shown.forecast.planned
        if not planned:
            return [*lines, (("  nothing would start", "warn"),)]
        columns = max(1, min(width // _ORDER_WIDTH, -(-len(planned) // max(1, room - 2))))
        rows = max(1, room - len(lines) - 1)
        name = min(50, width - _SEED_WIDTH - 2 * _TIME_WIDTH - 4)
        drawn: list[Pieces] = []
        apart: Piece = (" " * (width // columns - name - _SEED_WIDTH - 2 * _TIME_WIDTH - 2), "text")
        for run in planned[: rows * columns]:
            takes = f"{'about' if run.measured else 'at most'} {wording.span(run.seconds)}"
            starts = "now" if not run.starts_after else f"after {wording.span(run.starts_after)}"
            drawn.append(
                (
                    ("  " + fit(starts, _TIME_WIDTH), "dim"),
                    (foreign(run.competition_id, name, ellipsis=signs.ellipsis), "text"),
                    (fit(f"  seed {run.seed}", _SEED_WIDTH), "dim"),
                    (fit(takes, _TIME_WIDTH, right=True), "dim"),
                    apart,
                )
            )
        rows = min(rows, -(-len(drawn) // columns))
        lines += [tuple(piece for line in drawn[row::rows] for piece in line) for row in range(rows)]
        more = len(planned) - len(drawn)
        return [*lines, ((f"  and {more} more", "dim"),)] if more > 0 else lines

    def check(self, check: Check) -> list[Pieces]:
        """Draw a check with its remedy's key, or with its next step."""
        signs, good = self.drawing.signs, check.health is Health.OK
        sign: Pieces = ((f"  {signs.done if good else signs.failed} ", "good" if good else "warn"),)
        told = f"warning: {check.text}" if check.warns else check.text
        role: Role = "text" if good else "warn"
        if check.remedy is not None and not check.allows_work:
            key, does = _KEYS[check.remedy]
            remedy = f"   {self.drawing.keys(key)} {does}"
            text = foreign(told, self.width - 5 - len(remedy), ellipsis=signs.ellipsis).rstrip()
            return [(*sign, (text, role), (remedy, "accent"))]
        first, *more = foreign_lines(told, self.width - 5, _MOST_OF_CHECK) or [""]
        lines: list[Pieces] = [(*sign, (first, role)), *(((f"    {part}", role),) for part in more)]
        if not good:
            steps = foreign_lines(check.next_step, self.width - 5, _MOST_OF_CHECK)
            lines += [((f"    {step}", "dim"),) for step in steps if step]
        return lines


def _fields(groups: Iterable[FormGroup], form: LaunchForm) -> Iterable[Widget]:
    """Return the fields of some groups, each group with its title."""
    for place, group in enumerate(groups):
        yield Painted(((f" {group}", "strong"),), classes="group -later" if place else "group")
        for option in FORM_OPTIONS:
            if option.form is not None and option.form.group is group:
                text = form.texts[option.name]
                field = Field(text, placeholder=option.form.hint, id=option.name, select_on_focus=False)
                yield LabelledField(option.form.label, field, label_width=_LABEL_WIDTH)
