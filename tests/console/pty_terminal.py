"""A console in a pseudo-terminal of its own: every byte that it sends, and what a terminal emulator makes of them."""

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
from collections.abc import Callable
from pathlib import Path

import pyte

PATIENCE_SECONDS = 60.0
COLUMNS, LINES = 120, 40
# What the program does with the errors of the console is seen too.
PROGRAM = """
import sys
from mlebench_console.console.cli import common, program
{before}
sys.exit(program.run(sys.argv[1:]))
"""


class PtyTerminal:
    """A console and the terminal that it draws on.

    Args:
        folder: below which state, data and configuration are.
        screen: where it opens.
        before: Python to be run in its process first.
    """

    def __init__(self, folder: Path, screen: str, *, before: str = "") -> None:
        # The slave side stays open here, so that its settings can be read when the console has ended.
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.settings_before = termios.tcgetattr(self.slave)
        places = [f"--{name}-dir={folder / name}" for name in ("state", "data")]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                PROGRAM.format(before=before),
                *places,
                f"--config={folder / 'config.toml'}",
                f"--screen={screen}",
            ],
            pass_fds=(self.slave,),
            # It must be the controlling terminal, or neither a new size nor a hang-up would be told.
            preexec_fn=lambda: os.login_tty(self.slave),
            env=os.environ
            | {
                "COLORTERM": "truecolor",
                "TERM": "xterm-256color",
                "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            },
        )
        self.sent = b""
        self.screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self.screen)

    @property
    def seen(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, holds: str | Callable[[], bool]) -> None:
        """Read until a text is seen, or until something holds."""
        true: Callable[[], bool] = (lambda: holds in self.seen) if isinstance(holds, str) else holds
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not true():
            assert time.monotonic() < give_up, f"waited in vain for {holds}\n{self.seen}"
            self.read()

    def read(self) -> bool:
        """Read what there is, waiting a little for it; tells whether there was anything."""
        if not select.select([self.master], [], [], 0.1)[0]:
            return False
        part = os.read(self.master, 65536)
        self.sent += part
        # pyte does not know the private key protocol; it need not.
        self._stream.feed(part.replace(b"\x1b[>25u", b"").replace(b"\x1b[<u", b""))
        return True

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.master, text.encode())

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal larger or smaller."""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def wait(self) -> int:
        """Read until the console has ended; its exit code."""
        self.until(lambda: self.process.poll() is not None)
        while self.read():
            pass
        return self.process.returncode

    @property
    def settings_are_as_before(self) -> bool:
        """Whether the terminal has the settings that it had, whatever was written to it."""
        return self.settings_before == termios.tcgetattr(self.slave)

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal has its settings, its normal screen and its cursor again, and no mouse."""
        restored = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1003l", b"\x1b[<u")
        return self.settings_are_as_before and all(
            self.sent.rfind(sequence) > self.sent.rfind(b"\x1b[?1049h") for sequence in restored
        )

    def hang_up(self) -> None:
        """Take the terminal away."""
        for descriptor in (self.master, self.slave):
            os.close(descriptor)
        self.master = self.slave = -1

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.master >= 0:
            self.hang_up()
