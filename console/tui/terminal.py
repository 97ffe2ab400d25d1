"""A Textual app that copes with slow, stalled and lost terminals, and handles keys in the order typed.

It restores the terminal on every exit, and no terminal can block it: a slow one gets fewer frames, one that stops
reading gets none until it reads again, and of every frame only the difference is sent (`frames`). Keys that arrive in
bursts, as over a slow link, are handled in order: keys typed after one that opens a screen or field go to that screen
or field. This depends on internals of the pinned version of Textual; `tests/console/tui/test_terminal.py` and
`test_type_ahead.py` test the behaviour.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import termios
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from rich.color import ColorSystem
from textual import events
from textual._compositor import CompositorUpdate
from textual._xterm_parser import XTermParser
from textual.app import App

from mlebench_console.console.tui.frames import TerminalContent
from mlebench_console.foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import RichCast
    from textual.binding import Keymap
    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.screen import Screen

# In a browser Textual communicates through the parent process; when that is gone, the console exits.
IN_BROWSER = "TEXTUAL_DRIVER" in os.environ
# How long keys wait for a field to open; after that they are handled as ordinary keys.
_FIELD_SECONDS = 5.0
_LOOK_SECONDS = 0.002
_QUICK_LOOKS = 50
# Textual passes letters to a field at once, but other keys act only after passing through all ancestors of the focused
# widget; the messages that this posts, such as that a line was opened, then take the same path once more.
_PASSES = 2
# A frame takes up to three writes; if more are waiting, the terminal has not read the last frame yet.
_MOST_WAITING = 3
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# Signals from the keyboard; while another program uses the terminal they are meant for that program.
_KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
# After Esc these begin escape sequences, or stand for Ctrl with an arrow; all others are keys of their own.
_NOT_AFTER_ESC = frozenset("[OPX]^_bf")
# How long the exit waits for the terminal to read the last output.
_PATIENCE_SECONDS = 2.0
# Switches off mouse, focus events, bracketed paste and key protocol; restores the normal screen and its cursor.
_RESTORING = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h"


class _KeyParser(XTermParser):
    """Parses Esc followed by Enter, a letter, a digit or a sign as two keys, even where they arrive together.

    Textual parses them as one key with Alt, as a character such as `¡`, or as `^` and Enter. Over a slow link any two
    keys may arrive together.
    """

    bound_with_alt: frozenset[str] = frozenset()

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if len(sequence) == 2 and sequence[0] == "\x1b" and self._is_key(sequence[1]):
            yield events.Key("escape", "\x1b")
            sequence = sequence[1]
        yield from super()._sequence_to_key_events(sequence, alt)

    def _is_key(self, letter: str) -> bool:
        is_typed = letter.isascii() and letter.isprintable() and letter not in _NOT_AFTER_ESC
        name = "enter" if letter == "\r" else letter
        return (is_typed or name == "enter") and f"alt+{name}" not in self.bound_with_alt


class TerminalApp(App[str]):
    """An app in a terminal.

    Attributes:
        failure: the error that ended the app, for its caller; it is not drawn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failure: BaseException | None = None
        self._missed_frames = False
        self._content = TerminalContent()
        self._attributes = termios.tcgetattr(_terminal()) if os.isatty(_terminal()) else None
        self._giving_up: threading.Timer | None = None
        self._started_by = os.getppid()
        self._held_keys: deque[events.Key] | None = None

    # The terminal and the end of the app.

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not read all earlier output yet."""
        writer = getattr(self._driver, "_writer_thread", None)
        return writer is not None and writer._queue.qsize() > _MOST_WAITING

    def hold_terminal(self) -> None:
        """Handle termination signals by an orderly exit."""
        if self.is_headless:
            return
        for number in _ENDING_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, partial(self.leave, 128 + number))

    def show_program(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run another program in the terminal and wait until it ends.

        Raises:
            SuspendNotSupported: there is no terminal to run it in.
        """
        came: list[int] = []
        # Handlers rather than SIG_IGN: the program would inherit ignored signals, but not handlers.
        handlers: dict[int, Callable[[int, Any], object]] = {
            **dict.fromkeys(_ENDING_SIGNALS, lambda number, _frame: came.append(number)),
            **dict.fromkeys(_KEYBOARD_SIGNALS, lambda _number, _frame: None),
        }
        with self.suspend():
            # Through this descriptor the event loop would receive the signals and end the app.
            loops = signal.set_wakeup_fd(-1)
            before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
            try:
                subprocess.run(command, check=False, env=environment)
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                signal.set_wakeup_fd(loops)
        for number in came:
            self.leave(128 + number)

    def on_app_blur(self, event: events.AppBlur) -> None:
        """Keep the focus while another window is active."""
        event.prevent_default()

    def leave(self, code: int = 0) -> None:
        """End the app; if the terminal doesn't read any more, the process exits without its last output."""
        if self._giving_up is None and not self.is_headless:
            self._giving_up = threading.Timer(_PATIENCE_SECONDS, self._give_up, (code,))
            self._giving_up.daemon = True
            self._giving_up.start()
        self.exit(return_code=code)

    def left(self) -> None:
        """Cancel the forced exit, once the terminal is restored."""
        if self._giving_up is not None:
            self._giving_up.cancel()

    def catch_up(self) -> None:
        """Redraw everything when a terminal that has missed frames reads again; end the app when it is gone."""
        if IN_BROWSER and os.getppid() != self._started_by:
            self.exit()
        writer = getattr(self._driver, "_writer_thread", None)
        if writer is not None and not writer.is_alive():
            self.leave(1)  # the terminal is gone
        elif self._missed_frames and not self.is_behind:
            self._missed_frames = False
            self.screen.refresh()

    def to_terminal(self, sequence: str) -> None:
        """Send a control sequence to the terminal directly; dropped if the terminal is behind."""
        if self._driver is not None and not self.is_behind:
            self._driver.write(sequence)

    def bell(self) -> None:
        """Ring, unless the terminal is behind."""
        self.to_terminal("\a")

    def panic(self, *_renderables: Any) -> None:
        """End the app because of an error, which `failure` keeps for its caller."""
        self._fail(self._exception or EnvironmentProblem("the terminal can't be read any more"))

    def _fatal_error(self) -> None:
        self._fail(self._exception or sys.exc_info()[1])

    def _fail(self, error: BaseException | None) -> None:
        # Textual would print the traceback with the values of all variables, including agents' text and secrets.
        self.failure = self.failure or error
        self._return_code = 1
        self._close_messages_no_wait()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        # Writing to a terminal that does not read would block the event loop once 30 writes are waiting.
        if self.is_behind:
            self._missed_frames = True
        elif (
            isinstance(renderable, CompositorUpdate)
            and self._running
            and not (self._closed or self._batch_count or self.is_headless or self._driver is None)
        ):
            self._send(self._driver, renderable)
        else:
            super()._display(screen, renderable)

    def _send(self, driver: Driver, frame: CompositorUpdate) -> None:
        """Send the parts of a frame that the terminal does not show yet."""
        width, height = self.size
        segments = self.console.render(cast("RichCast", frame))
        # Textual's own default where it can't detect colours: without any, the reversed cursor would be invisible.
        colours = self.console._color_system or ColorSystem.TRUECOLOR
        text = self._content.changes(segments, width, height, colours)
        if text:
            x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
            self._begin_update()
            driver.write(f"{text}\x1b[{y + 1};{x + 1}H")
            self._end_update()
            driver.flush()

    def action_redraw(self) -> None:
        """Redraw everything, for example after another program has written to the terminal."""
        self._content.forget()
        self.screen.refresh()

    def _resume_signal(self) -> None:
        # Another program, or the shell, has used the terminal.
        self._content.forget()
        super()._resume_signal()

    def _give_up(self, code: int) -> None:
        # The terminal may be gone, or may not be reading.
        if self._attributes is not None:
            with suppress(termios.error):
                termios.tcsetattr(_terminal(), termios.TCSANOW, self._attributes)
        os.set_blocking(_terminal(), False)
        with suppress(OSError):
            os.write(_terminal(), _RESTORING)
        os.set_blocking(_terminal(), True)
        os._exit(code)

    # Keys, also in bursts.

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of this terminal, with a parser that separates Esc from the key after it."""
        driver = super().get_driver_class()
        module = sys.modules[driver.__module__]
        if hasattr(module, "XTermParser"):
            setattr(module, "XTermParser", _KeyParser)  # noqa: B010 it is the module's own name for it
        return driver

    def set_keymap(self, keymap: Keymap) -> None:
        """Rebind keys; keys bound with Alt are still parsed as one key."""
        _KeyParser.bound_with_alt = frozenset(key for keys in keymap.values() for key in keys.split(","))
        super().set_keymap(keymap)

    def opens_field(self, key: str) -> bool:
        """Return whether a key, pressed now, opens an input field."""
        raise NotImplementedError

    @property
    def is_ending(self) -> bool:
        """Whether screens are being closed or are closed already, so that nothing may be shown any more."""
        return not (self.is_running and self.screen_stack)

    def takes_key(self, key: str) -> bool:  # noqa: ARG002 an app may let some keys through at any time
        """Return whether the current screen is ready to handle a key."""
        return True

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, or queue it if it is a key typed after one that may still open a screen or field."""
        if isinstance(event, events.Key) and self.is_ending:
            return
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._held_keys is not None:
            self._held_keys.append(event)
        elif self._is_typing() and event.is_printable:
            await super().on_event(event)
        else:
            # Not awaited here: the effects of a key are messages that queue up behind this event.
            self._held_keys = deque((event,))
            self.run_worker(self._take_held_keys(self._held_keys))

    async def _take_held_keys(self, held: deque[events.Key]) -> None:
        """Handle the queued keys in order, also those added meanwhile, each after the effects of the one before."""
        while held:
            event = held[0]
            await self._until(partial(self.takes_key, event.key))
            if self.is_ending:
                return
            held.popleft()
            target = self.focused or self.screen
            is_typing = self._is_typing()
            opens = not is_typing and self.opens_field(event.key)
            await super().on_event(event)
            if opens:
                await self._until(self._is_typing)
            elif not (is_typing and event.is_printable):
                for node in [*target.ancestors_with_self] * _PASSES:
                    await self._passed(node)
        self._held_keys = None

    async def _passed(self, node: DOMNode) -> None:
        """Wait until a widget has processed its earlier messages, unless it is being removed."""
        passed = asyncio.Event()
        if node.is_running and node.call_later(passed.set):
            await self._until(lambda: passed.is_set() or not node.is_running)

    async def _until(self, holds: Callable[[], bool]) -> None:
        give_up = asyncio.get_running_loop().time() + _FIELD_SECONDS
        looks = 0
        while not self.is_ending and not holds() and asyncio.get_running_loop().time() < give_up:
            # Most effects are complete within a few iterations of the event loop.
            await asyncio.sleep(0 if looks < _QUICK_LOOKS else _LOOK_SECONDS)
            looks += 1

    def _is_typing(self) -> bool:
        # Compared by name, so that the class is imported only by consoles that open a field.
        return self.focused is not None and "Input" in self.focused._css_type_names


def _terminal() -> int:
    """Return the file descriptor that Textual draws on."""
    return sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
