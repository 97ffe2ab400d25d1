"""What an attempt's containers are given, as decided from its order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import OWN_VARIABLE
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.docker.plans import Role, plans
from mlebench_console.environment.runner.layout import Bind, own_files
from mlebench_console.foundation.problems import DataProblem
from tests.conditions import changed
from tests.environment.runner.test_docker_sandbox import order


def test_the_validation_server_of_a_users_own_competition_is_given_its_folder(tmp_path: Path) -> None:
    names = {role: role.value for role in Role}
    own = replace(order(tmp_path), competition_id="tides", own_competition="/home/me/own/tides")
    usual, server = (plans(tmp_path, one, names, None, "out")[0] for one in (order(tmp_path), own))
    assert server.role is Role.VALIDATION
    assert dict(usual.environment) == {}
    assert dict(server.environment) == {OWN_VARIABLE: "/run/competitions"}
    assert set(server.binds) - set(usual.binds) == {
        Bind(Path("/home/me/own/tides"), Path("/run/competitions/tides"), read_only=True)
    }


def test_an_obfuscated_run_has_both_texts_in_place_of_the_usual_ones(tmp_path: Path) -> None:
    names = {role: role.value for role in Role}
    plain, obfuscated = (
        plans(tmp_path, changed(order(tmp_path), obfuscated=wanted), names, None, "out")[-1]
        for wanted in (False, True)
    )
    assert plain.role is Role.AGENT
    assert set(obfuscated.binds) - set(plain.binds) == {
        Bind(tmp_path / protocol.DESCRIPTION, Path("/home/data/description.md"), read_only=True),
        Bind(
            own_files() / "instructions_obfuscated.txt",
            Path("/home/instructions.txt"),
            read_only=True,
        ),
    }


@pytest.mark.parametrize(("name", "value"), [("ZZ", "a\0b"), ("LD_PRELOAD=x", "c"), ("", "c")])
def test_a_container_gets_no_impossible_variable(tmp_path: Path, name: str, value: str) -> None:
    names = {role: role.value for role in Role}
    wanted = replace(order(tmp_path), variables=((name, value),))
    with pytest.raises(DataProblem, match="variables can't be set"):
        tuple(plans(tmp_path, wanted, names, None, "out"))


def test_no_container_is_given_the_answers(tmp_path: Path) -> None:
    names = {role: role.value for role in Role}
    prepared = tmp_path / "prepared"
    wanted = replace(order(tmp_path), prepared_dir=str(prepared))
    for plan in plans(tmp_path, wanted, names, None, "out"):
        shared = [bind.source for bind in plan.binds if bind.source.is_relative_to(prepared)]
        assert shared in ([], [prepared / "public"]), plan.role
