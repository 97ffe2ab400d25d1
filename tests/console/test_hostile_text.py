"""What an agent wrote reaches the terminal as harmless text, wherever it is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest

from engine.places import Places
from tests.console import worlds
from tests.console.conftest import Desk, OpenDesk
from tests.console.pty_terminal import PtyTerminal


def assert_harmless(desk: Desk) -> None:
    for strip in desk.app.screen._compositor.render_strips():
        for segment in strip:
            bad = [
                hex(ord(c)) for c in segment.text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
            ]
            assert not bad, f"{bad} in {segment.text!r}"
            assert segment.style is None or segment.style.link is None


async def test_no_screen_lets_a_control_character_through(opened: OpenDesk) -> None:
    async with opened(worlds.hostile) as desk:
        for key in ("1", "2", "3", "5"):
            await desk.press(key, "G")
            await desk.sees("evil")
            assert_harmless(desk)
        await desk.press("2", "right", "v")
        assert_harmless(desk)
        await desk.press("v", "a", "r")
        assert_harmless(desk)
        await desk.press("n")
        desk.app.ways.to_run(2)
        await desk.sees("evil", "Timeline")
        for _pane in range(5):
            await desk.press("tab")
            assert_harmless(desk)
        desk.app.say("evil\x1b[2J\x9b31m")
        await desk.sees("evil^[[2J<9B>31m")
        assert_harmless(desk)


@pytest.fixture
def terminal(places: Places) -> Iterator[PtyTerminal]:
    worlds.hostile(places).database.close()
    made = PtyTerminal(places.state_dir.parent, "run:2")
    yield made
    made.close()


def test_a_real_terminal_gets_only_our_own_sequences(terminal: PtyTerminal) -> None:
    terminal.until("evil^[[2J")
    assert b"\x1b]52" not in terminal.sent and b"\x1b]0;" not in terminal.sent
    assert b"\x1b[2J\x1b]" not in terminal.sent and b"\x1bP1$r" not in terminal.sent
    assert "\x9b".encode() not in terminal.sent and "\u202e".encode() not in terminal.sent
    assert "title" not in terminal.screen.title
