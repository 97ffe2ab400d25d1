"""Agents to evaluate: read their folders with a `config.yaml` in MLE-bench's format, and build their start commands."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlebench_console.foundation.fields import holds_nul, why_no_variable
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem, UsageProblem

CONFIG_NAME = "config.yaml"
ANCHORS = frozenset({"vars", "defaults", "kwargs_common"})
IGNORED = frozenset({"__pycache__", ".git", ".DS_Store"})
PRIVILEGED_CONSENT = "I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS"
_OBFUSCATE = "OBFUSCATE"
_CONSENTS = frozenset({"true", "1", "t"})
_ARGPARSE, _OMEGACONF = "argparse", "omegaconf"
_MOST_LEVELS = 4
_SECRET = re.compile(r"\$\{\{\s*secrets\.(\w+)\s*\}\}")


@dataclass(frozen=True)
class Agent:
    """One agent id of one agent folder.

    Attributes:
        id: the key in `config.yaml`, such as `aide/dev`.
        folder: the agent's folder; its name is the name of the agent's image.
        start: the start script, inside `folder`.
        dockerfile: what builds its image; None when it has none and can only run as a process.
        kwargs_type: how `kwargs` become arguments: argparse or omegaconf; with any other type the start script gets
            none of them, as in MLE-bench. None when there are no kwargs.
        kwargs: arguments in the order of the file, values as text, secrets as `${{ secrets.NAME }}`.
        env_vars: environment variables, likewise.
        privileged: whether it needs a privileged container.
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
        """The path of the start script relative to the folder, which may be mounted or copied elsewhere."""
        return self.start.relative_to(self.folder)


@dataclass(frozen=True)
class FoundAgents:
    """All agents of some folders; a broken entry or folder does not hide others.

    Attributes:
        problems: of unreadable folders, and of invalid entries that look like agents.
        refused: why an entry is not an agent, by its id; most are anchors.
    """

    agents: tuple[Agent, ...]
    problems: tuple[Problem, ...]
    refused: Mapping[str, Problem] = field(default_factory=dict)


@dataclass(frozen=True)
class StartCommand:
    """Arguments and environment of a start script; it may contain secrets, so it is never stored or printed."""

    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def find_agents(folders: Iterable[Path]) -> FoundAgents:
    """Read all agents in some agents folders, sorted by id.

    If several have an agent folder of the same name, only the first is used, so that files of both are never mixed.
    """
    agents: dict[str, Agent] = {}
    problems: list[Problem] = []
    refused: dict[str, Problem] = {}
    taken: set[str] = set()
    for folder in folders:
        if not folder.is_dir():
            problems.append(DataProblem(f"agents folder {folder}", "it is not a directory"))
            continue
        configs = [config for config in _configs(folder) if config.parent.name not in taken]
        taken |= {config.parent.name for config in configs}
        for config in configs:
            try:
                entries = _read_config(config)
            except Problem as problem:
                problems.append(problem)
                continue
            for agent_id, entry in entries.items():
                try:
                    agent = _read_agent(agent_id, entry, config)
                    other = agents.setdefault(agent_id, agent)
                    if other is not agent:
                        raise DataProblem(
                            f"agent '{agent_id}' in {config}",
                            f"{other.folder} has an agent of this id too",
                            "rename one of them",
                        )
                except Problem as problem:
                    refused.setdefault(agent_id, problem)
                    if _is_meant_as_agent(entry):
                        problems.append(problem)
    return FoundAgents(tuple(agents[agent_id] for agent_id in sorted(agents)), tuple(problems), refused)


def get_agent(agent_id: str, folders: Iterable[Path]) -> Agent:
    """Read one agent by its id.

    Raises:
        DataProblem: its own entry is broken.
        UsageProblem: there is none of that id.
    """
    found = find_agents(folders)
    by_id = {agent.id: agent for agent in found.agents}
    if agent_id in by_id:
        return by_id[agent_id]
    if agent_id in found.refused:
        raise found.refused[agent_id]
    close = difflib.get_close_matches(agent_id, by_id, n=1)
    known = f"Choose one of {', '.join(by_id)}." if by_id else "There is no agent in these folders."
    hint = f"Did you mean '{close[0]}'?" if close else known
    unread = [problem for problem in found.problems if problem not in found.refused.values()]
    why = f"some agents can't be read: {unread[0].cause}" if unread else ""
    raise UsageProblem(f"agent '{agent_id}' is not known", why, hint)


def required_secrets(agent: Agent) -> tuple[str, ...]:
    """Return the names of the operator's environment variables that the agent needs, in order of appearance."""
    texts = [value for _, value in (*agent.kwargs, *agent.env_vars)]
    return tuple(dict.fromkeys(name for text in texts for name in _SECRET.findall(text)))


def wants_obfuscated(agent: Agent) -> bool:
    """Return whether the agent requests descriptions without the competition's name, as in MLE-bench."""
    return dict(agent.env_vars).get(_OBFUSCATE, "").lower() == "true"


def start_variables(agent: Agent) -> tuple[tuple[str, str], ...]:
    """Return the variables that its config.yaml sets, with secrets still by name.

    Without OBFUSCATE: a start script that finds it would try to replace the description in the data, which is
    read-only and already obfuscated.
    """
    if not wants_obfuscated(agent):
        return agent.env_vars
    return tuple((name, value) for name, value in agent.env_vars if name != _OBFUSCATE)


