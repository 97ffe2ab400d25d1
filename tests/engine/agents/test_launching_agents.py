"""Secrets are resolved at launch alone, and what is missing is said before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.agents import Agent, required_secrets, start_arguments, start_command
from mlebench_console.foundation.problems import EnvironmentProblem

AGENT = Agent(
    id="mine",
    folder=Path("/agents/mine"),
    start=Path("/agents/mine/start.sh"),
    dockerfile=None,
    kwargs_type="argparse",
    kwargs=(("steps", "5"), ("name", "two words")),
    env_vars=(("KEY", "${{ secrets.MY_KEY }}"), ("URL", "https://${{secrets.HOST}}/x"), ("MODE", "fast")),
    privileged=False,
)


def test_arguments_take_the_form_that_the_agent_asks_for() -> None:
    assert start_arguments(AGENT) == ("--steps", "5", "--name", "two words")
    other = replace(AGENT, kwargs_type="omegaconf")
    assert start_arguments(other) == ("steps=5", "name=two words")


def test_secrets_come_from_the_operators_environment() -> None:
    launch = start_command(AGENT, {"MY_KEY": "s3cret", "HOST": "h", "OTHER": "never"})
    assert launch.environment == {"KEY": "s3cret", "URL": "https://h/x", "MODE": "fast"}
    assert launch.secrets == ("s3cret", "h")
    assert "s3cret" not in repr(launch)


def test_a_missing_secret_is_named_before_anything_starts() -> None:
    assert required_secrets(AGENT) == ("MY_KEY", "HOST")
    with pytest.raises(EnvironmentProblem, match="HOST is not set"):
        start_command(AGENT, {"MY_KEY": "x"})


def test_an_empty_secret_counts_as_missing() -> None:
    with pytest.raises(EnvironmentProblem, match="MY_KEY is not set"):
        start_command(AGENT, {"MY_KEY": "", "HOST": "h"})


def test_a_secrets_text_is_not_resolved_again() -> None:
    launch = start_command(AGENT, {"MY_KEY": "${{ secrets.HOST }}", "HOST": "h"})
    assert launch.environment["KEY"] == "${{ secrets.HOST }}"


def test_a_privileged_agent_needs_consent() -> None:
    agent = replace(AGENT, privileged=True, env_vars=())
    with pytest.raises(EnvironmentProblem, match="privileged"):
        start_command(agent, {})
    assert start_command(agent, {"I_ACCEPT_RUNNING_PRIVILEGED_CONTAINERS": "True"}).environment == {}
