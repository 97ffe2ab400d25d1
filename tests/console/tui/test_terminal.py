"""Whatever ends the console, the terminal is as it was; whatever the terminal does, the console goes on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator

import pytest
from textual import events

from mlebench_console.console.tui.terminal import _KeyParser
from mlebench_console.engine.places import Places
from mlebench_console.state import sweeps
from mlebench_console.state.lifecycle import SweepState
from tests.console import worlds
from tests.console.pty_terminal import PATIENCE_SECONDS, PtyTerminal
from tests.console.world import NOW, World

CRASH = """
from mlebench_console.console.screens.overview import OverviewScreen
def redraw(self):
    password = "hunter2"
    raise RuntimeError("a bug \\x1b]0;owned\\x07")
OverviewScreen.redraw = redraw
"""
Open = Callable[..., PtyTerminal]


@pytest.fixture
def open_terminal(places: Places) -> Iterator[Open]:
    opened: list[PtyTerminal] = []

    def open_one(screen: str = "overview", *, before: str = "") -> PtyTerminal:
        opened.append(PtyTerminal(places.state_dir.parent, screen, before=before))
        return opened[-1]

    yield open_one
    for terminal in opened:
        terminal.close()


@pytest.fixture
def state(places: Places) -> Iterator[World]:
    world = worlds.paused(places)
    yield world
    world.database.close()


def keys_read(sent: str, *, bound: frozenset[str] = frozenset()) -> list[str]:
    """The keys that a terminal's bytes are taken for, all of which arrive at once."""
    parser = _KeyParser()
    parser.bound_with_alt = bound
    return [event.key for part in (sent, "") for event in parser.feed(part) if isinstance(event, events.Key)]


def test_esc_and_what_is_typed_behind_it_are_two_keys_however_close_they_come() -> None:
    assert keys_read("\x1b1") == ["escape", "1"]
    assert keys_read("\x1bjk\x1b:q") == ["escape", "j", "k", "escape", "colon", "q"]
    assert keys_read("\x1b\r") == ["escape", "enter"]
    assert keys_read("¡") == ["inverted_exclamation_mark"]


def test_sequences_and_keys_that_are_bound_with_alt_stay_one_key() -> None:
    assert keys_read("\x1b[A\x1bOA\x1bb\x1b[1;5C") == ["up", "up", "ctrl+left", "ctrl+right"]
    assert keys_read("\x1br", bound=frozenset({"alt+r"})) == ["alt+r"]


def test_q_restores_the_terminal(state: World, open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.until("dummy-1")
    # What others write on the terminal, such as a message to all who are logged in, is gone by a key.
    terminal.screen.reset()
    assert "dummy-1" not in terminal.seen
    terminal.type("\x1bOR")
    terminal.until("dummy-1")
    terminal.type("q")
    assert terminal.wait() == 0
    assert terminal.is_as_before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal(number: signal.Signals, state: World, open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.until("dummy-1")
    terminal.process.send_signal(number)
    assert terminal.wait() == 128 + number
    assert terminal.is_as_before
    assert b"Traceback" not in terminal.sent


def test_a_bug_is_told_in_two_lines_and_its_traceback_is_in_the_log(
    state: World, open_terminal: Open, places: Places
) -> None:
    terminal = open_terminal(before=CRASH)
    assert terminal.wait() == 1
    assert terminal.is_as_before
    assert "a bug" in terminal.seen and "console.log" in terminal.seen
    assert b"Traceback" not in terminal.sent and b"hunter2" not in terminal.sent
    assert b"\x1b]0;owned" not in terminal.sent
    log = (places.state_dir / "console.log").read_text()
    assert "Traceback" in log and "a bug" in log and "hunter2" not in log


def test_a_terminal_that_stops_reading_holds_nothing_up_and_is_drawn_anew(
    state: World, open_terminal: Open
) -> None:
    terminal = open_terminal()
    terminal.until("dummy-1")
    # More than a terminal's buffer and Textual's queue hold: each of these changes is drawn if it is read.
    for number in range(400):
        terminal.resize(100 + number % 20, 40)
        sweeps.set_state(
            state.database, "dummy-1", (SweepState.ACTIVE, SweepState.PAUSED)[number % 2], now=NOW
        )
        time.sleep(0.005)
    terminal.resize(120, 40)
    sweeps.set_concurrency(state.database, "dummy-1", 7, now=NOW)
    terminal.type("2")
    terminal.until("seed 1")
    terminal.type("q")
    assert terminal.wait() == 0
    assert terminal.is_as_before


def test_a_signal_ends_a_console_whose_terminal_does_not_read(state: World, open_terminal: Open) -> None:
    terminal = open_terminal()
    terminal.until("dummy-1")
    for number in range(400):
        terminal.resize(100 + number % 20, 40)
        time.sleep(0.005)
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert terminal.settings_are_as_before


def test_a_console_ends_with_its_terminal(state: World, open_terminal: Open) -> None:
    """As behind nohup: the hang-up itself is not seen."""
    terminal = open_terminal(before="import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    terminal.until("dummy-1")
    terminal.hang_up()
    assert terminal.process.wait(PATIENCE_SECONDS) != 0


def test_what_is_typed_in_one_burst_goes_into_the_field_that_its_first_key_opens(
    state: World, open_terminal: Open
) -> None:
    """Otherwise `:runs show 1` would relaunch something and open the overview."""
    terminal = open_terminal()
    terminal.until("dummy-1")
    terminal.type(":sweep show dummy-1\r")
    terminal.until("seed 1")
    terminal.type("/no such competition")
    terminal.until("no such competition")
    # The digit behind Esc is a key of its own, even where both arrive as one.
    terminal.type("\x1b1")
    terminal.until("needs you")
    terminal.type("q")
    assert terminal.wait() == 0
