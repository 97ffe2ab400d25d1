"""A runner is missed only where attempts wait for one that does not come: an idle engine raises no alarm."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.needs.need import host_needs
from mlebench_console.engine.placements import here as here_module
from mlebench_console.engine.placements.here import Here
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import InboxEntry
from mlebench_console.foundation.locks import FileLock
from tests.console.world import FrozenClock


class NeverThere:
    """A runner that ends at once."""

    started = 0
    variables: Mapping[str, str]

    def __init__(self, *_: object, env: Mapping[str, str], **__: object) -> None:
        NeverThere.started += 1
        NeverThere.variables = env

    def poll(self) -> int:
        return 1


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def here(tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setattr(subprocess, "Popen", NeverThere)
    protocol.inbox(tmp_path).mkdir(parents=True)
    NeverThere.started = 0
    return Here(tmp_path, clock, lambda _text, _error: None)


def alarms(here: Here) -> tuple[str, ...]:
    status = EngineStatus(running=True, runner_alive=here.runner_alive)
    return tuple(need.text for need in host_needs(status, 0.0))


def wait(here: Here, clock: FrozenClock, seconds: float) -> None:
    for _ in range(int(seconds)):
        here.step()
        clock.at += 1.0
    here.step()


def test_an_idle_engine_whose_last_runner_has_left_containers_to_look_for_raises_no_alarm(
    here: Here, clock: FrozenClock, tmp_path: Path
) -> None:
    (tmp_path / protocol.CONTAINERS).touch()
    assert alarms(here) == ()
    wait(here, clock, 60)
    assert alarms(here) == () and NeverThere.started


def test_a_runner_that_is_being_started_is_not_missed_and_one_that_does_not_come_is(
    here: Here, clock: FrozenClock, tmp_path: Path
) -> None:
    protocol.write(protocol.inbox(tmp_path) / "0a.json", InboxEntry(1, "runs/1"))
    assert alarms(here) == ()
    wait(here, clock, here_module._START_SECONDS - 1)
    assert alarms(here) == ()
    wait(here, clock, 1)
    assert "no runner is alive" in alarms(here)[0]
    lock = FileLock(tmp_path / protocol.RUNNER / protocol.RUNNER_LOCK)
    assert lock.acquire()
    here.step()
    assert here.runner_alive is True
    lock.release()
    assert alarms(here) == (), "this one too is only being started"
    protocol.inbox(tmp_path).joinpath("0a.json").unlink()
    wait(here, clock, 60)
    assert here.runner_alive is None, "nothing waits for it any more"


def test_a_runner_has_what_its_gateways_need_to_reach_providers_and_no_secret(
    here: Here, clock: FrozenClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {
        "SSL_CERT_FILE": "/etc/company.pem",
        "https_proxy": "http://proxy:3128",
        "NO_PROXY": "localhost",
    }
    for name, value in {**needed, "OPENAI_API_KEY": "secret"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / protocol.CONTAINERS).touch()
    here.step()
    assert needed.items() <= NeverThere.variables.items()
    assert "OPENAI_API_KEY" not in NeverThere.variables
