"""A Textual app that gets along with its terminal, whatever that does.

It leaves the terminal as it was on every way out, and no terminal can hold it up: one that is slow gets fewer frames,
one that stops reading gets none until it reads again, and of every frame only what differs is sent (`frames`). Keys
that come in bursts, as over a slow link, are taken in their order: what is typed behind a key belongs where that key
leads. It leans on how the pinned version of Textual writes; `tests/console/tui/test_terminal.py` and
`test_type_ahead.py` hold it to what that is for.
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

from console.tui.frames import TerminalContent
from foundation.problems import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import RichCast
    from textual.binding import Keymap
    from textual.dom import DOMNode
    from textual.driver import Driver
    from textual.screen import Screen

# Then Textual speaks to a browser by way of the parent process, and there is nobody to speak to without it.
IN_BROWSER = "TEXTUAL_DRIVER" in os.environ
# A field that is not there by then will not come; what follows is a key like any other.
_FIELD_SECONDS = 5.0
_LOOK_SECONDS = 0.002
_QUICK_LOOKS = 50
# Textual gives letters to a field at once, but what other keys do only once they have gone through all ancestors of
# what has the focus; then what that posts of it, such as that a line was opened, goes the same way.
_PASSES = 2
# A frame is up to three writes; more than that waiting means that the terminal has not read the last frame yet.
_MOST_WAITING = 3
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
# What a terminal's keyboard sends while another program has the terminal is meant for that program.
_KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
# Behind Esc these begin sequences, or are how terminals send Ctrl with an arrow; all others are keys of their own.
_NOT_BEHIND_ESC = frozenset("[OPX]^_bf")
# How long a terminal may take to read the last output.
_PATIENCE_SECONDS = 2.0
# No mouse, no focus events, no pasting in brackets, no key protocol; the normal screen and its cursor.
_RESTORING = b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u\x1b[?1049l\x1b[?25h"


class _KeyParser(XTermParser):
    """Takes Esc and Enter, a letter, digit or sign behind it for two keys, even where they arrive together.

    Textual takes them for one key with Alt, for `¡` and its like, or for `^` and Enter. Over a slow link any two keys
    arrive together.
    """

    bound_with_alt: frozenset[str] = frozenset()

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if len(sequence) == 2 and sequence[0] == "\x1b" and self._is_key(sequence[1]):
            yield events.Key("escape", "\x1b")
            sequence = sequence[1]
        yield from super()._sequence_to_key_events(sequence, alt)

    def _is_key(self, letter: str) -> bool:
        is_typed = letter.isascii() and letter.isprintable() and letter not in _NOT_BEHIND_ESC
        name = "enter" if letter == "\r" else letter
        return (is_typed or name == "enter") and f"alt+{name}" not in self.bound_with_alt


class TerminalApp(App[str]):
    """An app in a terminal.

    Attributes:
        failure: the error that ended the app, for whoever ran it; nothing of it is drawn.
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

    # The terminal, to its end.

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has yet to read what was drawn before."""
        writer = getattr(self._driver, "_writer_thread", None)
        return writer is not None and writer._queue.qsize() > _MOST_WAITING

    def hold_terminal(self) -> None:
        """End in order when a signal asks for it."""
        if self.is_headless:
            return
        for number in _ENDING_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, partial(self.leave, 128 + number))

    def show_program(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Leave the terminal to another program until it ends.

        Raises:
            SuspendNotSupported: there is no terminal that it could have.
        """
        came: list[int] = []
        # Not ignored, which the program would inherit: handlers it does not.
        handlers: dict[int, Callable[[int, Any], object]] = {
            **dict.fromkeys(_ENDING_SIGNALS, lambda number, _frame: came.append(number)),
            **dict.fromkeys(_KEYBOARD_SIGNALS, lambda _number, _frame: None),
        }
        with self.suspend():
            # By this the event loop would hear of signals, and would end the app by them.
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
        """Keep the focus where it is while the operator looks at another window."""
        event.prevent_default()

    def leave(self, code: int = 0) -> None:
        """End the app; if the terminal reads no more, the process ends without its last output."""
        if self._giving_up is None and not self.is_headless:
            self._giving_up = threading.Timer(_PATIENCE_SECONDS, self._give_up, (code,))
            self._giving_up.daemon = True
            self._giving_up.start()
        self.exit(return_code=code)

    def left(self) -> None:
        """Know that the terminal is as it was, so that the process need not be ended by force."""
        if self._giving_up is not None:
            self._giving_up.cancel()

    def catch_up(self) -> None:
        """Draw everything once more when the terminal, which had missed frames, reads again; end when it is gone."""
        if IN_BROWSER and os.getppid() != self._started_by:
            self.exit()
        writer = getattr(self._driver, "_writer_thread", None)
        if writer is not None and not writer.is_alive():
            self.leave(1)  # the terminal is gone
        elif self._missed_frames and not self.is_behind:
            self._missed_frames = False
            self.screen.refresh()

    def to_terminal(self, sequence: str) -> None:
        """Send a control sequence to the terminal, past what is drawn; one that is behind does without."""
        if self._driver is not None and not self.is_behind:
            self._driver.write(sequence)

    def bell(self) -> None:
        """Ring, unless the terminal is behind."""
        self.to_terminal("\a")

    def panic(self, *_renderables: Any) -> None:
        """End because of an error, which is kept for whoever ran the app."""
        self._fail(self._exception or EnvironmentProblem("the terminal can't be read any more"))

    def _fatal_error(self) -> None:
        self._fail(self._exception or sys.exc_info()[1])

    def _fail(self, error: BaseException | None) -> None:
        # Textual would draw the traceback with all variables: what agents wrote, and secrets.
        self.failure = self.failure or error
        self._return_code = 1
        self._close_messages_no_wait()

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        # Writing to a terminal that does not read would hold the event loop once 30 writes are waiting.
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
        """Send what of a frame the terminal does not show yet."""
        width, height = self.size
        segments = self.console.render(cast("RichCast", frame))
        # As Textual does where it cannot tell: without any the cursor, which is reversed, would not be seen.
        colours = self.console._color_system or ColorSystem.TRUECOLOR
        text = self._content.changes(segments, width, height, colours)
        if text:
            x, y = self.screen.outer_size.clamp_offset(self.cursor_position)
            self._begin_update()
            driver.write(f"{text}\x1b[{y + 1};{x + 1}H")
            self._end_update()
            driver.flush()

    def action_redraw(self) -> None:
        """Draw everything anew, as after somebody else has written on the terminal."""
        self._content.forget()
        self.screen.refresh()

    def _resume_signal(self) -> None:
        # Another program, or the shell, had the terminal.
        self._content.forget()
        super()._resume_signal()

    def _give_up(self, code: int) -> None:
        # The terminal may be gone, or not reading.
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
        """Return the driver of this terminal, whose parser keeps Esc and what follows it apart."""
        driver = super().get_driver_class()
        module = sys.modules[driver.__module__]
        if hasattr(module, "XTermParser"):
            setattr(module, "XTermParser", _KeyParser)  # noqa: B010 it is the module's own name for it
        return driver

    def set_keymap(self, keymap: Keymap) -> None:
        """Bind keys anew; what is bound with Alt stays one key."""
        _KeyParser.bound_with_alt = frozenset(key for keys in keymap.values() for key in keys.split(","))
        super().set_keymap(keymap)

    def opens_field(self, key: str) -> bool:
        """Whether a key, pressed now, opens a line to type into."""
        raise NotImplementedError

    @property
    def is_ending(self) -> bool:
        """Whether screens are being closed or are gone already, so that nothing may be shown any more."""
        return not (self.is_running and self.screen_stack)

    def takes_key(self, key: str) -> bool:  # noqa: ARG002 an app may let some keys through at any time
        """Whether what is seen is there as far as a key needs it."""
        return True

    async def on_event(self, event: events.Event) -> None:
        """Take an event, or hold it back if it is a key behind another that may yet lead somewhere else."""
        if isinstance(event, events.Key) and self.is_ending:
            return
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._held_keys is not None:
            self._held_keys.append(event)
        elif self._is_typing() and event.is_printable:
            await super().on_event(event)
        else:
            # Not here: what a key does are messages that wait behind this event.
            self._held_keys = deque((event,))
            self.run_worker(self._take_held_keys(self._held_keys))

    async def _take_held_keys(self, held: deque[events.Key]) -> None:
        """Take keys in their order, also those that come meanwhile, each once all is done that the last one does."""
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
        """Wait until a widget has done what it had to do before, unless it is going."""
        passed = asyncio.Event()
        if node.is_running and node.call_later(passed.set):
            await self._until(lambda: passed.is_set() or not node.is_running)

    async def _until(self, holds: Callable[[], bool]) -> None:
        give_up = asyncio.get_running_loop().time() + _FIELD_SECONDS
        looks = 0
        while not self.is_ending and not holds() and asyncio.get_running_loop().time() < give_up:
            # Most is done within some turns of the event loop.
            await asyncio.sleep(0 if looks < _QUICK_LOOKS else _LOOK_SECONDS)
            looks += 1

    def _is_typing(self) -> bool:
        # Not every console ever opens a field, so its class need not be imported to ask for it.
        return self.focused is not None and "Input" in self.focused._css_type_names


def _terminal() -> int:
    """Return the file descriptor that Textual draws on."""
    return sys.__stderr__.fileno() if sys.__stderr__ is not None else 2
