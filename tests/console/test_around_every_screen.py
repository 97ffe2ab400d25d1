"""What works around every screen: switching, help, commands, themes, sizes, the way out."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from console.tui import commands
from console.tui.screen import SCREENS
from engine import control
from engine.control.status import EngineStatus
from engine.places import Places
from foundation.problems import EnvironmentProblem
from tests.console import worlds
from tests.console.conftest import OpenDesk

SWEEP = "sweep:aide-o3-lite"


async def test_digits_switch_screens(opened: OpenDesk) -> None:
    async with opened() as desk:
        for key, seen in (
            ("2", "seed 1"),
            ("3", "prepared"),
            ("5", "Disarray"),
            ("1", "needs you"),
            ("4", "submission"),
        ):
            await desk.press(key)
            await desk.sees(seen)


async def test_ctrl_c_tells_how_to_leave(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("ctrl+c")
        await desk.sees("q closes the console; the engine goes on")


async def test_a_tick_that_comes_when_the_screens_are_gone_is_harmless(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.sees("needs you")
    assert not desk.app.screen_stack
    desk.app._tick()


async def test_help_shows_the_keys_of_the_screen_and_closes(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:
        await desk.press("question_mark")
        await desk.sees("Mark every shown run that failed", "In the matrix")
        await desk.press("escape")
        await desk.misses("In the matrix")


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("board", "Disarray"),
        ("sweep openhands-1", "44 queued"),
        ("run 5", "Timeline"),
        ("d", "prepared"),
        ("grade leaf", "metric"),
    ],
)
async def test_the_command_line_does_what_it_says(opened: OpenDesk, line: str, seen: str) -> None:
    async with opened() as desk:
        line = line.replace("grade leaf", "grade leaf-classification")
        await desk.press("colon")
        await desk.press(*[{" ": "space", "-": "minus"}.get(letter, letter) for letter in line], "enter")
        await desk.sees(seen)


async def test_the_command_line_completes_and_recalls(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("colon", "b", "o")
        await desk.sees("board")
        await desk.press("tab", "enter")
        await desk.sees("Disarray")
        await desk.press("1", "colon", "up", "enter")
        await desk.sees("Disarray")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("fly", "no command :fly"),
        ("run x", "not the number"),
        ("pause", "needs SWEEP"),
        ("theme x", "no theme"),
    ],
)
async def test_a_command_that_cannot_be_is_told_calmly(opened: OpenDesk, line: str, told: str) -> None:
    async with opened() as desk:
        commands.execute(desk.app, line)
        await desk.sees(told)


async def test_the_palette_finds_commands(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("ctrl+p")
        await desk.sees("Scoreboard beside the published rows")
        await desk.press(*"scoreb", "enter")
        await desk.sees("Disarray")


async def test_q_closes_the_console_and_nothing_else(opened: OpenDesk, asked: list[Any]) -> None:
    async with opened() as desk:
        await desk.press("q")
        assert not desk.app.is_running or desk.app._exit
        assert asked == []


async def test_the_theme_changes_by_key(opened: OpenDesk) -> None:
    async with opened() as desk:
        await desk.press("f2")
        assert desk.app.palette.name == "day"
        await desk.press("f2")
        assert desk.app.palette.name == "night"


async def test_a_demo_says_so_on_every_screen(opened: OpenDesk) -> None:
    async with opened(worlds.demo, demo=True) as desk:
        for key in "12345":
            await desk.press(key)
            await desk.sees("demo: synthetic data, real thresholds, not a result")
            await desk.press("escape")


async def test_an_engine_that_is_down_is_told_and_can_be_started(
    opened: OpenDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Places] = []

    def ensure_running(places: Places) -> EngineStatus:
        started.append(places)
        return EngineStatus(running=True, pid=77)

    monkeypatch.setattr(control, "ensure_running", ensure_running)
    async with opened(with_engine=False) as desk:
        await desk.sees("engine down", "the engine is not running")
        commands.execute(desk.app, "engine")
        await desk.sees("process 77")
        assert started == [desk.app.places]


async def test_a_small_terminal_is_asked_to_grow(opened: OpenDesk) -> None:
    async with opened(size=(20, 5)) as desk:
        await desk.sees("too small: 20x5,")
        await desk.pilot.resize_terminal(100, 30)
        await desk.sees("needs you")


async def test_no_size_makes_any_screen_fail(opened: OpenDesk) -> None:
    async with opened(screen=SWEEP) as desk:

        async def fits(size: tuple[int, int], text: str) -> None:
            await desk.sees(text)
            assert all(cell_len(line) <= size[0] for line in desk.text().splitlines())

        for size in ((1, 1), (41, 10), (60, 15), (80, 24), (300, 80)):
            await desk.pilot.resize_terminal(*size)
            for mode, key, title in SCREENS:
                desk.app.show(mode)
                seen = {1: "", 41: "engine ok"}.get(size[0], f"{key} {title}")
                await fits(size, seen)
        desk.app.show_run(5)
        for size, pane in (((41, 10), "Timeline"), ((80, 24), "Submissions"), ((200, 60), "Resources")):
            await desk.pilot.resize_terminal(*size)
            await desk.press("tab")
            await fits(size, pane if size[0] > 60 else "")


async def test_an_app_needs_no_terminal_to_refuse_politely(places: Places) -> None:
    from console.tui.run import run_console

    with pytest.raises(EnvironmentProblem, match="needs a terminal"):
        run_console(places)
