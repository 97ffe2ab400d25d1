"""The options of a sweep: one table from which flags, keys of a file, fields of the form and requests are made.

To add an option, add a line to `SweepOptions`, and the field that stores it: of `foundation.conditions`, or of the
sweep or launch if it is not about a single run.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from mlebench_console.competitions import registry
from mlebench_console.competitions.model import EDITIONS
from mlebench_console.engine.places import Places, own_agents_folder
from mlebench_console.engine.requests import LaunchSweep
from mlebench_console.environment.runner.protocol import NETWORKS, RUNTIMES
from mlebench_console.foundation.fields import Bounds, FieldError, convert, flat, flat_fields, from_flat
from mlebench_console.foundation.problems import DataProblem, UsageProblem, reading

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_GB = 1e9
RESULT, RELAUNCH = "result", "relaunch"
_YES, _NO = "yes", "no"
_LARGEST = 1e15
_COUNT = Bounds("a whole number, 1 or more", least=1)
_POSITIVE = Bounds("a number above 0", above=0)
_NOT_NEGATIVE = Bounds("a number, 0 or more", least=0)


class FormGroup(StrEnum):
    """The groups of the launch form's fields, in their order."""

    WHAT = "what runs"
    SCHEDULING = "scheduling"
    MODELS = "its models"
    WHERE = "where it runs"
    LIMITS = "limits of a run"
    BUDGET = "budget of model calls"


@dataclass(frozen=True)
class FormField:
    """How the launch form shows an option.

    Attributes:
        hint: what to type there.
        initial: the initial text, where it is not that of the default.
        group: the group of fields that it belongs to.
        about: what is said of it while it is typed into, where the flag's help is about flags; the help if empty.
    """

    label: str
    hint: str
    initial: str = ""
    group: FormGroup = FormGroup.WHAT
    about: str = ""


@dataclass(frozen=True)
class Option:
    """An option's properties for the command line, option files and the launch form.

    Attributes:
        help: the help text of its flag.
        default: its default value, by default that of the field that stores it; None without one.
        kept_as: the flat name of the field within `LaunchSweep` that stores it, by default its own name; empty: not
            stored.
        unit: the factor from its own unit to that of the stored field, such as 3600 for hours stored as seconds.
        bounds: the valid numbers, in its own unit; None for other types.
        choices: the valid values; empty: any.
        is_path: whether it is a file or folder; in an option file, relative to that file's folder.
        metavar: the placeholder of its value in the flag's help.
        has_flag: whether it has a flag; other options are given in a file.
        form: its field in the launch form; None without one.
    """

    name: str
    type: type
    kept_as: str
    help: str
    default: Any = None
    unit: float = 1
    bounds: Bounds | None = None
    choices: tuple[str, ...] = ()
    is_path: bool = False
    metavar: str | None = None
    has_flag: bool = True
    form: FormField | None = None

    @property
    def is_duration(self) -> bool:
        """Whether it is a duration, which the form reads as `1h30m`."""
        return self.kept_as.endswith("_seconds")

    @property
    def initial(self) -> str:
        """The initial text of its form field."""
        given = "" if self.form is None else self.form.initial
        return given or self.to_text(self.default)

    @property
    def typed_choices(self) -> tuple[str, ...]:
        """The valid texts of its form field; empty where any text may be typed."""
        return (_YES, _NO) if self.type is bool else self.choices

    @property
    def about(self) -> str:
        """The form's explanation of the option, with its valid texts."""
        text = self.form.about if self.form is not None and self.form.about else self.help
        is_complete = all(choice in text for choice in self.typed_choices)
        return text if is_complete else f"{text} Type {', '.join(self.typed_choices)}."

    def to_kept(self, value: Any) -> Any:
        """Convert a value to the stored one; None for a 0 that means no limit."""
        if self.is_duration and isinstance(value, str):
            return read_duration(value)
        if self.is_path:
            return str(Path(value).expanduser().absolute())
        if self.unit == 1:
            return value
        kept = round(value * self.unit) if self.unit == _GB else value * self.unit
        return kept or (None if _DEFAULTS[self.kept_as] is None else kept)

    def from_text(self, text: str) -> Any:
        """Parse the text of a form field; None for an empty one.

        Raises:
            UsageProblem: the text is not valid.
        """
        typed = text.strip()
        if not typed:
            return None
        if self.type is tuple:
            return tuple(typed.replace(",", " ").split())
        assert self.form is not None  # only options of the form are parsed
        if self.typed_choices and typed not in self.typed_choices:
            known = ", ".join(self.typed_choices[:-1]) + f" or {self.typed_choices[-1]}"
            raise UsageProblem(f"'{typed}' is not {known}")
        if self.type is bool:
            return True if typed == _YES else None
        if self.type is str:
            return typed
        assert self.bounds is not None  # of numbers
        try:
            value = read_duration(typed) / self.unit if self.is_duration else self.type(typed)
        except ValueError:
            value = math.nan
        if not self.bounds.allow(value):
            raise UsageProblem(f"'{typed}' is not {self.bounds.expected}")
        return value

    def to_text(self, value: Any) -> str:
        """Return the text of a form field for a value, the inverse of `from_text`; empty for None."""
        if self.type is bool:
            return _YES if value else _NO
        if value is None:
            return ""
        if self.type is tuple:
            return " ".join(value)
        if self.is_duration:
            return duration_text(value * self.unit)
        return f"{value:.15g}" if isinstance(value, float) else str(value)

    def from_kept(self, kept: Any) -> Any:
        """Convert a stored value to the value of the option; None where it need not be given."""
        if kept is None or kept is False or kept in ("", ()):
            return None
        return kept if self.unit == 1 else kept / self.unit


