from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.cli import doctor
from console.cli.doctor import Health
from engine.places import Places
from tests.console.cli.conftest import Cli

SECRET = "a-key-that-nobody-may-see"


def test_every_check_says_how_it_is_and_what_is_not_well_has_a_next_step(cli: Cli) -> None:
    found = cli("doctor", "--json").document()
    assert [check["name"] for check in found] == [
        "python",
        "state",
        "state disk",
        "data disk",
        "bubblewrap",
        "docker",
        "gpu",
        "kaggle",
        "terminal",
        "engine",
    ]
    assert all(check["next_step"] for check in found if check["health"] != "ok")
    assert len(cli("doctor").out.splitlines()) >= len(found)


def test_a_state_that_cannot_live_there_fails_and_has_a_code(
    cli: Cli, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("state.database.file_system_of", lambda path: "nfs4")
    ran = cli("doctor")
    assert ran.code == 5
    assert f"fail  state       {places.state_dir} is on nfs4" in ran.out


def test_a_disk_is_judged_by_what_is_free(tmp_path: Path) -> None:
    below = tmp_path / "not" / "there" / "yet"
    assert doctor.check_disk("disk", below, needs=1, wants=1).health is Health.OK
    assert doctor.check_disk("disk", below, needs=1, wants=1 << 80).health is Health.WARN
    assert doctor.check_disk("disk", below, needs=1 << 80, wants=1 << 80).health is Health.FAIL


KEY_FILE = json.dumps({"username": "me", "key": SECRET})
LOGIN = json.dumps({"username": "me", "refresh_token": SECRET})


@pytest.mark.parametrize(
    ("variables", "files", "mode", "health", "told"),
    [
        ({}, {}, 0o600, Health.WARN, "no credentials"),
        ({"KAGGLE_USERNAME": "me"}, {}, 0o600, Health.WARN, "no credentials"),
        ({}, {".kaggle/kaggle.json": "{}"}, 0o600, Health.WARN, "no credentials"),
        (
            {"KAGGLE_USERNAME": "me", "KAGGLE_KEY": SECRET},
            {},
            0o600,
            Health.OK,
            "KAGGLE_USERNAME and KAGGLE_KEY",
        ),
        ({"KAGGLE_API_TOKEN": SECRET}, {}, 0o600, Health.OK, "KAGGLE_API_TOKEN"),
        ({}, {".kaggle/access_token": SECRET}, 0o600, Health.OK, "access_token"),
        ({}, {".kaggle/kaggle.json": KEY_FILE}, 0o600, Health.OK, "kaggle.json"),
        ({}, {".config/kaggle/kaggle.json": KEY_FILE}, 0o600, Health.OK, ".config/kaggle/kaggle.json"),
        ({}, {".kaggle/credentials.json": LOGIN}, 0o600, Health.OK, "credentials.json"),
        ({}, {".kaggle/kaggle.json": KEY_FILE}, 0o644, Health.WARN, "is readable by others"),
        ({}, {".kaggle/credentials.json": LOGIN}, 0o640, Health.WARN, "is readable by others"),
    ],
)
def test_kaggle_credentials_of_every_kind_are_found_but_never_shown(
    tmp_path: Path,
    variables: dict[str, str],
    files: dict[str, str],
    mode: int,
    health: Health,
    told: str,
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(mode)
    found = doctor.check_kaggle(variables, tmp_path)
    assert found.health is health
    assert told in found.found
    assert SECRET not in repr(found)


def test_a_docker_engine_that_does_not_answer_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    found = doctor.check_docker()
    assert found.health is Health.WARN
    assert f"unix://{tmp_path}/docker.sock" in found.found
    assert "No such file" in found.found
