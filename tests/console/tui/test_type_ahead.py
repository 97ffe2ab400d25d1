"""Keys that come in one burst, as over a slow link, do what they would have done one by one."""

from __future__ import annotations

import pytest
from textual import events
from textual.widgets import Input

from mlebench_console.console.screens.code import CodeScreen
from mlebench_console.console.tui.reader import Reader
from mlebench_console.console.views.code import Wanted
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole


def burst(console: ShownConsole, *keys: str) -> None:
    """All keys at once, without waiting for what any of them does."""
    for key in keys:
        console.app.post_message(events.Key(key, key if len(key) == 1 else None))


def typed(console: ShownConsole, *fields: str) -> tuple[str, ...]:
    return tuple(console.app.screen.query_one(f"#{field}", Input).value for field in fields)


async def test_a_burst_goes_from_field_to_field(opened: OpenConsole) -> None:
    async with opened(worlds.paused, screen="launch") as console:
        await console.until(lambda: getattr(console.app.focused, "id", "") == "agent")
        burst(console, "ctrl+u", *"dummy", "enter", "ctrl+u", *"lite", "enter", "ctrl+u", *"5", "down", *"x")
        await console.until(lambda: typed(console, "hours") == ("24hx",))
        assert typed(console, "agent", "competitions", "seeds") == ("dummy", "lite", "5")


async def test_what_is_taken_back_in_a_burst_is_what_was_typed_last(opened: OpenConsole) -> None:
    async with opened(worlds.paused, screen="launch") as console:
        await console.until(lambda: getattr(console.app.focused, "id", "") == "agent")
        burst(console, *"dumy", "backspace", *"my", "left", "left", *"X", "tab", "ctrl+u", *"a")
        await console.until(lambda: typed(console, "competitions") == ("a",))
        assert typed(console, "agent") == ("dumXmy",)


async def test_a_colon_in_a_field_holds_nothing_up(opened: OpenConsole) -> None:
    async with opened(worlds.paused, screen="launch") as console:
        await console.until(lambda: getattr(console.app.focused, "id", "") == "agent")
        burst(console, *"a:b")
        await console.until(lambda: typed(console, "agent") == ("a:b",))
        assert console.app._held_keys is None


async def test_keys_behind_a_digit_belong_to_the_screen_that_it_opens(opened: OpenConsole) -> None:
    async with opened(worlds.busy, screen="sweep:aide-o3-lite") as console:
        await console.sees("aide-o3-lite")
        burst(console, "1", "2", "right_square_bracket", "j", "v")
        await console.sees("sweep 1 of 2", "state")


async def test_keys_behind_enter_belong_to_the_run_that_it_opens(opened: OpenConsole) -> None:
    async with opened(worlds.busy, screen="sweep:aide-o3-lite") as console:
        await console.sees("aide-o3-lite")
        burst(console, "j", "enter", "tab", "tab", "escape", "right_square_bracket", "v")
        await console.sees("sweep 1 of 2", "state")


async def test_a_question_is_answered_by_the_key_behind_the_one_that_asks_it(
    opened: OpenConsole, asked: list[object]
) -> None:
    async with opened(worlds.busy, screen="sweep:aide-o3-lite") as console:
        await console.sees("aide-o3-lite")
        burst(console, "a", "r", "y")
        await console.until(lambda: asked)


async def test_a_state_that_never_answers_does_not_keep_the_console_from_closing(opened: OpenConsole) -> None:
    async with opened(worlds.busy, screen="overview") as console:
        await console.sees("needs you")
        console.app.reader.watch = lambda *_arguments: None  # type: ignore[method-assign]
        burst(console, "2", "q")
        await console.until(lambda: console.app._exit)


@pytest.mark.parametrize(
    ("screen", "keys"),
    [
        ("overview", ["f"]),
        ("sweep:aide-o3-lite", ["f"]),
        ("sweep:aide-o3-lite", ["t", "f"]),
        ("run:1", ["v"]),
        ("run:1", ["d"]),
    ],
)
async def test_nothing_is_said_to_be_absent_that_was_not_read(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch, screen: str, keys: list[str]
) -> None:
    monkeypatch.setattr(Reader, "watch", lambda *_arguments: None)
    monkeypatch.setattr("mlebench_console.console.tui.screen._READY_SECONDS", 0.0)
    async with opened(worlds.busy, screen=screen) as console:
        await console.press(*keys)
        await console.sees("this has not been read yet")


@pytest.mark.parametrize("key", ["left_square_bracket", "right_square_bracket", "d"])
async def test_code_that_was_not_read_has_no_last_version(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(Reader, "watch", lambda *_arguments: None)
    monkeypatch.setattr("mlebench_console.console.tui.screen._READY_SECONDS", 0.0)
    async with opened(worlds.busy, screen="overview") as console:
        console.app.push_screen(CodeScreen(Wanted(1, 1)))
        await console.press(key)
        await console.sees("this has not been read yet")


async def test_keys_that_are_on_their_way_when_the_console_ends_are_dropped(opened: OpenConsole) -> None:
    async with opened(worlds.busy, screen="overview") as console:
        await console.sees("needs you")
        burst(console, "2", "j", "enter", "tab", "escape", "slash", *"class")


async def test_the_command_line_gives_the_focus_back_to_no_field_that_was_left(opened: OpenConsole) -> None:
    async with opened(worlds.paused, screen="launch") as console:
        await console.press("escape", "colon", "escape")
        assert console.app.focused is None
        await console.press("z", "z")
        await console.misses("zz")
