"""Reading agents folders: `<folder>/<agent>/config.yaml`, each holding one or more agent ids."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.agents.model import Agent, FoundAgents, KwargsType
from engine.agents.versions import folder_version
from foundation.problems import DataProblem, Problem, UsageProblem

CONFIG_NAME = "config.yaml"
ANCHORS = frozenset({"vars", "defaults", "kwargs_common"})
KEYS = frozenset({"start", "dockerfile", "kwargs_type", "kwargs", "env_vars", "privileged"})


def own_agents_folder() -> Path:
    """The agents that come with this project."""
    import environment

    return Path(environment.__path__[0]) / "agents"


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


def _read_config(config: Path) -> list[Agent]:
    import yaml

    try:
        content = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataProblem(f"{config} is not readable", reason) from error
    if not isinstance(content, dict):
        raise DataProblem(f"{config}", "it holds no agent ids", "write one top-level key for each agent")
    version = folder_version(config.parent)
    return [
        _read_agent(str(agent_id), entry, config, version)
        for agent_id, entry in content.items()
        if agent_id not in ANCHORS
    ]


def _read_agent(agent_id: str, entry: Any, config: Path, version: str) -> Agent:
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
        raise DataProblem(where, "'privileged' is neither true nor false")
    kwargs = _texts(where, "kwargs", entry.get("kwargs"))
    kwargs_type = _kwargs_type(where, entry.get("kwargs_type"))
    if kwargs and kwargs_type is None:
        raise DataProblem(where, "it has 'kwargs' but no 'kwargs_type'", "say argparse or omegaconf")
    return Agent(
        id=agent_id,
        folder=config.parent.resolve(),
        start=_file(where, "start", entry["start"], config),
        dockerfile=_file(where, "dockerfile", entry["dockerfile"], config) if "dockerfile" in entry else None,
        kwargs_type=kwargs_type,
        kwargs=kwargs,
        env_vars=_texts(where, "env_vars", entry.get("env_vars")),
        privileged=privileged,
        version=version,
    )


def _kwargs_type(where: str, value: Any) -> KwargsType | None:
    if value is None:
        return None
    try:
        return KwargsType(value)
    except ValueError as error:
        raise DataProblem(where, f"unknown kwargs_type '{value}'", "say argparse or omegaconf") from error


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
