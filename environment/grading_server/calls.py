"""How often an agent may ask, and the record of its asking."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path


class RateLimit:
    """So many calls in a burst, one more each time the minute's share has passed."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._burst = float(per_minute)
        self._left = self._burst
        self._at: float | None = None
        self._lock = threading.Lock()

    def wait_seconds(self, now: float) -> float:
        """Take a call and tell 0, or tell how long to wait for one."""
        with self._lock:
            if self._at is not None:
                self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
            self._at = now
            if self._left >= 1:
                self._left -= 1
                return 0.0
            return (1 - self._left) / self._per_second


class CallRecord:
    """One line a checked upload in `validations.jsonl`: when, how many bytes, valid or not; no content."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def add(self, size: int, valid: bool | None) -> None:
        """Append a line in one write, so that lines of several threads do not mix."""
        if self._path is None:
            return
        line = json.dumps({"time": round(time.time(), 3), "bytes": size, "valid": valid}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
