"""What an agent wrote reaches the terminal as harmless text, wherever it is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.widgets import Input

from mlebench_console.engine.places import Places
from tests.console import worlds
from tests.console.conftest import OpenConsole, ShownConsole
from tests.console.pty_terminal import PtyTerminal


def assert_harmless(console: ShownConsole) -> None:
    for strip in console.app.screen._compositor.render_strips():
        for segment in strip:
            bad = [
                hex(ord(c)) for c in segment.text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
            ]
            assert not bad, f"{bad} in {segment.text!r}"
            assert segment.style is None or segment.style.link is None


async def test_no_screen_lets_a_control_character_through(opened: OpenConsole) -> None:
    async with opened(worlds.hostile) as console:
        for key in ("1", "2", "3", "5", "8"):
            await console.press(key, "G")
            await console.sees("evil")
            assert_harmless(console)
        await console.press("4")
        await console.sees("graded before", "evil")
        assert_harmless(console)
        await console.press("escape")
        await console.press("2", "right", "v")
        assert_harmless(console)
        await console.press("v", "a", "r")
        assert_harmless(console)
        await console.press("n")
        console.app.show_run(2)
        await console.sees("evil", "Timeline")
        for _pane in range(6):
            await console.press("tab")
            assert_harmless(console)
        console.app.say("evil\x1b[2J\x9b31m")
        await console.sees("evil^[[2J<9B>31m")
        assert_harmless(console)


async def test_no_field_offers_a_name_that_nobody_could_type(opened: OpenConsole, tmp_path: Path) -> None:
    for folder, name in (("bad", "sub\x1b]0;title\x07.csv"), ("good", "submission.csv")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("id\n")
    async with opened(screen="grade") as console:
        field = console.app.screen.query_one("#path", Input)
        for folder, offered in (("good", "good/submission.csv"), ("bad", "")):
            field.value = f"{tmp_path}/{folder}/su"
            await console.pilot.pause()
            await console.app.workers.wait_for_complete()
            await console.pilot.pause()
            assert field._suggestion.endswith(offered) and bool(field._suggestion) is bool(offered)
        field.value = f"{tmp_path}/bad/sub\x1b]0;title\x07.csv"
        await console.sees("bad/sub?]0;title?.csv")
        assert_harmless(console)


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
            ("\t", "events"),
            ("\t", "invalid submission"),
            ("\t", "nothing has been measured"),
            ("\t", "no price of evil^[[2J"),
            ("\t", "x<OSC><9B>2J.csv"),
            ("\t", "agentevil^[[2J"),
        ),
    ),
    "logs of several runs": (
        "sweep",
        (
            ("", "evil^[[2J"),
            ("m", "3 marked"),
            ("L", "it has ended"),
            ("G", "evil^[[2J"),
        ),
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
