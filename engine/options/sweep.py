"""What an operator has said about a sweep, by flags, by file or in fields; and what that comes to."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from competitions import registry
from engine.options.container_config import ContainerConfig, read_container_config
from engine.places import Places, own_agents_folder
from foundation.problems import UsageProblem
from state.records import SweepSpec

Value = TypeVar("Value")

# Fields that say one thing in several ways: who says it in one way takes back the others.
_ONE_OF = (frozenset({"competitions", "split"}), frozenset({"hours", "minutes", "time_limit"}))


@dataclass(frozen=True)
class LaunchForm:
    """Each field is named as its flag and its key in a file; None is what was left unsaid."""

    agent: str | None = None
    agents_dir: str | None = None
    competitions: tuple[str, ...] | None = None
    split: str | None = None
    seeds: int | None = None
    hours: float | None = None
    minutes: float | None = None
    time_limit: str | None = None
    concurrency: int | None = None
    priority: int | None = None
    start_ramp: float | None = None
    retries: int | None = None
    runtime: str | None = None
    network: str | None = None
    allow: tuple[str, ...] | None = None
    cpus: float | None = None
    memory_gb: float | None = None
    shm_gb: float | None = None
    gpus: int | None = None
    runs_per_gpu: int | None = None
    idle_minutes: float | None = None
    disk_gb: float | None = None
    container_config: str | None = None
    container_runtime: str | None = None
    keep_containers: bool | None = None
    grace_seconds: float | None = None
    grade_every_seconds: float | None = None
    edition: str | None = None
    obfuscated: bool | None = None
    prepare: bool | None = None
    name: str | None = None
    experiment: str | None = None
    note: str | None = None

    def said(self) -> dict[str, object]:
        """What was said, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, base: LaunchForm) -> LaunchForm:
        """The same, with what it leaves unsaid as the base says it."""
        said = self.said()
        taken_back = {name for group in _ONE_OF if group & said.keys() for name in group}
        kept = {name: value for name, value in base.said().items() if name not in taken_back}
        return replace(LaunchForm(), **(kept | said))  # type: ignore[arg-type]  # values of the same fields


def resolve(form: LaunchForm, places: Places) -> Launch:
    """Make of what was said a launch in which nothing is left open.

    Raises:
        UsageProblem: something that is needed was left unsaid, or can't be meant.
        DataProblem: a file that was named can't be read.
    """
    if not form.agent:
        raise UsageProblem("no agent was named", "", "Give --agent ID, such as dummy or aide.")
    return completed(form, _chosen(form), places)


def completed(form: LaunchForm, competitions: tuple[str, ...], places: Places) -> Launch:
    """The same for known competitions, of which there may be none yet.

    Raises:
        UsageProblem: something can't be meant.
        DataProblem: the container config can't be read.
    """
    config = (
        read_container_config(Path(form.container_config)) if form.container_config else ContainerConfig()
    )
    usual = SweepSpec("", "", (), 1, 1.0)
    spec = SweepSpec(
        agent_id=form.agent or "",
        agents_dir=str(
            Path(form.agents_dir).expanduser().absolute() if form.agents_dir else own_agents_folder()
        ),
        competitions=competitions,
        seeds=_or(form.seeds, 3),
        time_limit_seconds=_limit_seconds(form),
        edition=_or(form.edition, usual.edition),
        runtime=_or(form.runtime, usual.runtime),
        network=_or(form.network, usual.network),
        cpus=form.cpus or config.cpus or usual.cpus,
        memory_bytes=config.memory_bytes if form.memory_gb is None else _bytes(form.memory_gb),
        gpus=_or(form.gpus, config.gpus or 0),
        grace_seconds=_or(form.grace_seconds, usual.grace_seconds),
        grade_every_seconds=_or(form.grade_every_seconds, usual.grade_every_seconds),
        data_dir=str(places.data_dir),
        prepare_missing=_or(form.prepare, usual.prepare_missing),
        allowed_hosts=form.allow or (),
        shm_bytes=config.shm_bytes if form.shm_gb is None else _bytes(form.shm_gb),
        container_runtime=_or(form.container_runtime, config.runtime or ""),
        keep_containers=_or(form.keep_containers, usual.keep_containers),
        runs_per_gpu=_or(form.runs_per_gpu, usual.runs_per_gpu),
        idle_limit_seconds=(form.idle_minutes or 0) * 60 or None,
        disk_limit_bytes=_bytes(form.disk_gb or 0),
        retries=_or(form.retries, 2),
        start_ramp_seconds=_or(form.start_ramp, usual.start_ramp_seconds),
        obfuscated=_or(form.obfuscated, usual.obfuscated),
    )
    return Launch(
        spec,
        name=form.name or "",
        concurrency=_or(form.concurrency, 1),
        priority=_or(form.priority, 0),
        experiment=form.experiment or "",
        note=form.note or "",
    )


