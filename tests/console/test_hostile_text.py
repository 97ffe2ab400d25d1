"""What an agent wrote reaches the terminal as harmless text, wherever it is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Input

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
        for key in ("1", "2", "3", "5", "8"):
            await desk.press(key, "G")
            await desk.sees("evil")
            assert_harmless(desk)
        await desk.press("4")
        await desk.sees("graded before", "evil")
        assert_harmless(desk)
        await desk.press("escape")
        await desk.press("2", "right", "v")
        assert_harmless(desk)
        await desk.press("v", "a", "r")
        assert_harmless(desk)
        await desk.press("n")
        desk.app.show_run(2)
        await desk.sees("evil", "Timeline")
        for _pane in range(5):
            await desk.press("tab")
            assert_harmless(desk)
        desk.app.say("evil\x1b[2J\x9b31m")
        await desk.sees("evil^[[2J<9B>31m")
        assert_harmless(desk)


async def test_no_field_offers_a_name_that_nobody_could_type(opened: OpenDesk, tmp_path: Path) -> None:
    for folder, name in (("bad", "sub\x1b]0;title\x07.csv"), ("good", "submission.csv")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("id\n")
    async with opened(screen="grade") as desk:
        field = desk.app.screen.query_one("#path", Input)
        for folder, offered in (("good", "good/submission.csv"), ("bad", "")):
            field.value = f"{tmp_path}/{folder}/su"
            await desk.pilot.pause()
            await desk.app.workers.wait_for_complete()
            await desk.pilot.pause()
            assert field._suggestion.endswith(offered) and bool(field._suggestion) is bool(offered)
        field.value = f"{tmp_path}/bad/sub\x1b]0;title\x07.csv"
        await desk.sees("bad/sub?]0;title?.csv")
        assert_harmless(desk)


Open = Callable[[str], PtyTerminal]


@pytest.fixture
def open_terminal(places: Places) -> Iterator[Open]:
    worlds.hostile(places).database.close()
    made: list[PtyTerminal] = []

    def open_at(screen: str) -> PtyTerminal:
        made.append(PtyTerminal(places.state_dir.parent, screen))
        return made[-1]

    yield open_at
    for each in made:
        each.close()


# Where a console opens, what is pressed there one by one, and what is seen after each.
WAYS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "log": ("run:2", (("", "evil^[[2J"), ("#", "1 "), ("w", "evil"), ("/evil\r", "evil"), ("n", "evil"))),
    "run": (
        "run:2",
        (
            ("", "evil^[[2J"),
            ("\t", "run.failed"),
            ("\t", "invalid submission"),
            ("\t", "nothing has been measured"),
            ("\t", "x<OSC><9B>2J.csv"),
            ("\t", "agentevil^[[2J"),
        ),
    ),
    "merged logs": (
        "sweep",
        (("", "evil^[[2J"), ("m", "3 marked"), ("L", "1 log by time"), ("G", "evil^[[2J")),
    ),
    "grade": ("grade", (("", "graded before"), ("\t", "/work/evil?[2J"))),
    "data": ("data", (("", "1 failed"), ("G", "evil^[[2J"), ("\r", "Kaggle: unknown"))),
    "board": ("board", (("", "ours: exp"), ("\r", "evil"), ("\x1b", "agent"), ("e", "evil"))),
    "overview, events and launch": ("overview", (("", "evil^[[2J"), ("8", "evil^[[2J"), ("7", "agent"))),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_real_terminal_gets_only_our_own_sequences(way: str, open_terminal: Open) -> None:
    screen, steps = WAYS[way]
    terminal = open_terminal(screen)
    for keys, seen in steps:
        terminal.type(keys)
        terminal.until(seen)
    terminal.type("\x11")
    assert terminal.wait() == 0
    assert b"\x1b]52" not in terminal.sent and b"\x1b]0;" not in terminal.sent
    assert b"\x1b[2J\x1b]" not in terminal.sent and b"\x1bP1$r" not in terminal.sent
    assert "\x9b".encode() not in terminal.sent and "\u202e".encode() not in terminal.sent
    assert "title" not in terminal.screen.title
