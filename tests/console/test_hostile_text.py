"""What an agent wrote reaches the terminal as harmless text, wherever it is shown."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest

from engine.places import Places
from tests.console import worlds
from tests.console.conftest import Desk, OpenDesk

PATIENCE_SECONDS = 60.0


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
        desk.app.show_run(2)
        await desk.sees("evil", "Timeline")
        for _pane in range(5):
            await desk.press("tab")
            assert_harmless(desk)
        desk.app.say("evil\x1b[2J\x9b31m")
        await desk.sees("evil^[[2J<9B>31m")
        assert_harmless(desk)


PROGRAM = """
import sys
from pathlib import Path
from engine.places import Places
from console.running import run_console
base = Path(sys.argv[1])
raise SystemExit(run_console(Places(base / "config.toml", base / "data", base / "state"), screen=sys.argv[2]))
"""


class Terminal:
    """A console in a terminal of its own, with every byte that it sent."""

    def __init__(self, folder: Path, screen: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), screen],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | {"COLORTERM": "truecolor", "PYTHONPATH": str(Path(__file__).parents[2])},
            start_new_session=True,
        )
        os.close(slave)
        self.sent = b""
        self.screen = pyte.Screen(120, 40)
        self.stream = pyte.ByteStream(self.screen)

    def until(self, text: str) -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while text not in "\n".join(self.screen.display):
            assert time.monotonic() < give_up, "\n".join(self.screen.display)
            self.read()

    def read(self) -> None:
        if select.select([self.master], [], [], 0.2)[0]:
            try:
                part = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                part = b""
            self.sent += part
            # pyte knows neither private key protocols nor synchronized output; it need not.
            self.stream.feed(part.replace(b"\x1b[>25u", b"").replace(b"\x1b[<u", b""))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(places: Places) -> Iterator[Terminal]:
    worlds.hostile(places).database.close()
    made = Terminal(places.state_dir.parent, "run:2")
    yield made
    made.close()


def test_a_real_terminal_gets_only_our_own_sequences(terminal: Terminal) -> None:
    terminal.until("evil^[[2J")
    assert b"\x1b]52" not in terminal.sent and b"\x1b]0;" not in terminal.sent
    assert b"\x1b[2J\x1b]" not in terminal.sent and b"\x1bP1$r" not in terminal.sent
    assert "\x9b".encode() not in terminal.sent and "\u202e".encode() not in terminal.sent
    assert "title" not in terminal.screen.title


def test_q_restores_the_terminal_and_says_that_nothing_else_ends(terminal: Terminal) -> None:
    terminal.until("evil")
    terminal.type("q")
    give_up = time.monotonic() + PATIENCE_SECONDS
    while terminal.process.poll() is None:
        assert time.monotonic() < give_up
        terminal.read()
    while select.select([terminal.master], [], [], 0.2)[0]:
        before = len(terminal.sent)
        terminal.read()
        if len(terminal.sent) == before:
            break
    assert terminal.process.returncode == 0
    assert b"\x1b[?1049l" in terminal.sent and b"\x1b[?25h" in terminal.sent
    assert b"\x1b[?1003l" in terminal.sent
