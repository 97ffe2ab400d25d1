"""The form of a sweep on the launch screen, with its checks and forecast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlebench_console.competitions import registry
from mlebench_console.engine.agents import Agent, find_agents, get_agent
from mlebench_console.engine.checks import Check, Health, Remedy, failed
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.options.sweep import (
    FORM_OPTIONS,
    SweepOptions,
    completed,
    options_of,
    read_duration,
    read_toml,
    write_toml,
)
from mlebench_console.engine.places import Places, agents_folders
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.engine.sweeps.forecast import Forecast, forecast
from mlebench_console.engine.sweeps.launch import launch_of
from mlebench_console.foundation.conditions import RunConditions
from mlebench_console.foundation.problems import Problem, UsageProblem
from mlebench_console.state import experiments, sweeps
from mlebench_console.state.database import Database
from mlebench_console.state.records import IMPORTED, SweepSpec
from mlebench_console.state.usage import budgets
from mlebench_console.state.usage.budgets import BudgetScope

_AGENTS_NAMED = 6


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
    def can_launch(self) -> bool:
        """Whether it is valid and all checks have passed."""
        return self.launch is not None and all(check.allows_work for check in self.checks)

    def missing(self, remedy: Remedy) -> tuple[str, ...]:
        """Return what is missing and can be provided by a given kind of remedy."""
        return tuple(
            subject
            for check in self.checks
            if check.remedy is remedy and not check.allows_work
            for subject in check.subjects
        )


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
