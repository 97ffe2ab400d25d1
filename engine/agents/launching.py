"""From an agent to the arguments and variables of its start script; the only place where secrets are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.agents.model import Agent, KwargsType
from foundation.problems import EnvironmentProblem

PRIVILEGED_CONSENT = "I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS"
_OBFUSCATE = "OBFUSCATE"
_SECRET = re.compile(r"\$\{\{\s*secrets\.(\w+)\s*\}\}")


@dataclass(frozen=True)
class Launch:
    """What a start script gets; it may hold secrets, so it is made at launch and never stored or printed."""

    arguments: tuple[str, ...] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def required_secrets(agent: Agent) -> tuple[str, ...]:
    """Names of the operator's environment variables that the agent needs, in order of appearance."""
    texts = [value for _, value in (*agent.kwargs, *agent.env_vars)]
    return tuple(dict.fromkeys(name for text in texts for name in _SECRET.findall(text)))


def wants_obfuscated(agent: Agent) -> bool:
    """Whether the agent is to be told its task without the competition's name, as MLE-bench's agents ask for it."""
    return dict(agent.env_vars).get(_OBFUSCATE, "").lower() == "true"


def own_variables(agent: Agent) -> tuple[tuple[str, str], ...]:
    """The variables that its config.yaml sets, with secrets still by name.

    Without the wish for obfuscated texts: a start script that finds it wants to write into the data, which
    can't be written, to put in place what lies there already.
    """
    if not wants_obfuscated(agent):
        return agent.env_vars
    return tuple((name, value) for name, value in agent.env_vars if name != _OBFUSCATE)


def start_arguments(agent: Agent) -> tuple[str, ...]:
    """The start script's arguments, with secrets still by name."""
    if agent.kwargs_type is KwargsType.OMEGACONF:
        return tuple(f"{name}={value}" for name, value in agent.kwargs)
    return tuple(piece for name, value in agent.kwargs for piece in (f"--{name}", value))


def prepare_launch(agent: Agent, operator: Mapping[str, str]) -> Launch:
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

    return Launch(
        arguments=tuple(resolved(argument) for argument in start_arguments(agent)),
        environment={name: resolved(value) for name, value in own_variables(agent)},
        secrets=tuple(operator[name] for name in required_secrets(agent)),
    )
