"""Settings are changed by key, count at once and stand in config.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.console.tui.config import read_settings
from mlebench_console.engine.places import Places
from mlebench_console.engine.settings import NotificationKind
from mlebench_console.foundation.problems import UsageProblem
from tests.console.conftest import OpenConsole, ShownConsole


def written(places: Places) -> dict[str, Any]:
    return tomllib.loads(places.config_file.read_text())


async def go_to(console: ShownConsole, words: str) -> None:
    await console.press("escape", "slash", *words, "enter")


async def test_the_theme_changes_at_once_and_is_written(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="settings") as console:
        await console.sees("nothing is sent: no way of notifying is set")
        await console.sees("theme", "dark", "notify me when", str(places.config_file.name))
        await console.press("enter")
        await console.sees("light")
        assert console.app.palette.name == "day" and written(places)["console"]["theme"] == "light"
        await console.press("d")
        await console.until(lambda: console.app.palette.name == "night")
        assert "theme" not in written(places)["console"]


async def test_signs_refresh_and_ways_are_written(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="settings") as console:
        await console.sees("ASCII signs only")
        for words in ("refresh every", "ASCII", "bell"):
            await go_to(console, words)
            await console.press("g", "enter")
        assert written(places) == {
            "console": {"refresh": 1.0, "ascii": True},
            "notifications": {"bell": True},
        }
        assert console.app.settings.ascii_only and console.app.settings.notifications.bell
        assert console.app.reader.look_every == 1.0


async def test_what_to_be_called_for_is_chosen_one_by_one(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="settings") as console:
        await console.sees("a run ended with a medal")
        await go_to(console, "medal")
        await console.press("g", "j", "enter")
        await console.until(lambda: NotificationKind.MEDAL in console.app.settings.notifications.on)
        assert set(written(places)["notifications"]["on"]) == {
            "failed",
            "refused",
            "medal",
            "idle",
            "disk",
            "provider",
            "budget",
        }


async def test_changed_keys_are_counted_and_written_by_hand(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="settings") as console:
        await go_to(console, "changed keys")
        await console.sees("none", '"sweep.relaunch" = "f5"')
        console.app.change_setting("keys", "app.events", "f9")
        await console.misses("none")
        for key in ("enter", "d"):
            await console.press("g", key)
            await console.sees("write keys into config.toml, under [keys]")
        assert written(places)["keys"] == {"app.events": "f9"}
        await console.press("f9")
        await console.sees("events", "what happened")


async def test_a_watcher_changes_no_setting(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="settings", readonly=True) as console:
        await console.sees("theme")
        await console.press("enter")
        await console.sees("this console is read-only")
        assert not places.config_file.exists()


async def test_a_config_that_cannot_be_changed_is_told(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="settings") as console:
        await console.sees("theme")
        places.config_file.parent.mkdir(parents=True, exist_ok=True)
        places.config_file.write_text("[console")
        await console.press("enter")
        await console.sees("can't be changed")
        assert console.app.palette.name == "night"


def test_addresses_are_never_shown(places: Places) -> None:
    from mlebench_console.console.roles import UNICODE, Drawing
    from mlebench_console.console.screens.settings import settings_blocks
    from mlebench_console.console.tui.widgets.blocks import laid_out

    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text('[notifications]\nurls = ["slack://secret-token"]\n')
    settings = read_settings(places.config_file, theme=None, ascii_only=False)
    drawn = str(laid_out(settings_blocks(settings, "", UNICODE), Drawing(0.0, width=120)))
    assert "1 set" in drawn and "secret-token" not in drawn


@pytest.mark.parametrize("value", ["0", "true", '"fast"', "99999"])
def test_a_refresh_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f"[console]\nrefresh = {value}\n")
    with pytest.raises(UsageProblem, match="refresh"):
        read_settings(config, theme=None, ascii_only=False)


async def test_a_change_that_the_next_start_would_refuse_is_not_written(
    opened: OpenConsole, places: Places
) -> None:
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text("[engin]\ncpus = 1\n")
    async with opened(screen="settings") as console:
        before = "[engin]\ncpus = 1\n[engine]\ncpus = 0\n"
        places.config_file.write_text(before)
        with pytest.raises(UsageProblem, match=r"\[engine\] cpus is not a number above 0"):
            console.app.change_setting("console", "theme", "light")
        with pytest.raises(UsageProblem):
            console.app.change_setting("keys", "sweep.stop", "r")
        assert places.config_file.read_text() == before
        places.config_file.write_text("[engin]\ncpus = 1\n")
        console.app.change_setting("console", "theme", "light")
        assert console.app.palette.name == "day"
        await console.sees("there is no table [engin], it is ignored; did you mean 'engine'?")


async def test_hints_name_the_keys_as_they_are_bound(opened: OpenConsole, places: Places) -> None:
    async with opened() as console:
        await console.sees("R relaunch all")
        console.app.change_setting("keys", "overview.relaunch_all", "x")
        await console.sees("x relaunch all")
        await console.misses("R relaunch all")
