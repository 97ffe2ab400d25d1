"""Agent folders are read as MLE-bench reads them, and a broken one says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.agents import find_agents, folder_version, get_agent
from engine.places import own_agents_folder
from foundation.problems import DataProblem, UsageProblem

CONFIG = """
vars:
  steps: &steps 2000
defaults: &defaults
  start: aide/start.sh
  dockerfile: aide/Dockerfile
  kwargs_type: omegaconf
  env_vars: &env_vars
    STEP_LIMIT: *steps
kwargs_common: &kwargs_common
  agent.debug: 20
aide:
  <<: *defaults
  kwargs:
    <<: *kwargs_common
    agent.code.model: some-model
    report: false
  env_vars:
    <<: *env_vars
    API_KEY: ${{ secrets.SOME_API_KEY }}
aide/dev:
  <<: *defaults
  kwargs_type: argparse
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    write_agent(tmp_path, "aide", CONFIG)
    return tmp_path


def write_agent(agents: Path, name: str, config: str) -> Path:
    folder = agents / name
    folder.mkdir()
    (folder / "start.sh").write_text("echo hello\n")
    (folder / "Dockerfile").write_text("FROM mlebench-env\n")
    (folder / "config.yaml").write_text(config)
    return folder


def test_ids_are_the_keys_that_are_no_anchors(agents: Path) -> None:
    found = find_agents([agents])
    assert [agent.id for agent in found.agents] == ["aide", "aide/dev"]
    assert found.problems == ()


def test_merged_values_become_text_in_the_order_of_the_file(agents: Path) -> None:
    agent = get_agent("aide", [agents])
    assert agent.kwargs_type == "omegaconf"
    assert dict(agent.kwargs) == {"agent.debug": "20", "agent.code.model": "some-model", "report": "False"}
    assert dict(agent.env_vars) == {"STEP_LIMIT": "2000", "API_KEY": "${{ secrets.SOME_API_KEY }}"}
    assert agent.image_name == "aide"
    assert agent.start == agents / "aide" / "start.sh"
    assert str(agent.start_below_folder) == "start.sh"


def test_an_unknown_id_suggests_the_nearest(agents: Path) -> None:
    with pytest.raises(UsageProblem, match="did you mean 'aide/dev'"):
        get_agent("aide/def", [agents])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("bad: [", "while parsing"),
        ("- a list", "no agent ids"),
        ("bad: 3", "not a mapping"),
        ("bad: {dockerfile: bad/Dockerfile}", "no 'start'"),
        ("bad: {start: bad/nowhere.sh}", "is not there"),
        ("bad: {start: ../../etc/passwd}", "outside of its folder"),
        ("bad: {start: bad/start.sh, kwargs: {a: 1}}", "no 'kwargs_type'"),
        ("bad: {start: bad/start.sh, kwargs_type: yaml}", "unknown kwargs_type 'yaml'"),
        ("bad: {start: bad/start.sh, kwargs_type: argparse, kwargs: {a: [1]}}", "not a single value"),
        ("bad: {start: bad/start.sh, env_vars: [A]}", "not a mapping"),
        ("bad: {start: bad/start.sh, privileged: 'yes'}", "must be true or false"),
        ("bad: {start: bad/start.sh, startt: x}", "unknown key 'startt'"),
        ("aide: {start: bad/start.sh}", "of this id too"),
    ],
)
def test_a_broken_config_is_a_problem_and_hides_no_other_agent(
    agents: Path, config: str, reason: str
) -> None:
    write_agent(agents, "bad", config)
    found = find_agents([agents])
    assert "aide" in [agent.id for agent in found.agents]
    assert len(found.problems) == 1
    assert reason in str(found.problems[0])


def test_an_id_that_is_missing_beside_a_broken_config_names_the_config(agents: Path) -> None:
    write_agent(agents, "bad", "bad: [")
    with pytest.raises(DataProblem, match=r"bad/config\.yaml"):
        get_agent("bad", [agents])


def test_a_missing_agents_folder_is_told(tmp_path: Path) -> None:
    (problem,) = find_agents([tmp_path / "none"]).problems
    assert "not a directory" in str(problem)


def test_the_version_changes_with_any_file_and_with_nothing_else(agents: Path) -> None:
    before = folder_version(agents / "aide")
    (agents / "aide" / "__pycache__").mkdir()
    (agents / "aide" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert folder_version(agents / "aide") == before
    (agents / "aide" / "start.sh").write_text("echo other\n")
    changed = folder_version(agents / "aide")
    assert changed != before
    (agents / "aide" / "start.sh").rename(agents / "aide" / "start2.sh")
    (agents / "aide" / "start.sh").write_text("")
    assert folder_version(agents / "aide") not in (before, changed)


def test_our_own_agents_can_be_read() -> None:
    found = find_agents([own_agents_folder()])
    assert found.problems == ()
    assert {"dummy", "baseline", "baseline/demo"} <= {agent.id for agent in found.agents}
