"""The launch screen: the form for a sweep, its forecast and checks, and keys that provide what is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from textual.containers import Container, Horizontal, Vertical
from textual.suggester import SuggestFromList
from textual.widget import Widget
from textual.widgets import Input

from mlebench_console.competitions import registry
from mlebench_console.console import wording
from mlebench_console.console.actions.action import Action
from mlebench_console.console.actions.image import start_build
from mlebench_console.console.fields import NounField
from mlebench_console.console.pieces import Line
from mlebench_console.console.roles import Drawing, Piece, Role
from mlebench_console.console.screens.dialogs import ConfirmScreen
from mlebench_console.console.tui.keys import Key
from mlebench_console.console.tui.screen import ConsoleScreen
from mlebench_console.console.tui.widgets.blocks import (
    Block,
    laid_out,
    listing,
    longest,
    section,
    shortened,
    wrapped,
)
from mlebench_console.console.tui.widgets.inputs import Field, FilePaths, LabelledField, Prompt
from mlebench_console.console.tui.widgets.painted import Painted
from mlebench_console.engine.agents import Agent, find_agents, get_agent
from mlebench_console.engine.checks import Check, Health, Remedy, failed
from mlebench_console.engine.control import Answer, EngineStatus
from mlebench_console.engine.images import BuildStatus, build_status
from mlebench_console.engine.options.sweep import (
    FORM_OPTIONS,
    FormGroup,
    SweepOptions,
    completed,
    options_of,
    read_duration,
    read_toml,
    write_toml,
)
from mlebench_console.engine.places import Places, agents_folders
from mlebench_console.engine.requests import BuildImages, LaunchSweep
from mlebench_console.engine.sweeps.forecast import CONCURRENCY, Forecast, PlannedRun, forecast
from mlebench_console.engine.sweeps.launch import launch_of
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.files import write_text
from mlebench_console.foundation.problems import Problem, UsageProblem, writing
from mlebench_console.foundation.text import plural
from mlebench_console.state import experiments, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import IMPORTED, SweepSpec
from mlebench_console.state.usage import budgets
from mlebench_console.state.usage.budgets import BudgetScope

_AGENTS_NAMED = 6
# With this many free lines below the summary, the dry run is shown without being requested; if it is, it has at least
# the second number.
_ROOM_FOR_BOTH, _LEAST_OF_DRY_RUN = 8, 4
# From this height on groups of fields have titles.
_TALL_ENOUGH = 40
# From this width on groups of fields are beside each other.
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
_INDENT: Piece = ("  ", "text")
# A width in which nothing is cut.
_UNLIMITED = 10_000
_LABEL_WIDTH = 18
_LOOK_SECONDS = 1.0
# The groups of fields, by half of the form and by column of a half.
_GROUPS = (
    ((FormGroup.WHAT,), (FormGroup.SCHEDULING, FormGroup.MODELS)),
    ((FormGroup.WHERE, FormGroup.LIMITS), (FormGroup.BUDGET,)),
)


def _initial_texts() -> dict[str, str]:
    return {option.name: option.initial for option in FORM_OPTIONS}


@dataclass(frozen=True)
class LaunchForm:
    """The typed texts by option; an empty text means the option's default.

    Attributes:
        prepare: whether missing datasets are prepared first; switched by a key, not a field.
        others: the options without a field, from a file or another sweep.
        source: the file or sweep that it was filled in from; empty if none.
    """

    texts: Mapping[str, str] = field(default_factory=_initial_texts)
    prepare: bool = False
    others: SweepOptions = field(default_factory=SweepOptions)
    source: str = ""

    def changed(self, option: str, text: str) -> LaunchForm:
        """Return the form with another text for an option."""
        return replace(self, texts={**self.texts, option: text})

    @classmethod
    def of(cls, options: SweepOptions, source: str) -> LaunchForm:
        """Return the form that results in these options.

        Raises:
            Problem: a file that they name can't be read, or a duration is invalid.
        """
        given = options.given()
        if options.split:
            members = () if options.split in registry.splits() else registry.read_split(options.split)
            named = members or (options.split,)
            given["competitions"] = tuple(dict.fromkeys([*named, *(options.competitions or ())]))
        given["competitions"] = _shortest(given.get("competitions", ()))
        if options.time_limit is not None:
            given["hours"] = read_duration(options.time_limit) / 3600
        elif options.minutes is not None:
            given["hours"] = options.minutes / 60
        texts = {
            option.name: option.to_text(given.pop(option.name, option.default)) for option in FORM_OPTIONS
        }
        others = {
            name: value
            for name, value in given.items()
            if name not in _SET_ELSEWHERE and value != _DEFAULTS.get(name)
        }
        return cls(texts, bool(options.prepare), SweepOptions(**others), source)

    def options(self) -> tuple[SweepOptions, dict[str, Problem]]:
        """Parse the texts; return the options, and the problems of the invalid ones by name."""
        given: dict[str, Any] = {}
        wrong: dict[str, Problem] = {}
        for option in FORM_OPTIONS:
            try:
                given[option.name] = option.from_text(self.texts[option.name])
            except Problem as problem:
                wrong[option.name] = problem
        prepare = self.prepare or None
        return replace(self.others, **given, prepare=prepare), wrong


# The values of a launch without any options; and the options set by another field or by a key.
_DEFAULTS = options_of(LaunchSweep(spec=SweepSpec("", "", (), 1, RunConditions(0.0)))).given()
_SET_ELSEWHERE = frozenset({"split", "minutes", "time_limit", "prepare"})


def _shortest(competitions: Sequence[str]) -> tuple[str, ...]:
    """Return the name of the split with exactly these competitions, else their names."""
    splits = registry.splits()
    same = (name for name, members in splits.items() if set(members) == set(competitions))
    name = next(same, None) if competitions else None
    return tuple(competitions) if name is None else (name,)


@dataclass(frozen=True)
class Composed:
    """A form with its checks, and with its launch and forecast if its fields are valid.

    Attributes:
        launch: the request to the engine; None while a field is invalid.
        forecast: the forecast of a dry run.
        checks: the results of all checks, invalid fields first.
        wrong: the problems of invalid fields, by the names of their options.
    """

    checks: tuple[Check, ...]
    launch: LaunchSweep | None = None
    forecast: Forecast | None = None
    wrong: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not allow a launch."""
        return tuple(check for check in self.checks if not check.allows_work)

    @property
    def can_launch(self) -> bool:
        """Whether it is valid and all checks have passed."""
        return self.launch is not None and not self.failed

    def missing(self, remedy: Remedy) -> tuple[str, ...]:
        """Return what is missing and can be provided by a given kind of remedy."""
        return tuple(subject for check in self.failed if check.remedy is remedy for subject in check.subjects)


