"""Composing a sweep: what an operator has typed, what that comes to, and what is still missing for it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from competitions import registry
from competitions.model import Edition
from engine.agents import find_agents, own_agents_folder, required_secrets
from engine.agents.model import Agent
from engine.control import EngineStatus
from engine.datasets.planning import is_ready
from engine.places import Places
from engine.runs import runtime
from engine.runs.launching import edition_named
from foundation.problems import Problem, UsageProblem

Taken = TypeVar("Taken")


@dataclass(frozen=True)
class Draft:
    """What is typed, field by field, as text."""

    agent: str = ""
    competitions: str = "low"
    seeds: str = "3"
    limit: str = "24h"
    concurrency: str = "1"
    gpus: str = "0"
    network: str = "none"
    runtime: str = "process"
    edition: str = "v1"
    name: str = ""
    experiment: str = ""
    agents_dir: str = ""
    prepare: bool = False

    def changed(self, field: str, value: str) -> Draft:
        """The same with another text in a field."""
        return Draft(**(vars(self) | {field: value}))


@dataclass(frozen=True)
class Check:
    """One thing that must be right before a launch; `key` is what mends it, where a key does."""

    good: bool
    text: str
    key: str = ""


@dataclass(frozen=True)
class Composed:
    """What a draft comes to.

    Attributes:
        request: what the engine would be asked, or None while something can't be read.
        missing: competitions whose data are not prepared.
        seconds_at_most: how long it takes if every run takes its whole time.
    """

    checks: tuple[Check, ...]
    competitions: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    runs: int = 0
    seconds_at_most: float | None = None
    request: Mapping[str, Any] | None = None

    @property
    def can_launch(self) -> bool:
        """Whether nothing is in the way."""
        return self.request is not None and all(check.good for check in self.checks)


def agents_known(agents_dir: str) -> tuple[Agent, ...]:
    """The agents that could be launched: the operator's folder and our own; waits for the disk."""
    own = [Path(agents_dir.strip()).expanduser()] if agents_dir.strip() else []
    return find_agents([*own, own_agents_folder()]).agents


def compose(draft: Draft, places: Places, engine: EngineStatus | None) -> Composed:
    """Work out what a draft comes to; waits for the disk."""
    checks: list[Check] = []
    agent = _agent(draft, checks)
    chosen = _taken(checks, lambda: _competitions(draft.competitions)) or ()
    seeds = _taken(checks, lambda: _whole(draft.seeds, "seeds"))
    limit = _taken(checks, lambda: read_duration(draft.limit))
    concurrency = _taken(checks, lambda: _whole(draft.concurrency, "at once"))
    gpus = _taken(checks, lambda: _whole(draft.gpus, "GPUs", least=0))
    edition = _taken(checks, lambda: edition_named(draft.edition.strip()))
    if draft.network not in runtime.NETWORKS:
        checks.append(
            Check(False, f"there is no network policy '{draft.network}': {', '.join(runtime.NETWORKS)}")
        )
    checks += _of_engine(engine, gpus)
    missing = _missing(chosen, edition, places)
    if chosen:
        checks.append(_data(len(chosen), missing, draft.prepare))
    if agent is None or not chosen or seeds is None or limit is None or concurrency is None or gpus is None:
        return Composed(tuple(checks), chosen, missing)
    count = len(chosen) * seeds
    return Composed(
        tuple(checks),
        chosen,
        missing,
        runs=count,
        seconds_at_most=math.ceil(count / concurrency) * limit,
        request={
            "name": draft.name.strip(),
            "agent_id": agent.id,
            "agents_dir": draft.agents_dir.strip() or str(own_agents_folder()),
            "competitions": list(chosen),
            "seeds": seeds,
            "time_limit_seconds": limit,
            "edition": draft.edition.strip(),
            "runtime": draft.runtime.strip(),
            "network": draft.network.strip(),
            "gpus": gpus,
            "concurrency": concurrency,
            "prepare_missing": draft.prepare,
            "experiment": draft.experiment.strip(),
        },
    )


def read_duration(text: str) -> float:
    """Seconds of `24h`, `90m`, `45s` or `1h30m`.

    Raises:
        UsageProblem: it is none of these.
    """
    seconds, number = 0.0, ""
    for letter in text.strip().lower():
        if letter.isdigit() or letter == ".":
            number += letter
        elif letter in "hms" and number.replace(".", "", 1).isdigit():
            seconds += float(number) * {"h": 3600, "m": 60, "s": 1}[letter]
            number = ""
        else:
            seconds, number = 0.0, ""
            break
    if number or not seconds:
        raise UsageProblem(f"'{text}' is no time limit", "", "Type 24h, 90m or 1h30m.")
    return seconds


def _taken(checks: list[Check], read: Callable[[], Taken]) -> Taken | None:
    """What a field says, or a check that tells what is wrong with it."""
    try:
        return read()
    except Problem as problem:
        checks.append(Check(False, " ".join(str(problem).splitlines())))
        return None


def _agent(draft: Draft, checks: list[Check]) -> Agent | None:
    known = {agent.id: agent for agent in agents_known(draft.agents_dir)}
    agent = known.get(draft.agent.strip())
    if agent is None:
        several = ", ".join(list(known)[:6])
        what = f"there is no agent '{draft.agent.strip()}'" if draft.agent.strip() else "choose an agent"
        checks.append(Check(False, f"{what}: {several}"))
        return None
    secrets = [name for name in required_secrets(agent) if not os.environ.get(name)]
    if secrets:
        # The engine's environment counts, which may be another one than ours.
        checks.append(Check(True, f"secrets {', '.join(secrets)} must be set where the engine was started"))
    return agent


def _competitions(text: str) -> tuple[str, ...]:
    names = text.replace(",", " ").split()
    if not names:
        raise UsageProblem("choose competitions", "", "A split such as low, or names.")
    chosen: list[str] = []
    for name in names:
        chosen += registry.read_split(name) if name in registry.splits() else [registry.get(name).id]
    return tuple(dict.fromkeys(chosen))


def _whole(text: str, what: str, *, least: int = 1) -> int:
    if not text.strip().isdigit() or int(text) < least:
        raise UsageProblem(f"'{text}' is no number of {what}")
    return int(text)


def _of_engine(engine: EngineStatus | None, gpus: int | None) -> list[Check]:
    if engine is None or not engine.running:
        return [Check(False, "the engine is not running", "e")]
    found = [Check(True, f"the engine runs with {engine.slots:g} slots")] if engine.slots else []
    if gpus and engine.gpus is not None and gpus > engine.gpus:
        found.append(Check(False, f"a run wants {gpus} GPUs, this host has {engine.gpus}"))
    return found


def _missing(chosen: tuple[str, ...], edition: Edition | None, places: Places) -> tuple[str, ...]:
    if edition is None:
        return ()
    return tuple(name for name in chosen if not is_ready(name, edition, places.data_dir))


def _data(count: int, missing: tuple[str, ...], prepare: bool) -> Check:
    if not missing:
        return Check(True, f"the data of all {count} competitions are prepared")
    named = ", ".join(missing[:3]) + (" ..." if len(missing) > 3 else "")
    if prepare:
        return Check(True, f"{len(missing)} of {count} datasets will be prepared first: {named}", "p")
    return Check(False, f"{len(missing)} of {count} datasets are not prepared: {named}", "p")
