"""The log of a background process: its standard error, which may lie on a disk that is full."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from foundation.clock import iso


def write_log(text: str) -> None:
    """Write a line, or several, after the time; a log that can't be written must not end the work."""
    with suppress(OSError):
        sys.stderr.write(f"{iso(time.time())} {text.rstrip()}\n")
        sys.stderr.flush()
