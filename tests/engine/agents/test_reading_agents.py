"""Agent folders are read as MLE-bench reads them, and a broken one says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlebench_console.engine.agent_snapshots import version_of
from mlebench_console.engine.agents import (
    PRIVILEGED_CONSENT,
    find_agents,
    get_agent,
    leaves_out_kwargs,
    start_arguments,
    start_command,
)
from mlebench_console.engine.places import own_agents_folder
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, UsageProblem

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
    with pytest.raises(UsageProblem, match="Did you mean 'aide/dev'"):
        get_agent("aide/def", [agents])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("bad: [", "while parsing"),
        ("- a list", "no agent ids"),
        ("bad: {start: bad/nowhere.sh}", "does not exist"),
        ("bad: {start: ../../etc/passwd}", "outside its folder"),
        ("bad: {start: bad/start.sh, kwargs: {a: 1}}", "no 'kwargs_type'"),
        ("bad: {start: bad/start.sh, kwargs_type: 3}", "'kwargs_type' is not a word"),
        ("bad: {start: bad/start.sh, kwargs_type: argparse, kwargs: {a: [1]}}", "not a single value"),
        ("bad: {start: bad/start.sh, env_vars: [A]}", "not a mapping"),
        ("bad: {start: bad/start.sh, privileged: 'yes'}", "must be true or false"),
        ("aide: {start: bad/start.sh}", "of this id too"),
        ('bad: {start: bad/start.sh, env_vars: {ZZ: "a\\0--bind\\0/\\0/mnt"}}', "'env_vars.ZZ' has a NUL"),
        ('bad: {start: bad/start.sh, env_vars: {"Z\\0Z": a}}', "has a NUL"),
        (
            'bad: {start: bad/start.sh, env_vars: {"LD_PRELOAD=x": a}}',
            "not a name of an environment variable",
        ),
        ('bad: {start: bad/start.sh, env_vars: {"": a}}', "not a name of an environment variable"),
        ('bad: {start: bad/start.sh, kwargs_type: argparse, kwargs: {a: "1\\0"}}', "'kwargs.a' has a NUL"),
        ('bad: {start: "bad/start.sh\\0"}', "'start' has a NUL"),
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


def test_an_id_that_is_missing_beside_a_config_that_nobody_can_read_names_the_config(agents: Path) -> None:
    write_agent(agents, "bad", "bad: [")
    with pytest.raises(
        UsageProblem, match=r"'bad' is not known: some agents can't be read: .*bad/config\.yaml"
    ):
        get_agent("bad", [agents])


OF_FORKS = """
x-limits: &limits
  time_limit: 7200
models: &models [small, large]
usual: &usual
  dockerfile: forked/Dockerfile
  kwargs_type: env
  bypass_entrypoint: true
  kwargs: {steps: 3}
forked:
  <<: *usual
  start: forked/start.sh
broken:
  start: forked/nowhere.sh
forked/trusted:
  start: forked/start.sh
  privileged: true
"""


def test_anchors_and_keys_of_forks_are_taken_and_a_broken_entry_spoils_only_itself(agents: Path) -> None:
    write_agent(agents, "forked", OF_FORKS)
    found = find_agents([agents])
    assert [agent.id for agent in found.agents] == ["aide", "aide/dev", "forked", "forked/trusted"]
    (problem,) = found.problems
    assert "agent 'broken'" in str(problem)
    forked = get_agent("forked", [agents])
    assert forked.dockerfile == agents / "forked" / "Dockerfile"
    # MLE-bench gives a start script no kwargs of a type that it does not know.
    assert start_arguments(forked) == ()
    assert leaves_out_kwargs(forked)
    for agent_id, reason in (
        ("broken", "does not exist"),
        ("usual", "no 'start'"),
        ("models", "not a mapping"),
    ):
        with pytest.raises(DataProblem, match=reason):
            get_agent(agent_id, [agents])
    with pytest.raises(UsageProblem, match="'nobody' is not known") as caught:
        get_agent("nobody", [agents])
    assert "broken" not in str(caught.value)


@pytest.mark.parametrize(("said", "enough"), [("True", True), ("1", True), ("t", True), ("yes", False)])
def test_consent_is_given_as_mle_bench_takes_it(agents: Path, said: str, enough: bool) -> None:
    write_agent(agents, "forked", OF_FORKS)
    trusted = get_agent("forked/trusted", [agents])
    if enough:
        assert start_command(trusted, {PRIVILEGED_CONSENT: said}).arguments == ()
    else:
        with pytest.raises(EnvironmentProblem, match="privileged"):
            start_command(trusted, {PRIVILEGED_CONSENT: said})


def test_agents_lie_at_any_depth_but_not_in_other_agents(agents: Path, tmp_path: Path) -> None:
    (agents / "group").mkdir()
    write_agent(
        agents / "group", "mine", "mine: {start: group/mine/start.sh, dockerfile: group/mine/Dockerfile}"
    )
    write_agent(agents / "aide", "conf", "aide/conf: {start: aide/conf/start.sh}")
    found = find_agents([agents])
    assert [agent.id for agent in found.agents] == ["aide", "aide/dev", "mine"]
    mine = found.agents[-1]
    assert (mine.image_name, mine.start) == ("mine", agents / "group" / "mine" / "start.sh")
    elsewhere = tmp_path / "snapshot"
    elsewhere.mkdir()
    (agents / "group" / "mine").rename(elsewhere / "mine")
    assert get_agent("mine", [elsewhere]).start == elsewhere / "mine" / "start.sh"


def test_a_folder_of_the_operators_hides_ours_of_that_name_altogether(agents: Path) -> None:
    found = find_agents([agents, own_agents_folder()])
    assert found.problems == ()
    assert {agent.id for agent in found.agents if agent.image_name == "aide"} == {"aide", "aide/dev"}
    assert {agent.folder for agent in found.agents if agent.image_name == "aide"} == {agents / "aide"}


def test_a_missing_agents_folder_is_told(tmp_path: Path) -> None:
    (problem,) = find_agents([tmp_path / "none"]).problems
    assert "not a directory" in str(problem)


def test_the_version_changes_with_any_file_and_with_nothing_else(agents: Path) -> None:
    before = version_of(agents / "aide")
    (agents / "aide" / "__pycache__").mkdir()
    (agents / "aide" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert version_of(agents / "aide") == before
    (agents / "aide" / "start.sh").write_text("echo other\n")
    changed = version_of(agents / "aide")
    assert changed != before
    (agents / "aide" / "start.sh").rename(agents / "aide" / "start2.sh")
    (agents / "aide" / "start.sh").write_text("")
    assert version_of(agents / "aide") not in (before, changed)


def test_our_own_agents_can_be_read() -> None:
    found = find_agents([own_agents_folder()])
    assert found.problems == ()
    assert {"dummy", "baseline", "baseline/demo"} <= {agent.id for agent in found.agents}
