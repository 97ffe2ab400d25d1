"""Agents that others made get from our drivers what they need, and leave a submission and their programs.

The packages themselves are large and need models: here stand-ins take their place (stand_ins.py).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlebench_console import environment
from mlebench_console.engine.agents import (
    find_agents,
    get_agent,
    required_secrets,
    start_command,
    wants_obfuscated,
)
from mlebench_console.engine.places import own_agents_folder
from tests.environment.agents import stand_ins

FOLDER = Path(environment.__path__[0])
KEY = "sk-a-key-for-a-stand-in"
OPERATOR = dict.fromkeys(
    ("OPENAI_API_KEY", "SERPER_API_KEY", "JINA_API_KEY", "MODEL_NAME", "OPENAI_BASE_URL"), KEY
)
FOREIGN = ("mlab", "openhands", "repomaster")


@dataclass(frozen=True)
class World:
    """The folders of one run."""

    place: Path

    def run(
        self, agent_id: str, package: dict[str, str], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        agent = get_agent(agent_id, [own_agents_folder()])
        launch = start_command(agent, OPERATOR)
        for name in ("submission", "logs", "code", "data"):
            (self.place / name).mkdir()
        (self.place / "data" / "sample_submission.csv").write_text("id,y\n1,0\n")
        (self.place / "data" / "description.md").write_text("Predict y for each id.")
        (self.place / "validate_submission.sh").write_text("#!/bin/sh\n")
        shutil.copytree(agent.folder, self.place / "agent")
        package_folder = stand_ins.lay_out(self.place / "package", package)
        if agent.image_name == "repomaster":  # as its Dockerfile does
            shutil.copy(agent.folder / "oai_config.py", package_folder / "configs" / "oai_config.py")
        return subprocess.run(
            ["bash", str(self.place / "agent" / agent.start_below_folder.name), *launch.arguments],
            env={
                "PATH": f"{FOLDER}:/usr/bin:/bin",
                "HOME": str(self.place),
                "MLEBENCH_ENV_AGENT": sys.prefix,
                "PYTHONPATH": str(package_folder),
                "PYTHONDONTWRITEBYTECODE": "1",
                "SEED": "7",
                "TIME_LIMIT_SECONDS": "3600",
                "DATA_DIR": str(self.place / "data"),
                "SUBMISSION_DIR": str(self.place / "submission"),
                "LOGS_DIR": str(self.place / "logs"),
                "CODE_DIR": str(self.place / "code"),
                "AGENT_DIR": str(self.place / "agent"),
                "INSTRUCTIONS_FILE": str(FOLDER / "instructions.txt"),
                "VALIDATE_SCRIPT": str(self.place / "validate_submission.sh"),
                "OPENHANDS_PYTHON": sys.executable,
                "MLAB_DIR": str(package_folder),
                "REPOMASTER_DIR": str(package_folder),
                **launch.environment,
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    def seen(self) -> dict[str, Any]:
        (path,) = (self.place / "logs").rglob("seen.json")
        seen: dict[str, Any] = json.loads(path.read_text())
        return seen

    def code(self) -> list[str]:
        folder = self.place / "code"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def submission(self) -> str:
        return (self.place / "submission" / "submission.csv").read_text()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_openhands_has_its_model_its_limits_and_no_key_that_its_programs_could_see(world: World) -> None:
    done = world.run("openhands", stand_ins.OPENHANDS)
    assert done.returncode == 0, done.stdout
    assert "OpenHands has ended, with a submission" in done.stdout
    seen = world.seen()
    assert (seen["model"], seen["api_key"], seen["base_url"]) == ("openai/gpt-4.1", KEY, None)
    assert (seen["seed"], seen["steps"], seen["python"]) == (7, 500, sys.prefix)
    assert "You have 1.0 hours and 500 steps" in seen["message"]
    assert "Kaggle" in seen["message"]
    assert seen["message"].endswith("Predict y for each id.")
    assert world.submission() == "id,y\n1,0\n"
    assert world.code() == ["deep/solve.py"]


def test_openhands_takes_a_server_of_ones_own(world: World) -> None:
    done = world.run("openhands/own-server", stand_ins.OPENHANDS)
    assert done.returncode == 0, done.stdout
    assert (world.seen()["model"], world.seen()["base_url"]) == (f"openai/{KEY}", KEY)


def test_mlab_finds_the_competition_as_a_task_of_its_own(world: World) -> None:
    done = world.run("mlab", stand_ins.MLAB)
    assert done.returncode == 0, done.stdout
    assert "MLAgentBench has ended, with a submission" in done.stdout
    seen = world.seen()
    assert (seen["max_steps"], seen["agent_max_steps"], seen["max_time"]) == ("2000", "2000", "3480")
    assert (seen["llm_name"], seen["api_key"]) == ("gpt-4o-2024-08-06", KEY)
    assert seen["python"] == f"{sys.prefix}/bin/python"
    assert seen["files"] == ["data", "instructions.txt", "submission", "train.py", "validate_submission.sh"]
    assert "You have 1.0 hours and 2000 steps" in seen["message"]
    assert "/home/" not in seen["message"]
    assert world.submission() == "id,y\n1,0\n"
    assert world.code() == ["competition/train.py"]


def test_an_agents_own_failure_is_the_runs(world: World) -> None:
    done = world.run("mlab", stand_ins.MLAB | {"MLAgentBench/runner.py": "raise SystemExit(3)"})
    assert done.returncode == 3
    assert "without a submission" in done.stdout


def test_repomaster_works_from_its_checkout_with_settings_from_the_environment(world: World) -> None:
    done = world.run("repomaster", stand_ins.REPOMASTER)
    assert done.returncode == 0, done.stdout
    assert "RepoMaster has ended, with a submission" in done.stdout
    seen = world.seen()
    assert seen["config"]["config_list"] == [{"model": "gpt-4.1", "api_key": KEY}]
    assert seen["how"] == "search"
    assert seen["here"] == str(world.place / "package")
    assert seen["work"] == {"work_dir": str(world.place / "agent" / "workspace"), "use_docker": False}
    assert str(world.place / "submission" / "submission.csv") in seen["message"]
    assert world.submission() == "id,y\n1,0\n"
    assert world.code() == ["train.py"]
    assert (world.place / "logs" / "answer.md").read_text() == "the answer"


def test_repomaster_can_do_without_a_search(world: World) -> None:
    done = world.run("repomaster/no-search", stand_ins.REPOMASTER)
    assert done.returncode == 0, done.stdout
    assert world.seen()["how"] == "general"


@pytest.mark.parametrize("agent_id", [f"{name}/obfuscated" for name in FOREIGN])
def test_each_can_be_told_its_task_without_the_competitions_name(agent_id: str) -> None:
    assert wants_obfuscated(get_agent(agent_id, [own_agents_folder()]))
    assert not wants_obfuscated(get_agent(agent_id.partition("/")[0], [own_agents_folder()]))


def test_all_that_they_are_made_of_is_pinned_and_secrets_come_as_variables_alone() -> None:
    found = find_agents([own_agents_folder()])
    assert found.problems == ()
    for agent in found.agents:
        if agent.image_name in FOREIGN:
            assert agent.dockerfile is not None
            assert required_secrets(agent)
            assert not any("KEY" in value for _name, value in agent.kwargs), agent.id
            text = agent.dockerfile.read_text()
            assert text.startswith("FROM mlebench-env\n")
            assert text.rstrip().endswith("COPY . ${AGENT_DIR}")
            for revision in re.findall(r"_REVISION=(\S+)", text):
                assert re.fullmatch("[0-9a-f]{40}", revision)
            pinned = agent.folder / "requirements.txt"
            if pinned.exists():
                lines = [line for line in pinned.read_text().splitlines() if not line.startswith("#")]
                assert lines
                assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
            else:
                assert "_REVISION=" in text
