"""The run screen: its log follows, pauses and searches, and every pane shows its facts."""

from __future__ import annotations

from typing import Any

from console.screens.run import RunScreen
from engine.places import Places
from environment.runner import protocol
from tests.console.conftest import OpenDesk

SWEEP = "sweep:aide-o3-lite"


async def test_the_log_follows_pauses_and_searches(opened: OpenDesk, places: Places) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("enter")
        await desk.sees("following", "fixed the label encoder")
        await desk.press("k", "k")
        await desk.sees("paused")
        log = next(places.runs_dir.glob(f"aide-o3-lite/aerial*/seed-1/attempt-1/{protocol.LOG}"))
        with log.open("a") as stream:
            stream.write("one\ntwo\nthe end\n")
        await desk.sees("paused, +3 lines")
        await desk.press("G")
        await desk.sees("the end", "following")
        await desk.press("g", "slash", *"shapes", "enter")
        await desk.sees("paused")
        await desk.press("n", "N", "e", "E", "w")
        await desk.sees("wrap")
        await desk.press("w", "right")
        await desk.sees("from column 21")


async def test_a_wrong_expression_is_told(opened: OpenDesk) -> None:
    async with opened(screen="run:5") as desk:
        await desk.sees("Timeline")
        await desk.press("tab", "shift+tab", "slash", "left_parenthesis", "enter")
        await desk.sees("is not a regular expression")


async def test_every_pane_shows_its_facts(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.sees("LOW")
        await desk.press("f", "enter")
        await desk.sees("infrastructure  GPU lost")
        for seen in ("events", "no submission yet", "nothing has been measured yet", "run.log", "aide-o3"):
            await desk.press("tab")
            await desk.sees(seen)
        await desk.press("Y")
        await desk.sees("copied")
        await desk.press("r")
        await desk.sees("changes no statistics")
        await desk.press("n", "s")
        await desk.sees("can be stopped")
        await desk.press("escape")
        await desk.until(lambda: not isinstance(desk.app.screen, RunScreen))
