"""Agents to evaluate: folders with a `config.yaml` as MLE-bench reads them, and what starting one takes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foundation.folders import content_digest
from foundation.problems import DataProblem, EnvironmentProblem, Problem, UsageProblem

CONFIG_NAME = "config.yaml"
ANCHORS = frozenset({"vars", "defaults", "kwargs_common"})
KEYS = frozenset({"start", "dockerfile", "kwargs_type", "kwargs", "env_vars", "privileged"})
IGNORED = frozenset({"__pycache__", ".git", ".DS_Store"})
PRIVILEGED_CONSENT = "I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS"
_OBFUSCATE = "OBFUSCATE"
_VERSION_DIGITS = 12
_ARGPARSE, _OMEGACONF = "argparse", "omegaconf"
_KWARGS_TYPES = f"expected {_ARGPARSE} or {_OMEGACONF}"
_SECRET = re.compile(r"\$\{\{\s*secrets\.(\w+)\s*\}\}")


@dataclass(frozen=True)
class Agent:
    """One agent id of one agent folder.

    Attributes:
        id: the key in `config.yaml`, such as `aide/dev`.
        folder: the agent's folder; its name is the name of the agent's image.
        start: the start script, inside `folder`.
        dockerfile: what builds its image; None when it has none and can only run as a process.
        kwargs_type: how `kwargs` become arguments: argparse, omegaconf, or None when there are none.
        kwargs: arguments in the order of the file, values as text, secrets as `${{ secrets.NAME }}`.
        env_vars: environment variables, likewise.
        privileged: asks for a privileged container.
    """

    id: str
    folder: Path
    start: Path
    dockerfile: Path | None
    kwargs_type: str | None
    kwargs: tuple[tuple[str, str], ...]
    env_vars: tuple[tuple[str, str], ...]
    privileged: bool

    @property
    def image_name(self) -> str:
        """The name under which the agent's image is built."""
        return self.folder.name

    @property
    def start_below_folder(self) -> Path:
        """Where the start script lies when the folder is mounted or copied elsewhere."""
        return self.start.relative_to(self.folder)


