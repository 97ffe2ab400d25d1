"""Pictures of every screen in its main states; a changed picture is looked at before it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from mlebench_console.console.app.app import ConsoleApp
from mlebench_console.console.cli.program import shell
from mlebench_console.console.tui.config import Settings
from mlebench_console.console.tui.reader import StateHealth
from mlebench_console.console.tui.theme import ANSI, CONTRAST, DARK, LIGHT, MONOCHROME, Palette
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.foundation.locks import FileLock
from tests.console import worlds
from tests.console.stillness import stillness
from tests.console.world import FrozenClock, World

Make = Callable[[Places], World]
SMALL, LARGE = (80, 24), (160, 48)

# name: world, where to open, keys, theme, ASCII
CASES: dict[str, tuple[Make | None, str, tuple[str, ...], Palette, bool]] = {
    "welcome": (None, "", (), DARK, False),
    "overview": (worlds.busy, "overview", (), DARK, False),
    "overview_light": (worlds.outage, "overview", ("enter",), LIGHT, False),
    "sweep": (worlds.busy, "sweep:aide-o3-lite", ("j", "right"), DARK, False),
    "sweep_light": (worlds.busy, "sweep:aide-o3-lite", ("j", "space"), LIGHT, False),
    "sweep_plain_ascii": (worlds.busy, "sweep:aide-o3-lite", ("j", "right", "space"), MONOCHROME, True),
    "sweep_table": (worlds.busy, "sweep:aide-o3-lite", ("v",), DARK, False),
    "sweep_all": (worlds.large, "sweep", (), DARK, False),
    "sweep_relaunch": (worlds.busy, "sweep:aide-o3-lite", ("a", "r"), DARK, False),
    "run_log": (worlds.busy, "run:48", (), DARK, False),
    "run_submissions": (worlds.busy, "run:81", ("tab", "tab"), DARK, False),
    "run_resources": (worlds.busy, "run:81", ("tab", "tab", "tab"), DARK, False),
    "run_resources_ascii": (worlds.busy, "run:81", ("tab", "tab", "tab"), MONOCHROME, True),
    "run_calls": (worlds.counted, "run:25", ("tab", "tab", "tab", "tab"), DARK, False),
    "overview_counted": (worlds.counted, "overview", (), LIGHT, False),
    "sweep_counted": (worlds.counted, "sweep:aide-counted", (), DARK, False),
    "board_counted": (worlds.counted, "board", (), LIGHT, False),
    "code": (worlds.coded, "run:1", ("tab", "tab", "j", "v"), DARK, False),
    "code_diff": (worlds.coded, "sweep:aide-o3-lite", ("space", "right", "space", "d"), DARK, False),
    "data": (worlds.preparing, "data", ("j", "j", "j", "j", "j"), DARK, False),
    "data_marked_ascii": (worlds.preparing, "data", ("j", "space", "j", "j", "M"), MONOCHROME, True),
    "data_raw": (worlds.preparing, "data", ("j", "j", "j", "j", "j", "R"), LIGHT, False),
    "dataset": (worlds.preparing, "data", ("j", "j", "j", "j", "j", "enter"), DARK, False),
    "grade": (worlds.busy, "grade", ("s", "p", "o", "o"), DARK, False),
    "grade_history": (worlds.scored, "grade", ("tab", "tab", "j", "j"), DARK, False),
    "board": (worlds.demo, "board", (), DARK, False),
    "board_scored": (worlds.scored, "board", ("right", "right"), DARK, False),
    "board_light": (worlds.scored, "board", ("space",), LIGHT, False),
    "board_experiment": (worlds.scored, "board", ("enter",), DARK, False),
    "board_plots": (worlds.scored, "board", ("enter", "p"), DARK, False),
    "board_compare": (worlds.scored, "board", ("space", "j", "c"), DARK, False),
    "board_compare_ascii": (worlds.scored, "board", ("space", "j", "c"), MONOCHROME, True),
    "board_export": (worlds.scored, "board", ("e",), DARK, False),
    "board_export_csv": (worlds.scored, "board", ("e", "tab"), LIGHT, False),
    "integrity": (worlds.suspected, "board", ("enter", "i"), DARK, False),
    "integrity_ascii": (worlds.suspected, "board", ("enter", "i", "j", "c"), MONOCHROME, True),
    "timeline": (worlds.night, "sweep:aide-night", ("t", "f"), DARK, False),
    "timeline_ascii": (worlds.night, "sweep:aide-night", ("t", "f"), MONOCHROME, True),
    "host": (worlds.busy, "host", (), DARK, False),
    "host_slurm": (worlds.on_slurm, "host", (), DARK, False),
    "sweep_slurm": (worlds.on_slurm, "sweep:aide-slurm", ("j", "j", "right", "right"), DARK, False),
    "events": (worlds.busy, "events", (), DARK, False),
    "events_filtered_light": (worlds.busy, "events", ("slash", *"sev:bad !gpu", "enter"), LIGHT, False),
    "settings": (None, "settings", ("j",), DARK, False),
    "overview_contrast": (worlds.busy, "overview", (), CONTRAST, False),
    "sweep_terminal_colours": (worlds.busy, "sweep:aide-o3-lite", ("j",), ANSI, False),
    "help": (worlds.busy, "sweep:aide-o3-lite", ("question_mark",), DARK, False),
    "help_signs_light": (worlds.busy, "sweep:aide-o3-lite", ("question_mark", "G"), LIGHT, False),
    "hostile": (worlds.hostile, "sweep", ("right",), DARK, False),
}


@pytest.fixture
def lock(places: Places) -> Iterator[FileLock]:
    made = FileLock(lock_path(places))
    yield made
    made.release()


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
@pytest.mark.parametrize("case", CASES)
def test_a_screen_looks_as_it_did(
    case: str, size: tuple[int, int], places: Places, lock: FileLock, snap_compare: Callable[..., bool]
) -> None:
    make, screen, keys, palette, ascii_only = CASES[case]
    if make is None:
        # A path that is the same on every machine is seen on this screen.
        places = Places(Path("/nowhere/config.toml"), Path("/nowhere/data"), Path("/nowhere/state"))
    else:
        make(places).database.close()
        assert lock.acquire()
    settings = Settings(palette=palette, ascii_only=ascii_only)
    app = ConsoleApp(
        places, settings, screen=screen or None, demo=make is worlds.demo, shell=shell(), clock=FrozenClock()
    )

    async def settle(pilot: Pilot[Any]) -> None:
        await stillness(app, pilot)
        assert app.condition.health is (StateHealth.ABSENT if make is None else StateHealth.GOOD)
        if keys:
            await pilot.press(*keys)
            await stillness(app, pilot)

    assert snap_compare(app, terminal_size=size, run_before=settle)
