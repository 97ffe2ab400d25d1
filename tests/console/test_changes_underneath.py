"""What changes under an open console: a state of another version, a clock that jumps, a pager."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from mlebench_console.console.screens.logs import FileScreen
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.state import runs, sweeps
from mlebench_console.state.database import DATABASE_NAME, SCHEMA_VERSION, open_for_writing
from mlebench_console.state.lifecycle import SweepState
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.pty_terminal import PtyTerminal
from tests.console.world import HOUR, NOW

# A sign before a number that is an age, a share or what is left.
NEGATIVE = re.compile(r"(?<![\w.-])-\d+(?:[hms:%.]|\s)")
PAGER = """#!/bin/sh
printf '%s\\n' "$@" > "$0.asked"
shift
trap 'exit 0' INT
cat "$@" > "$0.read"
while true; do sleep 0.05; done
"""
# How far the clock is from where it was, and what it then shows.
JUMPS = ((-HOUR, "02:14"), (3 * HOUR, "06:14"), (-400 * HOUR, "11:14"), (0.0, "03:14"))


def set_version(places: Places, version: int) -> None:
    with sqlite3.connect(places.state_dir / DATABASE_NAME) as state:
        state.execute(f"PRAGMA user_version = {version}")
    state.close()


async def test_a_state_of_another_version_under_an_open_console_is_told_calmly(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(worlds.paused, screen="sweep:dummy-1") as console:
        await console.sees("paused")
        assert console.world is not None
        console.world.database.close()
        state, moved = places.state_dir / DATABASE_NAME, places.state_dir / "moved"
        set_version(places, SCHEMA_VERSION - 1)
        shutil.copy(state, moved)
        moved.replace(state)  # another file: the console opens it anew
        await console.sees("was written by an older", "Use that version")
        assert "seed 1" in console.text(), "what was seen stays"
        assert "Traceback" not in console.text()
        set_version(places, SCHEMA_VERSION)
        await console.misses("by an older")
        engine = open_for_writing(places.state_dir)
        sweeps.set_state(engine, "dummy-1", SweepState.ACTIVE, now=NOW)
        await console.misses("paused")
        engine.close()


@pytest.mark.parametrize("screen", ["overview", "sweep:demo-baseline", "host", "events", "board"])
async def test_a_clock_that_jumps_makes_no_age_negative(opened: OpenConsole, screen: str) -> None:
    async with opened(worlds.demo, screen=screen) as console:
        await console.sees("engine ok")
        for moved, clock in JUMPS:
            console.clock.at = NOW + moved
            await console.sees(clock)
            console.app.redraw_all()
            await console.pilot.pause()
            assert not NEGATIVE.search(console.text()), f"moved by {moved}\n{console.text()}"
        await console.sees("engine ok")


async def test_a_clock_that_jumps_under_a_run_makes_no_age_negative(opened: OpenConsole) -> None:
    async with opened(worlds.demo) as console:
        assert console.world is not None
        live = runs.live(console.world.database)
        console.app.show_run(live[0].id)
        await console.sees("Timeline")
        for moved, clock in JUMPS:
            console.clock.at = NOW + moved
            await console.sees(clock)
            for _pane in range(6):
                await console.press("tab")
                console.app.redraw_all()
                await console.pilot.pause()
                assert not NEGATIVE.search(console.text()), f"moved by {moved}\n{console.text()}"


async def test_a_size_that_changes_under_another_screen_is_that_of_the_screen_below_too(
    opened: OpenConsole,
) -> None:
    async with opened(worlds.demo, screen="sweep:demo-baseline") as console:
        await console.sees("seed 1")
        assert console.world is not None
        run = runs.live(console.world.database)[0].id
        for size, seen in (((20, 5), "too small: 20x5"), ((120, 40), "seed 1")):
            console.app.show_run(run)
            await console.pilot.pause()
            await console.pilot.resize_terminal(*size)
            console.app.pop_screen()
            await console.sees(seen)
            assert ("too small" in console.text()) == (size == (20, 5))


def test_o_leaves_the_terminal_to_the_operators_pager_and_comes_back(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds.demo(places)
    run = world.run("demo-baseline", worlds.DEMO[2], 2)
    attempt = runs.latest_attempt(world.database, run)
    assert attempt is not None
    log = places.state_dir / attempt.directory / protocol.LOG
    pager = tmp_path / "pager"
    pager.write_text(PAGER)
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", f"{pager} -N")
    terminal = PtyTerminal(places.state_dir.parent, f"run:{run}")
    try:
        terminal.until("fixed the label encoder")
        terminal.type("o")
        terminal.until(pager.with_name("pager.read").exists)
        terminal.until(lambda: pager.with_name("pager.read").read_bytes() == log.read_bytes())
        assert pager.with_name("pager.asked").read_text().splitlines() == ["-N", str(log)]
        terminal.type("\x03")  # ends the pager, and not the console with it
        terminal.type("?")
        terminal.until("In a log")
        terminal.type("\x1b")
        terminal.until(lambda: "In a log" not in terminal.seen)
        terminal.type("q")
        assert terminal.wait() == 0
        assert terminal.is_as_before
    finally:
        terminal.close()
        world.database.close()


async def test_of_a_path_that_is_too_long_the_files_own_name_is_seen(opened: OpenConsole) -> None:
    async with opened(size=(80, 24)) as console:
        folder = console.app.places.state_dir.joinpath(*["a-folder-with-a-long-name"] * 4)
        folder.mkdir(parents=True)
        (folder / "the-solution.py").write_text("import pandas\n")
        console.app.push_screen(FileScreen(folder / "the-solution.py"))
        await console.sees("/the-solution.py")
