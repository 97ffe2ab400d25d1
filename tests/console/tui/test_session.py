"""A console is found again as it was left: screen, sweep, filters, orders, cursor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlebench_console.console.screens.scoreboard import BoardScreen
from mlebench_console.console.screens.sweep import SweepScreen
from mlebench_console.console.tui.session import (
    FILE_NAME,
    Session,
    read_session,
    write_session,
)
from mlebench_console.console.tui.widgets.line_list import LineList
from mlebench_console.engine.places import Places
from tests.console import worlds
from tests.console.conftest import OpenConsole
from tests.console.world import World


def as_it_is(places: Places) -> World:
    """The state that the first console left."""
    return worlds.open_world(places)


async def test_the_sweep_is_found_again_with_filter_order_view_and_cursor(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="sweep:aide-o3-lite") as console:
        await console.sees("LOW")
        await console.press("v", *"oooo", "O", "slash", *"state:failed", "enter", "j", "j")
        await console.sees("order: by name, reversed")
        left = console.app.screen.session_values()  # type: ignore[attr-defined]  # it is the sweep screen
        await console.press("q")
    async with opened(as_it_is) as console:
        await console.until(lambda: isinstance(console.app.screen, SweepScreen))
        await console.sees("/ state:failed", "aide-o3-lite", "8 of 45", "competition ▴")
        await console.until(lambda: console.app.screen.session_values() == left)  # type: ignore[attr-defined]  # see above


async def test_the_board_is_found_again_with_its_column_and_filter(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(worlds.scored, screen="board") as console:
        await console.sees("ours: aide-o3")
        await console.press("right", "s", "s", "slash", *"agent", "enter", "j", "j", "j")
        await console.sees("models ▴")
        chosen = console.app.screen.query_one("#list", LineList).key
        await console.press("q")
    async with opened(as_it_is) as console:
        await console.until(lambda: isinstance(console.app.screen, BoardScreen))
        await console.sees("models ▴", "/ agent")
        await console.until(lambda: console.app.screen.query_one("#list", LineList).key == chosen)


async def test_what_is_asked_for_wins_over_what_is_remembered(opened: OpenConsole, places: Places) -> None:
    places.state_dir.mkdir(parents=True)
    write_session(places.state_dir, Session("board", "openhands-1", {}))
    async with opened(screen="sweep:aide-o3-lite") as console:
        await console.sees("aide-o3-lite", "LOW")


async def test_a_watcher_leaves_no_trace(opened: OpenConsole, places: Places) -> None:
    async with opened(screen="board", readonly=True) as console:
        await console.sees("models")
        await console.press("q")
    assert not (places.state_dir / FILE_NAME).exists()


async def test_a_console_that_is_killed_is_found_as_it_was_shortly_before(
    opened: OpenConsole, places: Places
) -> None:
    async with opened(screen="events") as console:
        await console.sees("image pull")
        await console.until(lambda: read_session(places.state_dir).screen == "events")


@pytest.mark.parametrize(
    "note",
    [
        "",
        "{",
        "[]",
        '{"screen": 1}',
        '{"screen": "", "sweep_id": "", "screens": []}',
        '{"screens": {"sweep": 1}}',
    ],
)
def test_a_damaged_note_is_no_trouble(tmp_path: Path, note: str) -> None:
    (tmp_path / FILE_NAME).write_text(note)
    assert read_session(tmp_path) == Session()


async def test_nonsense_in_a_note_is_passed_over(opened: OpenConsole, places: Places) -> None:
    places.state_dir.mkdir(parents=True)
    note = {
        "screen": "no-such-screen",
        "sweep_id": "gone",
        "screens": {
            "sweep": {"order": "BY_MOON", "run": "x", "cursor": "999999", "filter": "\x1b[2J"},
            "board": {"column": "luck", "cursor": "99999"},
        },
    }
    (places.state_dir / FILE_NAME).write_text(json.dumps(note))
    async with opened() as console:
        await console.sees("needs you")
        await console.press("2")
        await console.sees("0 of 45")
        await console.press("escape", "5")
        await console.sees("All ▾")


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    session = Session("sweep", "a", {"sweep": {"filter": "x", "cursor": "3"}})
    write_session(tmp_path, session)
    assert read_session(tmp_path) == session and session.place == "sweep:a"
    write_session(tmp_path / "none", session)
    assert not (tmp_path / "none").exists()