def _option(help: str, **more: Any) -> Any:
    return field(default=None, metadata={"help": help} | more)


@dataclass(frozen=True)
class SweepOptions:
    """The options that an operator has given; None: not given. Fields are named like flags and keys in a file."""

    agent: str | None = _option(
        "The agent's id, such as aide or aide/dev.",
        kept_as="agent_id",
        metavar="ID",
        form=FormField("agent", "such as aide"),
    )
    competitions: tuple[str, ...] | None = _option(
        "Ids separated by commas; repeatable.",
        metavar="ID,...",
        form=FormField(
            "competitions",
            "a split, or names",
            initial="low",
            about="A split (low, medium, high, all ...) or names of competitions, with spaces between them.",
        ),
    )
    split: str | None = _option(
        "low, medium, high, all ... or a file of ids.", kept_as="", metavar="NAME|FILE"
    )
    seeds: int | None = _option(
        "How many seeds each competition has: one run for each.",
        default=3,
        bounds=Bounds("a whole number from 1 to 1000", least=1, most=1000),
        form=FormField("seeds", "of each competition"),
    )
    hours: float | None = _option(
        "The time limit of a run.",
        kept_as="time_limit_seconds",
        unit=3600,
        default=24.0,
        bounds=_POSITIVE,
        form=FormField(
            "time limit",
            "24h, 90m, 1h30m",
            about="The time limit of a run: 24h, 90m, 1h30m ...",
        ),
    )
    minutes: float | None = _option(
        "The same in minutes, for short trials.", kept_as="time_limit_seconds", unit=60, bounds=_POSITIVE
    )
    time_limit: str | None = _option(
        "The same as a text, such as 1h30m.", kept_as="time_limit_seconds", has_flag=False
    )
    concurrency: int | None = _option(
        "How many runs at once.",
        bounds=_COUNT,
        form=FormField("at once", "runs"),
    )
    priority: int | None = _option(
        "The sweep whose runs start first when slots come free: a higher number goes first.",
        bounds=Bounds("a whole number"),
        form=FormField("priority", "higher goes first", group=FormGroup.SCHEDULING),
    )
    start_ramp: float | None = _option(
        "Time between the starts of two runs, so that they do not all load data at once.",
        kept_as="start_ramp_seconds",
        bounds=_NOT_NEGATIVE,
        metavar="SECONDS",
        form=FormField("between starts", "empty: none; or 30s", group=FormGroup.SCHEDULING),
    )
    retries: int | None = _option(
        "How often a run is started again after it failed because of the infrastructure.",
        default=2,
        bounds=Bounds("a whole number, 0 or more", least=0),
        form=FormField("retries", "of infrastructure", group=FormGroup.SCHEDULING),
    )
    name: str | None = _option(
        "The sweep's name; made from the agent's if not given. Launching the same again changes nothing.",
        metavar="NAME",
        form=FormField("name", "empty: the agent's"),
    )
    experiment: str | None = _option(
        "The leaderboard row it belongs to.",
        metavar="NAME",
        form=FormField("experiment", "empty: none"),
    )
    note: str | None = _option("What the sweep is for.", has_flag=False)
    agents_dir: str | None = _option(
        "An agents folder in MLE-bench's format.",
        metavar="DIR",
        is_path=True,
        form=FormField("agents folder", "empty: the bundled"),
    )
    runtime: str | None = _option(
        "docker: containers; process: on this host's own system, isolated by bubblewrap where that works; "
        "plain: never isolated; bubblewrap, apptainer: in the agent's exported image, without a daemon; "
        "auto: the first of these that works.",
        choices=RUNTIMES,
        form=FormField(
            "runtime",
            "process, docker, auto ...",
            about="process (this host's own system, isolated by bubblewrap where that works), plain (not isolated), "
            "docker; in exported images bubblewrap, apptainer; auto: the first of these that works.",
            group=FormGroup.WHERE,
        ),
    )
    placement: str | None = _option(
        "Where runs are run: here, or by Slurm: slurm, or slurm:NAME for the table [slurm.NAME] in config.toml.",
        metavar="NAME",
        form=FormField("placement", "here or slurm", group=FormGroup.WHERE),
    )
    network: str | None = _option(
        "What agents may reach: nothing, the hosts of --allow, or everything.",
        choices=NETWORKS,
        form=FormField("network", "none, models or open", group=FormGroup.WHERE),
    )
    allow: tuple[str, ...] | None = _option(
        "A host of the network 'models'; repeatable.",
        kept_as="allowed_hosts",
        metavar="HOST[:PORT]",
        form=FormField(
            "hosts",
            "empty: none",
            about="Hosts that the network 'models' lets through: HOST[:PORT] ...",
            group=FormGroup.WHERE,
        ),
    )
    gateway: tuple[str, ...] | None = _option(
        "Pass model calls to this provider on by a gateway, which has its key and counts what they use; repeatable.",
        metavar="PROVIDER",
        form=FormField(
            "gateway",
            "empty: none; or openai",
            about="Providers whose models agents may call: a gateway has the keys, passes calls on and counts them.",
            group=FormGroup.MODELS,
        ),
    )
    model_grant: tuple[str, ...] | None = _option(
        "What providers may do for agents beyond answering: web-search, code-execution, mcp, remote-urls; repeatable.",
        kept_as="model_grants",
        metavar="GRANT",
        form=FormField(
            "model tools",
            "empty: none; or mcp",
            about="What providers may do for agents beyond answering: web-search, code-execution, mcp, remote-urls.",
            group=FormGroup.MODELS,
        ),
    )
    budget_calls: int | None = _option(
        "Model calls of a run; its gateway refuses further ones, as a provider does whose quota is used up.",
        bounds=_COUNT,
        form=FormField("model calls a run", "empty: no limit", group=FormGroup.BUDGET),
    )
    budget_tokens: int | None = _option(
        "Tokens of a run's model calls, prompts and answers together; its gateway refuses further calls.",
        bounds=_COUNT,
        form=FormField("tokens a run", "empty: no limit", group=FormGroup.BUDGET),
    )
    budget_usd: float | None = _option(
        "US dollars for a run's model calls; its gateway refuses further ones, and all of models without a price.",
        bounds=_POSITIVE,
        form=FormField("model USD a run", "empty: no limit", group=FormGroup.BUDGET),
    )
    sweep_budget_calls: int | None = _option(
        "Model calls of all runs of the sweep together; once they are used up, no more of its runs start.",
        bounds=_COUNT,
        form=FormField("all model calls", "empty: no limit", group=FormGroup.BUDGET),
    )
    sweep_budget_tokens: int | None = _option(
        "Tokens of all runs of the sweep together; once they are used up, no more of its runs start.",
        bounds=_COUNT,
        form=FormField("all tokens", "empty: no limit", group=FormGroup.BUDGET),
    )
    sweep_budget_usd: float | None = _option(
        "US dollars for models of all its runs together; once they are used up, no more of its runs start.",
        bounds=_POSITIVE,
        form=FormField("all model USD", "empty: no limit", group=FormGroup.BUDGET),
    )
    over_budget: str | None = _option(
        "What counts when a run fails because the budget of its sweep or experiment is used up: result counts the "
        "failure, relaunch counts nothing until the budget is raised and the run is relaunched for free.",
        choices=(RESULT, RELAUNCH),
        form=FormField("over budget means", "result or relaunch", group=FormGroup.BUDGET),
    )
    record_calls: bool | None = _option(
        "Keep the requests of runs to models and the answers, compressed, in the runs' directories.",
        form=FormField("record calls", "yes or no", group=FormGroup.MODELS),
    )
    edition: str | None = _option(
        "v1 is MLE-bench bit for bit; corrected mends its defects.",
        choices=EDITIONS,
        form=FormField("edition", "v1 or corrected"),
    )
    obfuscated: bool | None = _option(
        "Describe the task to agents without the competition's name, as OBFUSCATE=true does.",
        form=FormField("obfuscated", "yes or no"),
    )
    cpus: float | None = _option(
        "Processors of a run: reserved for it, and it gets no more.",
        bounds=_POSITIVE,
        form=FormField("CPUs", "reserved for a run", group=FormGroup.LIMITS),
    )
    memory_gb: float | None = _option(
        "Memory limit of a run, all its processes together; if not given or 0, none in containers, and nine tenths "
        "of the host's memory for processes.",
        kept_as="memory_bytes",
        unit=_GB,
        bounds=_NOT_NEGATIVE,
        form=FormField("memory GB", "empty: no limit", group=FormGroup.LIMITS),
    )
    shm_gb: float | None = _option(
        "Shared memory of a container.", kept_as="shm_bytes", unit=_GB, bounds=_NOT_NEGATIVE, has_flag=False
    )
    gpus: int | None = _option(
        "GPUs of a container or a job; -1 is all of a host.",
        bounds=Bounds("a whole number, -1 or more", least=-1),
        form=FormField("GPUs", "of a run; -1 is all", group=FormGroup.LIMITS),
    )
    runs_per_gpu: int | None = _option(
        "How many runs share a GPU.",
        bounds=_COUNT,
        form=FormField("runs per GPU", "1", group=FormGroup.LIMITS),
    )
    idle_minutes: float | None = _option(
        "End a run in which nothing happens for this long; 0 means never.",
        kept_as="idle_limit_seconds",
        unit=60,
        bounds=_NOT_NEGATIVE,
        form=FormField("idle limit", "empty: none; or 30m", group=FormGroup.LIMITS),
    )
    disk_gb: float | None = _option(
        "End a run that uses more disk space than this; 0 means never.",
        kept_as="disk_limit_bytes",
        unit=_GB,
        bounds=_NOT_NEGATIVE,
        form=FormField("disk GB", "empty: no limit", group=FormGroup.LIMITS),
    )
    container_config: str | None = _option(
        "Limits of containers, as MLE-bench's JSON.", kept_as="", metavar="FILE", is_path=True
    )
    container_runtime: str | None = _option("The OCI runtime of containers.", has_flag=False)
    container_options: tuple[str, ...] | None = _option(
        'More settings of containers, each as Docker\'s client calls it, such as cpuset_cpus="0-3".',
        has_flag=False,
    )
    keep_containers: bool | None = _option("Keep agents' containers after their runs.")
    grace_seconds: float | None = _option(
        "How long an agent has to end after it is asked to.", bounds=_NOT_NEGATIVE, has_flag=False
    )
    grade_every_seconds: float | None = _option(
        "How often submissions are checked.", bounds=_POSITIVE, has_flag=False
    )
    prepare: bool | None = _option("Prepare datasets that are not prepared yet.", kept_as="prepare_missing")

    def given(self) -> dict[str, Any]:
        """Return the given options by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, base: SweepOptions) -> SweepOptions:
        """Return these options, with missing ones taken from `base`."""
        given = self.given()
        replaced = {name for group in _ALTERNATIVES if group & given.keys() for name in group}
        kept = {name: value for name, value in base.given().items() if name not in replaced}
        return SweepOptions(**(kept | given))


# Options that set the same thing: one of them overrides the others of its group in the base.
_ALTERNATIVES = (frozenset({"competitions", "split"}), frozenset({"hours", "minutes", "time_limit"}))


def _options() -> Iterator[Option]:
    hints = get_type_hints(SweepOptions)
    for each in fields(SweepOptions):
        kind = next(part for part in get_args(hints[each.name]) if part is not NoneType)
        option = Option(
            **({"name": each.name, "type": get_origin(kind) or kind, "kept_as": each.name} | each.metadata)
        )
        kept = _DEFAULTS.get(option.kept_as, MISSING)
        if option.default is None and kept is not MISSING:
            option = replace(option, default=option.from_kept(kept))
        yield option


# The defaults of what a launch stores, by flat names; MISSING for what must be given.
_DEFAULTS = {name: each.default for name, each in flat_fields(LaunchSweep).items()}
OPTIONS = tuple(_options())
FORM_OPTIONS = tuple(
    option
    for group in FormGroup
    for option in OPTIONS
    if option.form is not None and option.form.group is group
)


# The default of each value that a launch stores, by its flat name.
USUAL_VALUES = {name: value for name, value in _DEFAULTS.items() if value is not MISSING} | {
    option.kept_as: option.to_kept(option.default) for option in OPTIONS if option.default is not None
}


def resolve(options: SweepOptions, places: Places) -> LaunchSweep:
    """Make a complete launch from the given options and defaults.

    Raises:
        UsageProblem: a required option is missing, or one is not valid.
        DataProblem: a given file can't be read.
    """
    if not options.agent:
        raise UsageProblem("no agent was given", "", "Give --agent ID, such as dummy or aide.")
    members = registry.read_split(options.split) if options.split else ()
    chosen = tuple(dict.fromkeys([*members, *registry.choose(options.competitions or ())]))
    if not chosen:
        raise UsageProblem(
            "no competition was given",
            "",
            "Give --split low, or --competitions with ids separated by commas.",
        )
    return completed(options, chosen, places)


def completed(options: SweepOptions, competitions: tuple[str, ...], places: Places) -> LaunchSweep:
    """Make a launch from the given options, defaults and competitions, which may be empty.

    Raises:
        UsageProblem: an option is not valid.
        DataProblem: the container config can't be read.
    """
    if options.container_config:
        options = options.over(read_container_config(Path(options.container_config)))
    values = USUAL_VALUES | {"agent_id": "", "agents_dir": str(own_agents_folder())}
    given = options.given()
    for option in OPTIONS:
        if option.name in given:
            value = given[option.name]
            # Before units are converted, which only numbers of some size allow.
            if option.bounds is not None and isinstance(value, float) and not abs(value) < _LARGEST:
                raise UsageProblem(f"'{option.name}' must be {option.bounds.expected}, not {value:g}")
            values[option.kept_as] = option.to_kept(value)
    values |= {"competitions": competitions, "data_dir": str(places.data_dir)}
    values.pop("", None)
    return from_flat(LaunchSweep, values)


def options_of(launch: LaunchSweep) -> SweepOptions:
    """Return the options that give this launch."""
    kept = flat(launch)
    given: dict[str, tuple[str, Any]] = {}
    for option in OPTIONS:
        if option.kept_as and option.kept_as not in given:
            given[option.kept_as] = (option.name, option.from_kept(kept[option.kept_as]))
    found = dict(given.values())
    if found["agents_dir"] == str(own_agents_folder()):
        found["agents_dir"] = None
    return SweepOptions(**found)


def impossible(launch: LaunchSweep) -> Iterator[UsageProblem]:
    """Yield a problem for each invalid option of a launch, independent of this host."""
    kept = flat(launch)
    for option in OPTIONS:
        value = kept.get(option.kept_as)
        if option.choices and value not in option.choices:
            known = ", ".join(option.choices)
            yield UsageProblem(f"there is no {option.name} '{value}'", "", f"Choose one of {known}.")
        bounds = option.bounds
        if bounds is not None and value is not None and not bounds.allow(value / option.unit):
            yield UsageProblem(f"'{option.kept_as}' must be {bounds.expected}, not {value:g}")


def check_name(name: str) -> str:
    """Return the name, if it is valid for a sweep and its folder.

    Raises:
        UsageProblem: it is not.
    """
    if not _NAME.fullmatch(name):
        raise UsageProblem(
            f"'{name}' is not a valid name of a sweep",
            "",
            "Use letters, digits, '.', '_' and '-', at most 100.",
        )
    return name


_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def read_duration(text: str) -> float:
    """Return the seconds of a duration such as `24h`, `90m`, `45s` or `1h30m`.

    Raises:
        UsageProblem: the text is not a duration.
    """
    parts = re.findall(r"([0-9.]+)([dhms])", text.strip().lower())
    try:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    except ValueError:
        seconds = 0.0
    if not seconds or "".join(number + unit for number, unit in parts) != text.strip().lower():
        raise UsageProblem(f"'{text}' is not a duration", "", "Type 24h, 90m or 1h30m.")
    return seconds


def duration_text(seconds: float) -> str:
    """Return a duration in the form of `read_duration`, such as `1h30m`; empty for 0."""
    whole = int(seconds)
    hours, rest = divmod(whole, _SECONDS["h"])
    minutes, left = divmod(rest, _SECONDS["m"])
    last = left + (seconds - whole)
    parts = ((hours, "h"), (minutes, "m"), (last, "s"))
    return "".join(f"{number:.15g}{unit}" for number, unit in parts if number)


def read_toml(path: Path) -> SweepOptions:
    """Read the options of a file; relative paths in it are relative to its folder.

    Raises:
        DataProblem: the file can't be read.
        UsageProblem: an option is unknown or not valid.
    """
    with reading(path):
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    keys = {key.replace("-", "_"): key for key in values}
    by_name = {name: values[key] for name, key in keys.items()}
    for option in OPTIONS:
        if option.type is tuple and isinstance(by_name.get(option.name), str):
            by_name[option.name] = [by_name[option.name]]  # a single string is accepted for a list
    try:
        found = convert(get_type_hints(SweepOptions), by_name)
    except FieldError as error:
        key = keys[error.name]
        if error.expected:
            what = f"{path}: '{key}' is not {error.expected}"
            raise UsageProblem(what, f"it says {values[key]!r}") from error
        names = [option.name for option in OPTIONS]
        close = registry.resembling(error.name, names)
        known = f"Did you mean {close[0]}?" if close else f"Choose one of {', '.join(names)}."
        raise UsageProblem(f"{path}: a sweep has no option '{key}'", "", known) from error
    paths = [option.name for option in OPTIONS if option.is_path and option.name in found]
    if found.get("split") not in (None, *registry.splits()):
        paths.append("split")
    folder = path.absolute().parent
    return SweepOptions(**(found | {name: str(folder / Path(found[name]).expanduser()) for name in paths}))


def write_toml(options: SweepOptions) -> str:
    """Return options as TOML, the inverse of `read_toml`."""
    import tomlkit

    return tomlkit.dumps(options.given())


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([bkmgt]?)b?", re.IGNORECASE)
_SIZE_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_CONTAINER_KEYS = ("mem_limit", "shm_size", "nano_cpus", "runtime", "gpus")
# Further settings of Docker's create and their types: only those that limit resources and open nothing to an agent.
_HARMLESS_KEYS: dict[str, tuple[type, ...]] = {
    "blkio_weight": (int,),
    "cpu_shares": (int,),
    "cpuset_cpus": (str,),
    "cpuset_mems": (str,),
    "mem_reservation": (int, str),
    "mem_swappiness": (int,),
    "oom_score_adj": (int,),
    "pids_limit": (int,),
    "ulimits": (list,),
}
_ULIMIT_KEYS = {"name", "soft", "hard"}


def read_container_config(path: Path) -> SweepOptions:
    """Read MLE-bench's container config: a JSON object of arguments for Docker's create.

    Raises:
        DataProblem: it can't be read, or a value is unknown or not valid.
    """
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise DataProblem(f"{path}", "it is not a JSON object")
    known = (*_CONTAINER_KEYS, *_HARMLESS_KEYS)
    for key in sorted(content.keys() - set(known)):
        raise DataProblem(f"{path}: unknown key '{key}'", "", f"Choose one of {', '.join(known)}.")

    def number(key: str, unit: float = 1) -> float | None:
        """Return a number, or with a unit a size such as "4G"."""
        value = content.get(key)
        if unit != 1 and isinstance(value, str):
            found = _SIZE.fullmatch(value.strip())
            if found is None:
                raise DataProblem(f"{path}: '{key}' is not a size", f"it says '{value}'", 'Write it as "4G".')
            value = float(found.group(1)) * _SIZE_UNITS[found.group(2).lower()]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise DataProblem(f"{path}: '{key}' is not a number")
        return None if value is None else value / unit

    gpus, runtime = number("gpus"), content.get("runtime")
    if runtime is not None and not isinstance(runtime, str):
        raise DataProblem(f"{path}: 'runtime' is not a name")
    options = [
        f"{key}={json.dumps(_harmless(path, key, content[key]), sort_keys=True)}"
        for key in _HARMLESS_KEYS
        if content.get(key) is not None
    ]
    return SweepOptions(
        container_options=tuple(options) or None,
        memory_gb=number("mem_limit", _GB),
        shm_gb=number("shm_size", _GB),
        cpus=number("nano_cpus", 1e9),
        container_runtime=runtime,
        gpus=None if gpus is None else int(gpus),
    )


def _harmless(path: Path, key: str, value: Any) -> Any:
    """Return a setting after checking its type, with ulimits in the form of Docker's client."""
    kinds_of = _HARMLESS_KEYS[key]
    if isinstance(value, bool) or type(value) not in kinds_of:
        kinds = " or ".join(
            {"int": "number", "str": "text"}.get(kind.__name__, kind.__name__) for kind in kinds_of
        )
        raise DataProblem(f"{path}: '{key}' is not a {kinds}")
    if key != "ulimits":
        return value
    limits = [
        {str(name).lower(): item for name, item in one.items()} for one in value if isinstance(one, dict)
    ]
    if len(limits) != len(value) or any("name" not in one or one.keys() - _ULIMIT_KEYS for one in limits):
        raise DataProblem(
            f"{path}: 'ulimits' is not valid",
            "",
            'Write each as {"Name": "nofile", "Soft": 1024, "Hard": 2048}.',
        )
    return limits
