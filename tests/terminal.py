"""A real terminal for tests: the program runs in tmux, from which the screen is read."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 90.0


class Terminal:
    """A tmux server with one shell, in a window of a given size."""

    def __init__(self, tmux: str, folder: Path, *, columns: int, lines: int) -> None:
        self._command = [tmux, "-S", str(folder / "tmux.socket"), "-f", "/dev/null"]
        self._do(
            "new-session", "-d", "-x", str(columns), "-y", str(lines), "env -u COLUMNS -u LINES PS1='$ ' sh"
        )

    def type(self, line: str) -> None:
        """Type a line and press Enter."""
        self._do("send-keys", "-l", line)
        self._do("send-keys", "Enter")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._do("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        """Resize the window."""
        self._do("resize-window", "-x", str(columns), "-y", str(lines))

    def seen(self) -> str:
        """Return what is on the screen now."""
        return self._do("capture-pane", "-p")

    def title(self) -> str:
        """Return the terminal's title."""
        return self._do("display-message", "-p", "#{pane_title}").strip()

    def wait_for(self, *texts: str) -> str:
        """Wait until the screen shows all of these."""
        return self.wait_until(
            lambda seen: all(text in seen for text in texts), " and ".join(map(repr, texts))
        )

    def wait_until(self, holds: Callable[[str], bool], what: str) -> str:
        """Wait until the screen meets a condition."""
        give_up = time.monotonic() + PATIENCE
        while not holds(seen := self.seen()):
            assert time.monotonic() < give_up, f"the screen never showed {what}:\n{seen}"
            time.sleep(0.05)
        return seen

    def close(self) -> None:
        """End the server and everything in it."""
        self._do("kill-server")

    def _do(self, *arguments: str) -> str:
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True, check=True)
        return done.stdout
