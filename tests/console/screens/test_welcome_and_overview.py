"""Without a state the welcome says what to do; with one the overview leads to what needs a person."""

from __future__ import annotations

from typing import Any

from engine.places import Places
from tests.console import worlds
from tests.console.conftest import OpenConsole

SWEEP = "sweep:aide-o3-lite"


async def test_without_a_state_it_says_what_to_do_next(opened: OpenConsole) -> None:
    async with opened(None) as console:
        await console.sees("open the demo", "grade one submission", "start the engine", "no engine yet")
        await console.press("d")
        assert console.app.return_value == "demo"


async def test_the_welcome_gives_way_to_a_state(opened: OpenConsole, places: Places) -> None:
    async with opened(None) as console:
        await console.sees("open the demo")
        worlds.paused(places).database.close()
        await console.sees("needs you")


async def test_the_overview_shows_what_needs_a_person_first_failed_then_late(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.sees("image pull: connection reset", "no valid submission, 1h30m left")
        text = console.text()
        assert text.index("image pull") < text.index("no valid submission")


async def test_enter_on_the_overview_leads_to_the_cause(opened: OpenConsole) -> None:
    async with opened() as console:
        await console.sees("image pull")
        await console.press("j", "j", "enter")
        await console.sees("infrastructure  image pull: connection reset by peer", "Timeline")
        await console.press("escape", "g", "enter")
        await console.sees("any medal, 0 of 3 seeds whole")


async def test_relaunching_from_the_overview_asks_first(opened: OpenConsole, asked: list[Any]) -> None:
    async with opened() as console:
        await console.sees("image pull")
        await console.press("j", "j", "r")
        await console.sees("changes no statistics")
        await console.press("y")
        await console.sees("done as you asked")
        assert [kind for kind, _ in asked] == ["run.relaunch"]
