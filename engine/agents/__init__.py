"""Agents to evaluate: folders with a `config.yaml` as MLE-bench reads them, and what launching one takes."""

from engine.agents.launching import (
    Launch,
    own_variables,
    prepare_launch,
    required_secrets,
    start_arguments,
    wants_obfuscated,
)
from engine.agents.model import Agent, FoundAgents, KwargsType
from engine.agents.reading import find_agents, get_agent, own_agents_folder

__all__ = [
    "Agent",
    "FoundAgents",
    "KwargsType",
    "Launch",
    "find_agents",
    "get_agent",
    "own_agents_folder",
    "own_variables",
    "prepare_launch",
    "required_secrets",
    "start_arguments",
    "wants_obfuscated",
]