@dataclass(frozen=True)
class FoundAgents:
    """All agents of some folders; one broken folder does not hide the others."""

    agents: tuple[Agent, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class StartCommand:
    """What a start script gets; it may hold secrets, so it is made at launch and never stored or printed."""

    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def find_agents(folders: Iterable[Path]) -> FoundAgents:
    """Read all agents below some agents folders, sorted by id."""
    agents: dict[str, Agent] = {}
    problems: list[Problem] = []
    for folder in folders:
        if not folder.is_dir():
            problems.append(DataProblem(f"agents folder {folder}", "it is not a directory"))
            continue
        for config in sorted(folder.glob(f"*/{CONFIG_NAME}")):
            try:
                for agent in _read_config(config):
                    other = agents.setdefault(agent.id, agent)
                    if other is not agent:
                        raise DataProblem(
                            f"agent '{agent.id}' in {config}",
                            f"{other.folder} has an agent of this id too",
                            "rename one of them",
                        )
            except Problem as problem:
                problems.append(problem)
    return FoundAgents(tuple(agents[agent_id] for agent_id in sorted(agents)), tuple(problems))


def get_agent(agent_id: str, folders: Iterable[Path]) -> Agent:
    """Read one agent by its id.

    Raises:
        UsageProblem: there is none of that id.
        DataProblem: there is none among the readable ones, and a config could not be read.
    """
    found = find_agents(folders)
    by_id = {agent.id: agent for agent in found.agents}
    if agent_id in by_id:
        return by_id[agent_id]
    what = f"agent '{agent_id}' is not known"
    if found.problems:
        raise DataProblem(
            what, f"not every agent could be read: {found.problems[0].what}", found.problems[0].why
        )
    close = difflib.get_close_matches(agent_id, by_id, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"known are: {', '.join(by_id) or 'none'}"
    raise UsageProblem(what, next_step=hint)


def required_secrets(agent: Agent) -> tuple[str, ...]:
    """Return the names of the operator's environment variables that the agent needs, in order of appearance."""
    texts = [value for _, value in (*agent.kwargs, *agent.env_vars)]
    return tuple(dict.fromkeys(name for text in texts for name in _SECRET.findall(text)))


def wants_obfuscated(agent: Agent) -> bool:
    """Whether the agent asks for texts without the competition's name, as MLE-bench's agents do."""
    return dict(agent.env_vars).get(_OBFUSCATE, "").lower() == "true"


def start_variables(agent: Agent) -> tuple[tuple[str, str], ...]:
    """Return the variables that its config.yaml sets, with secrets still by name.

    Without the wish for obfuscated texts: a start script that finds it wants to write into the data, which
    can't be written, to put in place what lies there already.
    """
    if not wants_obfuscated(agent):
        return agent.env_vars
    return tuple((name, value) for name, value in agent.env_vars if name != _OBFUSCATE)


def start_arguments(agent: Agent) -> tuple[str, ...]:
    """Return the start script's arguments, with secrets still by name."""
    if agent.kwargs_type == _OMEGACONF:
        return tuple(f"{name}={value}" for name, value in agent.kwargs)
    return tuple(piece for name, value in agent.kwargs for piece in (f"--{name}", value))


def start_command(agent: Agent, operator: Mapping[str, str]) -> StartCommand:
    """Resolve an agent's arguments and variables from the operator's environment.

    Raises:
        EnvironmentProblem: a secret or the consent to a privileged container is missing.
    """
    missing = [name for name in required_secrets(agent) if not operator.get(name)]
    if missing:
        raise EnvironmentProblem(
            f"agent '{agent.id}' cannot be launched",
            f"the environment variable {missing[0]} is not set",
            f"export {' '.join(f'{name}=...' for name in missing)} where the engine is started",
        )
    if agent.privileged and operator.get(PRIVILEGED_CONSENT) != "True":
        raise EnvironmentProblem(
            f"agent '{agent.id}' asks for a privileged container",
            "its processes could take over this host",
            f"export {PRIVILEGED_CONSENT}=True if you accept that",
        )

    def resolved(text: str) -> str:
        return _SECRET.sub(lambda match: operator[match.group(1)], text)

    return StartCommand(
        arguments=tuple(resolved(argument) for argument in start_arguments(agent)),
        environment={name: resolved(value) for name, value in start_variables(agent)},
        secrets=tuple(operator[name] for name in required_secrets(agent)),
    )


def folder_version(folder: Path) -> str:
    """Hash an agent's folder but for what is not its own; twelve digits tell agents apart."""
    return content_digest(folder, ignored=IGNORED)[:_VERSION_DIGITS]


def _read_config(config: Path) -> list[Agent]:
    import yaml

    try:
        content = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataProblem(f"{config} is not readable", reason) from error
    if not isinstance(content, dict):
        raise DataProblem(f"{config}", "it holds no agent ids", "write one top-level key for each agent")
    return [
        _read_agent(str(agent_id), entry, config)
        for agent_id, entry in content.items()
        if agent_id not in ANCHORS
    ]


def _read_agent(agent_id: str, entry: Any, config: Path) -> Agent:
    where = f"agent '{agent_id}' in {config}"
    if not isinstance(entry, dict):
        raise DataProblem(where, "it is not a mapping", f"give it keys such as {', '.join(sorted(KEYS))}")
    unknown = sorted(str(key) for key in entry if key not in KEYS)
    if unknown:
        raise DataProblem(where, f"unknown key '{unknown[0]}'", f"known are: {', '.join(sorted(KEYS))}")
    if "start" not in entry:
        raise DataProblem(
            where, "it has no 'start'", "name the start script, for example start: mine/start.sh"
        )
    privileged = entry.get("privileged", False)
    if not isinstance(privileged, bool):
        raise DataProblem(where, "'privileged' must be true or false")
    kwargs = _texts(where, "kwargs", entry.get("kwargs"))
    kwargs_type = entry.get("kwargs_type")
    if kwargs_type not in (None, _ARGPARSE, _OMEGACONF):
        raise DataProblem(where, f"unknown kwargs_type '{kwargs_type}'", _KWARGS_TYPES)
    if kwargs and kwargs_type is None:
        raise DataProblem(where, "it has 'kwargs' but no 'kwargs_type'", _KWARGS_TYPES)
    return Agent(
        id=agent_id,
        folder=config.parent.resolve(),
        start=_file(where, "start", entry["start"], config),
        dockerfile=_file(where, "dockerfile", entry["dockerfile"], config) if "dockerfile" in entry else None,
        kwargs_type=kwargs_type,
        kwargs=kwargs,
        env_vars=_texts(where, "env_vars", entry.get("env_vars")),
        privileged=privileged,
    )


def _file(where: str, key: str, value: Any, config: Path) -> Path:
    """Find a file that is named from the agents folder, as in MLE-bench, and lies in the agent's own."""
    folder = config.parent.resolve()
    path = (folder.parent / str(value)).resolve()
    if not path.is_relative_to(folder):
        raise DataProblem(
            where, f"'{key}: {value}' is outside of its folder", f"write it as {folder.name}/<file>"
        )
    if not path.is_file():
        raise DataProblem(where, f"'{key}: {value}' is not there", f"it was looked for at {path}")
    return path


def _texts(where: str, key: str, value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise DataProblem(where, f"'{key}' is not a mapping")
    nested = [str(name) for name, item in value.items() if isinstance(item, dict | list)]
    if nested:
        raise DataProblem(where, f"'{key}.{nested[0]}' is not a single value", "write it as one quoted text")
    return tuple((str(name), str(item)) for name, item in value.items())