def start_arguments(agent: Agent) -> tuple[str, ...]:
    """Return the start script's arguments, with secrets still by name."""
    if agent.kwargs_type == _OMEGACONF:
        return tuple(f"{name}={value}" for name, value in agent.kwargs)
    if agent.kwargs_type == _ARGPARSE:
        return tuple(piece for name, value in agent.kwargs for piece in (f"--{name}", value))
    return ()


def leaves_out_kwargs(agent: Agent) -> bool:
    """Return whether its kwargs never reach its start script, because their type is unknown."""
    return bool(agent.kwargs) and not start_arguments(agent)


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
    if agent.privileged and operator.get(PRIVILEGED_CONSENT, "").lower() not in _CONSENTS:
        raise EnvironmentProblem(
            f"agent '{agent.id}' needs a privileged container",
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


def _configs(folder: Path) -> list[Path]:
    """List the configs in an agents folder; those inside an agent's own folder belong to the agent."""
    found: list[Path] = []
    for parent, below, names in os.walk(folder):
        here = Path(parent)
        if CONFIG_NAME in names and here != folder:
            found.append(here / CONFIG_NAME)
            below.clear()
        elif len(here.relative_to(folder).parts) == _MOST_LEVELS:
            below.clear()
        below[:] = [name for name in below if name not in IGNORED and not name.startswith(".")]
    return sorted(found)


def _read_config(config: Path) -> dict[str, Any]:
    """Return the entries of a config that may be agents: all except the anchors of MLE-bench's configs."""
    import yaml

    try:
        # libyaml's, where PyYAML has it: it takes a tenth of the time.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        content = yaml.load(config.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - a safe one
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataProblem(f"{config} is not readable", reason) from error
    if not isinstance(content, dict):
        raise DataProblem(f"{config}", "it has no agent ids", "write one top-level key for each agent")
    return {str(agent_id): entry for agent_id, entry in content.items() if agent_id not in ANCHORS}


def _is_meant_as_agent(entry: Any) -> bool:
    return isinstance(entry, dict) and "start" in entry


def _read_agent(agent_id: str, entry: Any, config: Path) -> Agent:
    where = f"agent {agent_id!r} in {config}"
    if not isinstance(entry, dict):
        raise DataProblem(where, "it is not a mapping", "give it keys such as start and dockerfile")
    if "start" not in entry:
        raise DataProblem(
            where, "it has no 'start'", "give the start script, for example start: mine/start.sh"
        )
    privileged = entry.get("privileged", False)
    if not isinstance(privileged, bool):
        raise DataProblem(where, "'privileged' must be true or false")
    kwargs = _texts(where, "kwargs", entry.get("kwargs"))
    kwargs_type = entry.get("kwargs_type")
    if kwargs_type is not None and not isinstance(kwargs_type, str):
        raise DataProblem(where, "'kwargs_type' is not a word", f"expected {_ARGPARSE} or {_OMEGACONF}")
    if kwargs and kwargs_type is None:
        raise DataProblem(
            where, "it has 'kwargs' but no 'kwargs_type'", f"expected {_ARGPARSE} or {_OMEGACONF}"
        )

    env_vars = _texts(where, "env_vars", entry.get("env_vars"))
    for name, value in env_vars:
        if why_not := why_no_variable(name, value):
            raise DataProblem(where, f"in 'env_vars' {why_not}", "correct it")

    folder = config.parent.resolve()
    return Agent(
        id=agent_id,
        folder=folder,
        start=_file(where, "start", entry["start"], folder),
        dockerfile=_file(where, "dockerfile", entry["dockerfile"], folder) if "dockerfile" in entry else None,
        kwargs_type=kwargs_type,
        kwargs=kwargs,
        env_vars=env_vars,
        privileged=privileged,
    )


def _file(where: str, key: str, value: Any, folder: Path) -> Path:
    """Return a file in an agent's folder, whose path is relative to the agents folder, as in MLE-bench.

    Only the part after the folder's own name is used, so that copies of the folder can be read too.
    """
    if holds_nul(str(value)):
        raise DataProblem(where, f"'{key}' has a NUL character", f"write it as {folder.name}/<file>")
    parts = Path(str(value)).parts
    rests = [parts[number + 1 :] for number, part in enumerate(parts) if part == folder.name]
    paths = [path for rest in rests if (path := folder.joinpath(*rest).resolve()).is_relative_to(folder)]
    if not paths:
        raise DataProblem(
            where, f"'{key}: {value}' is outside its folder", f"write it as {folder.name}/<file>"
        )
    for path in paths:
        if path.is_file():
            return path
    raise DataProblem(where, f"'{key}: {value}' does not exist", f"looked for {paths[0]}")


def _texts(where: str, key: str, value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise DataProblem(where, f"'{key}' is not a mapping")
    nested = [str(name) for name, item in value.items() if isinstance(item, dict | list)]
    if nested:
        raise DataProblem(where, f"'{key}.{nested[0]}' is not a single value", "write it as one quoted text")
    texts = tuple((str(name), str(item)) for name, item in value.items())
    for pair in texts:
        if holds_nul(pair):
            raise DataProblem(where, f"'{key}.{pair[0]}' has a NUL character", "remove it")
    return texts