def agents_known(agents_dir: str) -> tuple[Agent, ...]:
    """Read the available agents, from the operator's folder and the bundled ones; waits for the disk."""
    return find_agents(agents_folders(agents_dir)).agents


def _labelled(name: str, problem: Problem) -> Problem:
    """Return the problem of a field with the field's label, as it is listed among all checks."""
    label = next(option.form.label for option in FORM_OPTIONS if option.name == name and option.form)
    return UsageProblem(f"{label}: {problem.what}", problem.why, problem.next_step)


def compose(form: LaunchForm, places: Places, engine: EngineStatus | None) -> Composed:
    """Parse and check a form; waits for the disk, and for Docker if that is checked."""
    options, problems = form.options()
    wrong = [failed(_labelled(name, problem)) for name, problem in problems.items()]
    chosen: tuple[str, ...] = ()
    if "competitions" not in problems:
        try:
            chosen = _competitions(options.competitions)
        except Problem as problem:
            problems["competitions"] = problem
            wrong.append(failed(problem))
    why = {name: problem.what for name, problem in problems.items()}
    if options.agent:
        try:
            get_agent(options.agent, agents_folders(form.texts["agents_dir"]))
        except Problem as problem:
            why["agent"] = problem.what  # the forecast's checks show the details
    else:
        several = ", ".join(agent.id for agent in agents_known(form.texts["agents_dir"])[:_AGENTS_NAMED])
        wrong.insert(0, Check(Health.FAIL, f"choose an agent: {several}"))
    try:
        launch = completed(replace(options, competitions=None), chosen, places)
    except Problem as problem:
        return Composed((*wrong, failed(problem)), wrong=why)
    found = forecast(launch, places, engine or EngineStatus())
    checks = (*wrong, *found.checks)
    return Composed(checks, wrong=why) if wrong else Composed(checks, launch, found, why)


