"""Keys that come in one burst, as over a slow link, do what they would have done one by one."""

from __future__ import annotations

from textual import events
from textual.widgets import Input

from tests.console import worlds
from tests.console.conftest import Desk, OpenDesk


def burst(desk: Desk, *keys: str) -> None:
    """All keys at once, without waiting for what any of them does."""
    for key in keys:
        desk.app.post_message(events.Key(key, key if len(key) == 1 else None))


def typed(desk: Desk, *fields: str) -> tuple[str, ...]:
    return tuple(desk.app.screen.query_one(f"#{field}", Input).value for field in fields)


async def test_a_burst_goes_from_field_to_field(opened: OpenDesk) -> None:
    async with opened(worlds.paused, screen="launch") as desk:
        await desk.until(lambda: getattr(desk.app.focused, "id", "") == "agent")
        burst(desk, "ctrl+u", *"dummy", "enter", "ctrl+u", *"lite", "enter", "ctrl+u", *"5", "down", *"x")
        await desk.until(lambda: typed(desk, "time-limit") == ("24hx",))
        assert typed(desk, "agent", "competitions", "seeds") == ("dummy", "lite", "5")


async def test_what_is_taken_back_in_a_burst_is_what_was_typed_last(opened: OpenDesk) -> None:
    async with opened(worlds.paused, screen="launch") as desk:
        await desk.until(lambda: getattr(desk.app.focused, "id", "") == "agent")
        burst(desk, *"dumy", "backspace", *"my", "left", "left", *"X", "tab", "ctrl+u", *"a")
        await desk.until(lambda: typed(desk, "competitions") == ("a",))
        assert typed(desk, "agent") == ("dumXmy",)


async def test_a_colon_in_a_field_holds_nothing_up(opened: OpenDesk) -> None:
    async with opened(worlds.paused, screen="launch") as desk:
        await desk.until(lambda: getattr(desk.app.focused, "id", "") == "agent")
        burst(desk, *"a:b")
        await desk.until(lambda: typed(desk, "agent") == ("a:b",))
        assert desk.app._held_keys is None
