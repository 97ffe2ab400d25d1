"""A full-screen program in a pseudo-terminal, with its output, its resource usage and its response times."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE_SECONDS = 60.0


class Terminal:
    """A program that is running in a terminal of 120x40; everything it sends is read by a thread."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            arguments,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self._reading, self._ended = threading.Event(), threading.Event()
        self._reading.set()
        self._news = threading.Condition()
        self._tail, self._at = b"", 0.0
        self.sent = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def cpu_seconds(self) -> float:
        """Its processor time in seconds."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def peak_memory(self) -> int:
        """Its peak memory in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._ours, text.encode())

    def until(self, marker: bytes) -> float:
        """Wait until something is drawn that was not looked for before; the time at which it was."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        with self._news:
            while marker not in self._tail:
                if not self._news.wait(give_up - time.monotonic()):
                    raise TimeoutError(f"{marker!r} was not drawn: {self._tail[-2000:]!r}")
            self._tail = self._tail[self._tail.index(marker) + len(marker) :]
            return self._at

    def forget(self) -> None:
        """Ignore what was drawn so far."""
        with self._news:
            self._tail = b""

    def answer_to(self, key: str) -> float:
        """Press a key and wait for the first bytes that come of it; the seconds between."""
        with self._news:
            before = self.sent
            began = time.perf_counter()
            self.type(key)
            while self.sent == before:
                if not self._news.wait(PATIENCE_SECONDS):
                    raise TimeoutError(f"{key!r} was not answered")
            return self._at - began

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Read nothing for a while, as a terminal with a lost connection."""
        self._reading.clear()
        yield
        self._reading.set()

    def close(self) -> None:
        """End it."""
        self._ended.set()
        self._reading.set()
        self._process.kill()
        self._process.wait()
        self._thread.join()
        os.close(self._ours)

    def _read(self) -> None:
        while not self._ended.is_set():
            self._reading.wait()
            if not select.select([self._ours], [], [], 0.05)[0]:
                continue
            try:
                part = os.read(self._ours, 1 << 16)
            except OSError:  # the program has ended
                return
            with self._news:
                self._at = time.perf_counter()
                self.sent += len(part)
                self._tail = (self._tail + part)[-(1 << 20) :]
                self._news.notify_all()
