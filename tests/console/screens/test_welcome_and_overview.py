"""Without a state the welcome says what to do; with one the overview leads to what needs a person."""

from __future__ import annotations

from typing import Any

from engine.places import Places
from tests.console import worlds
from tests.console.conftest import OpenDesk

SWEEP = "sweep:aide-o3-lite"


async def test_without_a_state_it_says_what_to_do_next(opened: OpenDesk) -> None:
    async with opened(None) as desk:
        await desk.sees("open the demo", "grade one submission", "start the engine", "no engine yet")
        await desk.press("d")
        assert desk.app.return_value == "demo"


async def test_the_welcome_gives_way_to_a_state(opened: OpenDesk, places: Places) -> None:
    async with opened(None) as desk:
        await desk.sees("open the demo")
        worlds.paused(places).database.close()
        await desk.sees("needs you")


async def test_the_overview_shows_what_needs_a_person_first_failed_then_late(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.sees("image pull: connection reset", "no valid submission, 1h30m left")
        text = desk.text()
        assert text.index("image pull") < text.index("no valid submission")


async def test_enter_on_the_overview_leads_to_the_cause(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.sees("image pull")
        await desk.press("j", "j", "enter")
        await desk.sees("infrastructure  image pull: connection reset by peer", "Timeline")
        await desk.press("escape", "g", "enter")
        await desk.sees("any medal, 0 of 3 seeds whole")


async def test_relaunching_from_the_overview_asks_first(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened() as desk:
        await desk.sees("image pull")
        await desk.press("j", "j", "r")
        await desk.sees("changes no statistics")
        await desk.press("y")
        await desk.sees("done as you asked")
        assert [kind for kind, _ in asked] == ["run.relaunch"]
