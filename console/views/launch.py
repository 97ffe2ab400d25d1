"""The draft of a sweep on the launch screen, its forecast, and what is missing for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from competitions import registry
from engine.agents import Agent, find_agents
from engine.checks import Check, Mend, failed
from engine.control import EngineStatus
from engine.options.sweep import FORM_OPTIONS, Launch, SweepOptions, completed
from engine.places import Places, agents_folders
from engine.sweeps.forecast import Forecast, forecast
from foundation.problems import Problem, UsageProblem

_AGENTS_NAMED = 6


def _initial_texts() -> dict[str, str]:
    return {option.name: option.form.initial for option in FORM_OPTIONS if option.form is not None}


@dataclass(frozen=True)
class Draft:
    """What is typed, as text by option; an empty text leaves the option to its default.

    Attributes:
        prepare: whether datasets that are missing are prepared first; a key says so, not a field.
    """

    texts: Mapping[str, str] = field(default_factory=_initial_texts)
    prepare: bool = False

    def changed(self, option: str, text: str) -> Draft:
        """The same with another text for an option."""
        return Draft({**self.texts, option: text}, self.prepare)


@dataclass(frozen=True)
class Composed:
    """A draft with its checks, and its launch and forecast where it can be read.

    Attributes:
        launch: what the engine would be asked for; None while something can't be read.
        forecast: what that comes to, as a dry run tells it.
        checks: everything that was looked at, with what can't be read before it.
    """

    checks: tuple[Check, ...]
    launch: Launch | None = None
    forecast: Forecast | None = None

    @property
    def can_launch(self) -> bool:
        """Whether nothing is in the way."""
        return self.launch is not None and all(check.good for check in self.checks)

    def missing(self, mend: Mend) -> tuple[str, ...]:
        """Return what is missing that the console can provide in one way."""
        return tuple(
            subject
            for check in self.checks
            if check.mend is mend and not check.good
            for subject in check.subjects
        )


def agents_known(agents_dir: str) -> tuple[Agent, ...]:
    """Read the agents that could be launched, of the operator's folder and our own; waits for the disk."""
    return find_agents(agents_folders(agents_dir)).agents


def compose(draft: Draft, places: Places, engine: EngineStatus | None) -> Composed:
    """Read and check a draft; waits for the disk, and for Docker where that is asked for."""
    given: dict[str, Any] = {}
    chosen: tuple[str, ...] = ()
    wrong: list[Check] = []
    for option in FORM_OPTIONS:
        try:
            given[option.name] = option.from_text(draft.texts[option.name])
            if option.name == "competitions":
                chosen = _competitions(given.pop(option.name))
        except Problem as problem:
            wrong.append(failed(problem))
    if not given["agent"]:
        several = ", ".join(agent.id for agent in agents_known(draft.texts["agents_dir"])[:_AGENTS_NAMED])
        wrong.insert(0, Check(False, f"choose an agent: {several}"))
    launch = completed(SweepOptions(**given, prepare=draft.prepare), chosen, places)
    found = forecast(launch, places, engine or EngineStatus())
    checks = (*wrong, *found.checks)
    return Composed(checks) if wrong else Composed(checks, launch, found)


def _competitions(names: Sequence[str] | None) -> tuple[str, ...]:
    if not names:
        raise UsageProblem("choose competitions", "", "a split such as low, or names")
    return registry.choose(names)