def form_of_file(path: Path) -> LaunchForm:
    """Read a form from a file for `sweep launch`.

    Raises:
        Problem: it can't be read, or is invalid.
    """
    return LaunchForm.of(read_toml(path), path.name)


def form_of_sweep(database: Database, sweep_id: str) -> LaunchForm:
    """Return a form that would launch a sweep again under a new name, with its current schedule.

    Raises:
        Problem: there is no such sweep, or it was imported.
    """
    sweep = sweeps.get(database, sweep_id)
    if sweep.conditions.runtime == IMPORTED:
        raise UsageProblem(f"sweep {sweep.id} can't be cloned", "it was imported, not launched here")
    budget = budgets.of_group(database, BudgetScope.SWEEP, sweep.id)
    launch = launch_of(sweep, experiments.of_sweep(database, sweep.id), budget)
    return LaunchForm.of(options_of(replace(launch, name="", note="")), f"sweep {sweep.id}")


def form_text(form: LaunchForm) -> str:
    """Return a form as the text of a file for `sweep launch`.

    Raises:
        Problem: a field is invalid.
    """
    options, problems = form.options()
    for problem in problems.values():
        raise problem
    folder = None if options.agents_dir is None else str(Path(options.agents_dir).expanduser().absolute())
    return write_toml(replace(options, agents_dir=folder))


