from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.console.cli.host import doctor
from mlebench_console.engine.checks import Health
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import survey
from mlebench_console.environment.runner.survey import RuntimeOffer
from tests.console.cli.conftest import Cli

SECRET = "a-key-that-nobody-may-see"


def test_every_check_says_how_it_is_and_what_is_not_well_has_a_next_step(cli: Cli) -> None:
    found = cli("doctor", "--json").document()
    assert list(dict.fromkeys(check["name"] for check in found)) == [
        "python",
        "config",
        "state",
        "state disk",
        "data disk",
        "bubblewrap",
        "apptainer",
        "auto",
        "limits",
        "network",
        "programs",
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
    monkeypatch.setattr("mlebench_console.state.database.file_system_of", lambda path: "nfs4")
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
    found, *_ = doctor.check_kaggle(variables, tmp_path)
    assert found.health is health
    assert told in found.text
    assert SECRET not in repr(found)


def test_a_docker_engine_that_does_not_answer_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    (found,) = doctor.check_docker(0)
    assert found.health is Health.WARN
    assert f"unix://{tmp_path}/docker.sock" in found.text
    assert "No such file" in found.text


class Daemon(BaseHTTPRequestHandler):
    """A Docker daemon that answers what doctor asks."""

    live_restore = False

    def do_HEAD(self) -> None:
        """Answer the ping."""
        self.answer({})

    def do_GET(self) -> None:
        """Answer by the last word of the path."""
        documents: dict[str, dict[str, Any]] = {
            "version": {"Version": "20.10.24", "ApiVersion": "1.41", "Components": []},
            "info": {"LiveRestoreEnabled": self.live_restore},
        }
        self.answer(documents.get(self.path.rpartition("/")[2], {}))

    def answer(self, document: dict[str, Any]) -> None:
        """Send a document."""
        content = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.mark.parametrize(("live_restore", "uid", "warnings"), [(True, 0, 0), (False, 0, 1), (True, 1000, 1)])
def test_what_would_end_or_endanger_long_runs_in_docker_is_told(
    monkeypatch: pytest.MonkeyPatch, live_restore: bool, uid: int, warnings: int
) -> None:
    monkeypatch.setattr(Daemon, "live_restore", live_restore)
    with ThreadingHTTPServer(("127.0.0.1", 0), Daemon) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_port}")
        first, *others = doctor.check_docker(uid)
        server.shutdown()
    assert (first.health, first.text) == (Health.OK, "version 20.10.24")
    assert [check.health for check in others] == [Health.WARN] * warnings
    assert all(check.next_step for check in others)
    told = " ".join(check.text for check in others)
    assert ("live-restore is off" in told) == (not live_restore)
    assert ("user 1000" in told) == (uid == 1000)


@pytest.mark.parametrize(
    ("changes", "health"),
    [({}, Health.OK), ({"unenforced": ("processors",)}, Health.WARN), ({"is_watched": True}, Health.WARN)],
)
def test_what_enforces_limits_of_processes_is_told(
    tmp_path: Path, changes: dict[str, Any], health: Health
) -> None:
    offer = replace(survey.survey(tmp_path, tuple), unenforced=(), is_watched=False)
    (found,) = (
        check for check in doctor.check_offer(replace(offer, **changes), "Mend it.") if check.name == "limits"
    )
    assert (found.health, found.text) == (health, offer.limits)
    assert found.next_step == ("" if health is Health.OK else "Mend it.")


def test_what_a_node_does_not_hold_has_a_next_step(tmp_path: Path) -> None:
    offer = replace(
        survey.survey(tmp_path, tuple),
        runtimes=(
            RuntimeOffer("bubblewrap", ""),
            RuntimeOffer("apptainer", "", ("processors",)),
        ),
        auto="bubblewrap",
    )
    absent = tuple(replace(one, why_not="absent") for one in offer.runtimes)
    nothing = replace(offer, runtimes=absent, auto="", network="nothing isolates", unenforced=("memory",))
    for changed in (offer, nothing):
        found = list(doctor.check_offer(changed, "Mend it."))
        assert all(check.next_step for check in found if check.health is not Health.OK)
    told = {check.name: check.text for check in doctor.check_offer(offer, "Mend it.")}
    assert told["bubblewrap"] == "works and enforces all limits"
    assert told["apptainer"] == "works, limits not enforced: processors"


@pytest.mark.parametrize(
    ("staging", "tools", "health"),
    [
        ("direct", {}, None),
        ("copy", {}, Health.OK),
        ("squashfs", {"squashfuse": "0.1.104"}, Health.OK),
        ("squashfs", {}, Health.FAIL),
    ],
)
def test_a_node_that_can_not_mount_datasets_is_told_where_they_come_as_images(
    tmp_path: Path, staging: str, tools: dict[str, str], health: Health | None
) -> None:
    offer = replace(survey.survey(tmp_path, tuple), tools=tools)
    assert [check.health for check in doctor.check_staging(offer, staging)] == ([health] if health else [])
