"""An operator is called once for each thing that is worth it, in the ways that config.toml names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console import notifying
from console.config import read_settings
from console.model.news import Kind, News, in_short, newest_id, of_events, since
from console.notifying import Calls, desktop_sequence
from engine.control import EngineStatus
from engine.places import Places
from foundation.problems import EnvironmentProblem, UsageProblem
from state.lifecycle import FailureClass, Outcome
from tests.console import worlds
from tests.console.conftest import OpenDesk


def test_ends_of_runs_are_news_and_steps_between_are_not(places: Places) -> None:
    world = worlds.busy(places)
    before = newest_id(world.database)
    attempt = world.launch(world.run("openhands-1", worlds.DEMO[0], 2), ago=600)
    world.finish(attempt, Outcome.GOLD, 1.0, ago=300)
    lost = world.launch(world.run("openhands-1", worlds.DEMO[0], 3), ago=600)
    world.fail(lost, FailureClass.CRASH, "boom", ago=100)
    found = of_events(since(world.database, before))
    world.database.close()
    assert [each.kind for each in found] == [Kind.MEDAL, Kind.FAILED]
    assert "boom" in found[1].text and in_short(found).endswith(", and 1 more")


async def test_a_failure_while_the_console_is_open_rings_once(
    opened: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    async with opened() as desk:
        desk.app.settings = replace(desk.app.settings, calls=Calls(frozenset({Kind.FAILED}), bell=True))
        monkeypatch.setattr(desk.app, "bell", lambda: sent.append("bell"))
        desk.app.caller.begin()
        await desk.sees("needs you")
        assert desk.world is not None
        await desk.until(lambda: desk.app.caller._seen is not None)
        lost = desk.world.launch(desk.world.run("openhands-1", worlds.DEMO[0], 3), ago=600)
        desk.world.fail(lost, FailureClass.CRASH, "boom", ago=100)
        await desk.until(lambda: sent)
        desk.app.reader.look_now()
        await desk.pilot.pause()
        assert sent == ["bell"]


async def test_a_disk_that_becomes_full_is_told_once(
    opened: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[News] = []
    async with opened() as desk:
        monkeypatch.setattr(desk.app.caller, "call", sent.extend)
        desk.app.engine = EngineStatus(running=True, state_disk_free=1, state_disk_total=100)
        desk.app.caller.on_engine()
        desk.app.caller.on_engine()
        assert [each.kind for each in sent] == [Kind.DISK]


def test_no_foreign_text_gets_out_of_a_desktop_notification() -> None:
    drawn = desktop_sequence("evil\x1b\\\x07\x1b]52;c;x\x07; more")
    assert drawn.count("\x1b]") == 2 and drawn.count("\x1b\\") == 2 and "\x07" not in drawn


class Service:
    """Stands for apprise."""

    def __init__(self, *, takes: bool = True, delivers: bool = True) -> None:
        self.takes, self.delivers = takes, delivers
        self.bodies: list[str] = []

    def add(self, url: str) -> bool:
        return self.takes

    def notify(self, *, title: str, body: str) -> bool:
        self.bodies.append(body)
        return self.delivers


def test_services_get_harmless_text() -> None:
    service = Service()
    notifying.send(["json://127.0.0.1"], "bad\x1b[2J", make=lambda: service)
    assert service.bodies == ["bad^[[2J"]


@pytest.mark.parametrize("service", [Service(takes=False), Service(delivers=False)])
def test_trouble_with_a_service_names_no_address(service: Any) -> None:
    with pytest.raises(EnvironmentProblem) as told:
        notifying.send(["slack://secret-token"], "text", make=lambda: service)
    assert "secret-token" not in str(told.value)


def test_what_to_be_called_for_is_read_from_config_toml(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[notifications]\non = ["medal", "disk"]\nbell = true\nurls = ["json://x"]\n')
    calls = read_settings(config, theme=None, ascii_only=False).calls
    assert calls == Calls(frozenset({Kind.MEDAL, Kind.DISK}), True, False, ("json://x",))
    config.write_text('[notifications]\non = ["everything"]\n')
    with pytest.raises(UsageProblem, match="everything"):
        read_settings(config, theme=None, ascii_only=False)