def _competitions(names: Sequence[str] | None) -> tuple[str, ...]:
    if not names:
        raise UsageProblem("choose competitions", "", "a split such as low, or names")
    return registry.choose(names)


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
        yield Painted(id="field")
        yield Painted(id="composed")
        paths = FilePaths()
        yield Prompt("load", "a sweep as TOML", self._load, id="load", done="load it", suggester=paths)
        hint = "a file, such as sweep.toml"
        yield Prompt("save", hint, self._ask_to_save, id="save", done="save it", suggester=paths)

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
        for each in self.query(Field):
            each.value = form.texts[each.id or ""]
            # The beginning of a text that is longer than its field is more useful than its end.
            each.cursor_position = len(each.value) if each.has_focus else 0
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
        composed = self._composed
        self.set_class(self.size.width >= _WIDE_ENOUGH, "-wide")
        self.set_class(self.size.height >= _TALL_ENOUGH, "-tall")
        # In a low terminal the dry run has most of the form's lines.
        self.set_class(self._dry_run and self.size.height < _TALL_ENOUGH, "-dry")
        for labelled in self.query(LabelledField):
            name = labelled.query_one(Field).id or ""
            labelled.show_problem(composed.wrong.get(name, "") if composed is not None else "")
        about = self.query_one("#field", Painted)
        # The room for the description of a field is that of the dry run.
        about.display = not self._dry_run or self._is_left()
        about.show(*(self._hint_of_left_form() if self._is_left() else self._about()))
        place = self.query_one("#composed", Painted)
        place.show(partial(self._checks_and_dry_run, self.size.height - place.region.y - 1))

    def _checks_and_dry_run(self, room: int, drawing: Drawing) -> Iterable[Block]:
        """Draw forecast and checks, as many as fit, and the dry run where there is room or it is asked for."""
        title, composed = section("checks and forecast"), self._composed
        if composed is None:
            return [title]
        most = room - _LEAST_OF_DRY_RUN if self._dry_run else room
        failed = [laid_out(_check(each, drawing), drawing) for each in composed.failed]
        is_short = sum(map(len, failed)) + _FORECAST_LINES >= most
        if is_short:
            # Each has one line, so that none is hidden by the explanation of another.
            failed = [check[:1] for check in failed]
        rest = self._forecast_and_others(composed, drawing, without_agent=is_short)
        lines = laid_out([title, *chain(*failed), *rest], drawing)
        if len(lines) > most:
            shown = lines[: max(1, most - 1)]
            more = plural(len(lines) - len(shown), "more line")
            lines = [*shown, Line(((f"  {more} in a higher terminal", "dim"),))]
        left = room - len(lines)
        if not self._dry_run and left < _ROOM_FOR_BOTH:
            return lines
        gap: list[Block] = [()] if left > _ROOM_FOR_BOTH else []
        return [*lines, *gap, *self._planned(composed, left - len(gap))]

    def _forecast_and_others(
        self, composed: Composed, drawing: Drawing, *, without_agent: bool
    ) -> Iterator[Block]:
        """Yield what is below the checks that have failed; during a dry run without the good checks."""
        if composed.launch is not None:
            yield from [*_forecast(composed, drawing)][without_agent:]
        elif self._last_good is not None:
            lines = laid_out(_forecast(self._last_good, drawing), drawing.within(_UNLIMITED))
            parts = ("".join(text for text, _ in line.pieces).strip() for line in lines)
            yield ((f"  before: {', '.join(parts)}", "dim"),)
        if others := self._form.others.given():
            values = ", ".join(f"{name} {value}" for name, value in others.items())
            clears: Piece = (f"   {drawing.keys('launch.clear')} clears", "dim")
            yield shortened(f"  besides, from {self._form.source}: {values}", after=(clears,))
        yield from self._build_blocks(composed)
        yield from _price(composed)
        for check in sorted(composed.checks, key=lambda check: not check.warns):
            if check.allows_work and (check.warns or not self._dry_run):
                yield from _check(check, drawing)

    def _build_blocks(self, composed: Composed) -> Iterator[Block]:
        """Yield the status of the engine's build, or why the last build of a missing image failed."""
        build = self._build
        names = ", ".join(build.names) or "images"
        missing = composed.missing(Remedy.BUILD)
        if build.is_running:
            yield (f"  building {names}  ", "accent"), (build.line, "dim")
        elif build.problem is not None and set(missing) & set(build.names or missing):
            again: Piece = (f"; {self.app.drawing.keys('launch.build')} builds again", "accent")
            why = f"  building {names} failed: {build.problem.in_one_line()}"
            yield shortened(why, "bad", after=(again,))

    def _planned(self, composed: Composed, room: int) -> Iterator[Block]:
        """Yield the order and times of starts, as many as fit; for an invalid form those of the last valid one."""
        shown = composed if composed.forecast is not None else self._last_good
        if shown is None or shown.forecast is None:
            return
        yield section(
            "dry run: in this order" if shown is composed else "dry run before a field could not be read"
        )
        planned = shown.forecast.planned
        if not planned:
            yield (("  nothing would start", "warn"),)
            return
        rows = planned[: max(1, room - 2)]
        yield listing(_PLANNED, rows, titles=False)
        if len(planned) > len(rows):
            yield ((f"  and {len(planned) - len(rows)} more", "dim"),)

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
        drawing = self.app.drawing
        warnings = chain(*(_check(check, drawing) for check in composed.checks if check.warns))
        content = (*_forecast(composed, drawing), *_price(composed), *warnings)
        self.app.confirm(
            ConfirmScreen(title, content, "yes, launch"), partial(self._launch, self._form, action)
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

    def _load(self, typed: str) -> None:
        """Fill the form in from a file."""
        if typed.strip():
            self.fill_in(file=Path(typed.strip()).expanduser())

    def _ask_to_save(self, typed: str) -> None:
        """Write the form to a file; one that exists is replaced if that is confirmed."""
        path = Path(typed.strip()).expanduser()
        if not typed.strip() or self.app.refuses():
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

    def _about(self) -> Iterable[Block]:
        """Return the description of the focused field."""
        focused = self.focused
        option = next((one for one in FORM_OPTIONS if focused is not None and one.name == focused.id), None)
        if option is None or option.form is None:
            return ()
        return (wrapped(f"{option.form.label}: {option.about}", "dim", ("  ", "text"), most=2),)

    def _hint_of_left_form(self) -> Iterable[Block]:
        """Return the hint for a form that was left before it was launched."""
        keys, composed = self.app.drawing.keys, self._composed
        can_launch = composed is not None and composed.can_launch
        why = f" yet: {keys('launch.launch')} launches it" if can_launch else ": something is missing"
        back = f"  not launched{why}, {keys('field.next')} goes back to the fields"
        return (longest(((f"{back}, digits switch screens", "accent"),), ((back, "accent"),)),)

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


def _forecast(composed: Composed, drawing: Drawing) -> Iterator[Block]:
    """Yield the number of runs, how many run at once, and how long they take."""
    launch, forecast = composed.launch, composed.forecast
    if launch is None or forecast is None:
        return
    spec = launch.spec
    on = f" on {plural(len(spec.competitions), 'competition')} x {spec.seeds} seeds"
    yield ("  " + spec.agent_id, "strong"), (on, "text")
    runs = plural(launch.run_count, "run")
    if not forecast.planned:
        yield ((f"  {runs}, none of which can ever start: too few {forecast.bound_by}", "warn"),)
        return
    about = f"about {wording.span(forecast.seconds)} judging by earlier runs, " if forecast.measured else ""
    takes: Piece = (f"  {runs}, {about}at most {wording.span(forecast.seconds_at_most)} in all", "text")
    limited = "as asked" if forecast.bound_by == CONCURRENCY else f"limited by {forecast.bound_by}"
    bound = f", {forecast.at_once} at once"
    yield longest((takes, (f"{bound}, {limited}", "dim")), (takes, (bound, "dim")), (takes,))
    if forecast.jobs is not None:
        yield from (((f"  {text}", "text"),) for text in wording.jobs_forecast(forecast.jobs, drawing.now))


def _price(composed: Composed) -> Iterator[Block]:
    """Yield what a higher concurrency would change, and what it may cost."""
    launch, forecast = composed.launch, composed.forecast
    if launch is not None and forecast is not None and forecast.planned:
        yield wrapped(wording.room_left(forecast), "warn", _INDENT)
        yield wrapped(wording.launch_cost(forecast, launch), "dim", _INDENT)


def _check(check: Check, drawing: Drawing) -> Iterator[Block]:
    """Yield a check with its remedy's key, or with its next step."""
    signs, good = drawing.signs, check.health is Health.OK
    sign: Piece = (f"  {signs.done if good else signs.failed} ", "good" if good else "warn")
    text = f"warning: {check.text}" if check.warns else check.text
    role: Role = "text" if good else "warn"
    if check.remedy is not None and not check.allows_work:
        key, does = _KEYS[check.remedy]
        yield shortened(text, role, before=(sign,), after=((f"   {drawing.keys(key)} {does}", "accent"),))
        return
    yield wrapped(text, role, sign, most=_MOST_OF_CHECK)
    if not good:
        yield wrapped(check.next_step, "dim", ("    ", "text"), most=_MOST_OF_CHECK)


_PLANNED = (
    NounField[PlannedRun](
        "starts",
        lambda run, _: f"after {wording.span(run.starts_after)}" if run.starts_after else "now",
        14,
        role="dim",
    ),
    NounField[PlannedRun]("competition", lambda run, _: run.competition_id, 24, grows=50),
    NounField[PlannedRun]("seed", lambda run, _: f"seed {run.seed}", 7, role="dim"),
    NounField[PlannedRun](
        "takes",
        lambda run, _: f"{'about' if run.measured else 'at most'} {wording.span(run.seconds)}",
        14,
        right=True,
        role="dim",
    ),
)


def _fields(groups: Iterable[FormGroup], form: LaunchForm) -> Iterable[Widget]:
    """Return the fields of some groups, each group with its title."""
    for place, group in enumerate(groups):
        yield Painted(((f" {group}", "strong"),), classes="group -later" if place else "group")
        for option in FORM_OPTIONS:
            if option.form is not None and option.form.group is group:
                text = form.texts[option.name]
                field = Field(text, placeholder=option.form.hint, id=option.name, select_on_focus=False)
                yield LabelledField(option.form.label, field, label_width=_LABEL_WIDTH)
