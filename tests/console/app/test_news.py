"""An operator is called once for each thing that is worth it, in the ways that config.toml names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlebench_console.console.app.news import desktop_sequence
from mlebench_console.engine.control import EngineStatus
from mlebench_console.engine.notifications.news import News
from mlebench_console.engine.settings import NotificationKind, NotificationSettings
from mlebench_console.state.lifecycle import FailureClass
from tests.console import worlds
from tests.console.conftest import OpenConsole


async def test_a_failure_while_the_console_is_open_rings_once(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    async with opened() as console:
        wanted = NotificationSettings(frozenset({NotificationKind.FAILED}), bell=True)
        console.app.settings = replace(console.app.settings, notifications=wanted)
        monkeypatch.setattr(console.app, "bell", lambda: sent.append("bell"))
        console.app.watch_news()
        await console.sees("needs you")
        assert console.world is not None
        await console.until(lambda: console.app.news._seen is not None)
        lost = console.world.launch(console.world.run("openhands-1", worlds.DEMO[0], 3), ago=600)
        console.world.fail(lost, FailureClass.CRASH, "boom", ago=100)
        await console.until(lambda: sent)
        console.app.reader.look_now()
        await console.pilot.pause()
        assert sent == ["bell"]


async def test_a_disk_that_becomes_full_is_told_once(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[News] = []
    async with opened() as console:
        monkeypatch.setattr(console.app, "notify_of", sent.extend)
        full = EngineStatus(running=True, state_disk_free=1, state_disk_total=100)
        console.app.take_engine(full)
        console.app.take_engine(full)
        assert [each.kind for each in sent] == [NotificationKind.DISK]


def test_no_foreign_text_gets_out_of_a_desktop_notification() -> None:
    drawn = desktop_sequence("evil\x1b\\\x07\x1b]52;c;x\x07; more")
    assert drawn.count("\x1b]") == 2 and drawn.count("\x1b\\") == 2 and "\x07" not in drawn