def form_of(launch: Launch) -> LaunchForm:
    """What one would have to say to ask for the same."""
    spec = launch.spec
    own_folder = spec.agents_dir in ("", str(own_agents_folder()))
    return LaunchForm(
        agent=spec.agent_id,
        agents_dir=None if own_folder else spec.agents_dir,
        competitions=spec.competitions,
        seeds=spec.seeds,
        hours=spec.time_limit_seconds / 3600,
        concurrency=launch.concurrency,
        priority=launch.priority,
        start_ramp=spec.start_ramp_seconds,
        retries=spec.retries,
        runtime=spec.runtime,
        network=spec.network,
        allow=spec.allowed_hosts or None,
        cpus=spec.cpus,
        memory_gb=None if spec.memory_bytes is None else spec.memory_bytes / 1e9,
        shm_gb=None if spec.shm_bytes is None else spec.shm_bytes / 1e9,
        gpus=spec.gpus,
        runs_per_gpu=spec.runs_per_gpu,
        idle_minutes=None if spec.idle_limit_seconds is None else spec.idle_limit_seconds / 60,
        disk_gb=None if spec.disk_limit_bytes is None else spec.disk_limit_bytes / 1e9,
        container_runtime=spec.container_runtime or None,
        keep_containers=spec.keep_containers,
        grace_seconds=spec.grace_seconds,
        grade_every_seconds=spec.grade_every_seconds,
        edition=spec.edition,
        obfuscated=spec.obfuscated or None,
        prepare=spec.prepare_missing or None,
        name=launch.name or None,
        experiment=launch.experiment or None,
        note=launch.note or None,
    )


def _or(said: Value | None, otherwise: Value) -> Value:
    return otherwise if said is None else said


def _bytes(gigabytes: float) -> int | None:
    return round(gigabytes * 1e9) or None


def _limit_seconds(form: LaunchForm) -> float:
    if form.time_limit is not None:
        return read_duration(form.time_limit)
    if form.minutes:
        return form.minutes * 60
    return _or(form.hours, 24.0) * 3600


def _chosen(form: LaunchForm) -> tuple[str, ...]:
    members = registry.read_split(form.split) if form.split else ()
    chosen = tuple(dict.fromkeys([*members, *registry.choose(form.competitions or ())]))
    if not chosen:
        raise UsageProblem(
            "no competition was named", "", "Give --split low, or --competitions with ids, commas between."
        )
    return chosen


_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def read_duration(text: str) -> float:
    """Seconds of `24h`, `90m`, `45s` or `1h30m`.

    Raises:
        UsageProblem: it is none of these.
    """
    seconds, number = 0.0, ""
    for letter in text.strip().lower():
        if letter.isdecimal() or letter == ".":
            number += letter
        elif letter in _SECONDS and number.replace(".", "", 1).isdecimal():
            seconds += float(number) * _SECONDS[letter]
            number = ""
        else:
            seconds, number = 0.0, ""
            break
    if number or not seconds:
        raise UsageProblem(f"'{text}' is no span of time", "", "Type 24h, 90m or 1h30m.")
    return seconds


@dataclass(frozen=True)
class Launch:
    """A sweep to be.

    Attributes:
        name: the sweep's; empty for one made of the agent's.
        concurrency: how many of its runs may be live at once.
        priority: higher goes first.
        experiment: the leaderboard row it belongs to; empty for none.
    """

    spec: SweepSpec
    name: str = ""
    concurrency: int = 1
    priority: int = 0
    experiment: str = ""
    note: str = ""

    def to_arguments(self) -> dict[str, Any]:
        """Write it as the arguments of a request."""
        own = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "spec"}
        values = asdict(self.spec) | own
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @property
    def run_count(self) -> int:
        """How many runs it comes to."""
        return len(self.spec.competitions) * self.spec.seeds


def check_name(name: str) -> str:
    """The name, if it can be a sweep's and its folder's.

    Raises:
        UsageProblem: it can't.
    """
    if not _NAME.fullmatch(name):
        raise UsageProblem(
            f"'{name}' can't name a sweep", "", "Use letters, digits, '.', '_' and '-', at most 100."
        )
    return name


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
