"""Composing a sweep: what an operator has typed, what that comes to, and what is still missing for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from competitions import registry
from engine.agents import Agent, find_agents
from engine.control import EngineStatus
from engine.options.sweep import Launch, LaunchForm, completed, read_duration
from engine.places import Places, own_agents_folder
from engine.sweeps.checks import Check, Mend, failed
from engine.sweeps.forecast import Forecast, forecast
from foundation.problems import Problem, UsageProblem

Taken = TypeVar("Taken")

_AGENTS_NAMED = 6
# What tells agents the task without the competition's name.
OBFUSCATED = "obfuscated"


@dataclass(frozen=True)
class Draft:
    """What is typed, field by field, as text; an empty field is left to what is usual."""

    agent: str = ""
    competitions: str = "low"
    seeds: str = "3"
    time_limit: str = "24h"
    concurrency: str = "1"
    priority: str = "0"
    start_ramp: str = ""
    retries: str = "2"
    name: str = ""
    experiment: str = ""
    runtime: str = "process"
    network: str = "none"
    allow: str = ""
    edition: str = "v1"
    descriptions: str = ""
    cpus: str = "1"
    memory_gb: str = ""
    gpus: str = "0"
    runs_per_gpu: str = "1"
    idle_limit: str = ""
    disk_gb: str = ""
    agents_dir: str = ""
    prepare: bool = False

    def changed(self, field: str, value: str) -> Draft:
        """The same with another text in a field."""
        return Draft(**(vars(self) | {field: value}))


@dataclass(frozen=True)
class Composed:
    """What a draft comes to.

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
        """What is missing that can be mended in some way."""
        return tuple(
            subject
            for check in self.checks
            if check.mend is mend and not check.good
            for subject in check.subjects
        )


def agents_known(agents_dir: str) -> tuple[Agent, ...]:
    """The agents that could be launched: the operator's folder and our own; waits for the disk."""
    own = [Path(agents_dir.strip()).expanduser()] if agents_dir.strip() else []
    return find_agents([*own, own_agents_folder()]).agents


def compose(draft: Draft, places: Places, engine: EngineStatus | None) -> Composed:
    """Work out what a draft comes to; waits for the disk, and for Docker where that is asked for."""
    wrong: list[Check] = []
    form = _form(draft, wrong)
    chosen = _taken(wrong, lambda: _competitions(draft.competitions))
    if not form.agent:
        several = ", ".join(agent.id for agent in agents_known(draft.agents_dir)[:_AGENTS_NAMED])
        wrong.insert(0, Check(False, f"choose an agent: {several}"))
    launch = completed(form, chosen or (), places)
    found = forecast(launch, places, engine or EngineStatus())
    checks = (*wrong, *found.checks)
    return Composed(checks) if wrong else Composed(checks, launch, found)


def _form(draft: Draft, wrong: list[Check]) -> LaunchForm:
    """What the fields say; one that can't be read is told and left unsaid."""

    def whole(text: str, what: str, least: int | None = 0) -> int | None:
        return _taken(wrong, lambda: _whole(text, what, least)) if text.strip() else None

    def number(text: str, what: str) -> float | None:
        return _taken(wrong, lambda: _number(text, what)) if text.strip() else None

    def span(text: str) -> float | None:
        return _taken(wrong, lambda: read_duration(text)) if text.strip() else None

    limit = span(draft.time_limit)
    idle = span(draft.idle_limit)
    return LaunchForm(
        agent=draft.agent.strip(),
        agents_dir=draft.agents_dir.strip() or None,
        seeds=whole(draft.seeds, "seeds", 1),
        hours=None if limit is None else limit / 3600,
        concurrency=whole(draft.concurrency, "runs at once", 1),
        priority=whole(draft.priority, "priority", None),
        start_ramp=span(draft.start_ramp),
        retries=whole(draft.retries, "retries"),
        runtime=draft.runtime.strip() or None,
        network=draft.network.strip() or None,
        allow=tuple(draft.allow.replace(",", " ").split()) or None,
        cpus=number(draft.cpus, "CPUs"),
        memory_gb=number(draft.memory_gb, "GB of memory"),
        gpus=whole(draft.gpus, "GPUs", -1),
        runs_per_gpu=whole(draft.runs_per_gpu, "runs that share a GPU", 1),
        idle_minutes=None if idle is None else idle / 60,
        disk_gb=number(draft.disk_gb, "GB of disk"),
        edition=draft.edition.strip() or None,
        obfuscated=_taken(wrong, lambda: _obfuscated(draft.descriptions)),
        prepare=draft.prepare,
        name=draft.name.strip() or None,
        experiment=draft.experiment.strip() or None,
    )


def _taken(wrong: list[Check], read: Callable[[], Taken]) -> Taken | None:
    """What a field says, or a check that tells what is wrong with it."""
    try:
        return read()
    except Problem as problem:
        wrong.append(failed(problem))
        return None


def _competitions(text: str) -> tuple[str, ...]:
    names = text.replace(",", " ").split()
    if not names:
        raise UsageProblem("choose competitions", "", "a split such as low, or names")
    return registry.choose(names)


def _obfuscated(text: str) -> bool | None:
    if text.strip() not in ("", OBFUSCATED):
        raise UsageProblem(
            f"'{text}' are no descriptions", "", f"{OBFUSCATED}, or nothing: as the data were prepared"
        )
    return True if text.strip() else None


def _whole(text: str, what: str, least: int | None) -> int:
    digits = text.strip().removeprefix("-")
    if not digits.isdecimal() or (least is not None and int(text) < least):
        raise UsageProblem(f"'{text}' is no number of {what}")
    return int(text)


def _number(text: str, what: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise UsageProblem(f"'{text}' is no number of {what}")
    return found
