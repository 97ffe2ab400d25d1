"""The log of a background process: its standard error, which may lie on a disk that is full."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress

from foundation.clock import iso

# Writes to the log: what happened, and the error where there was one.
Log = Callable[[str, BaseException | None], None]


def write_log(text: str) -> None:
    """Write a line, or several, after the time; a log that can't be written must not end the work."""
    with suppress(OSError):
        sys.stderr.write(f"{iso(time.time())} {text.rstrip()}\n")
        sys.stderr.flush()
