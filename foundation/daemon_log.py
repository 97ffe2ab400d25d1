"""The log of a background process: its standard error, which may be on a full disk."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from mlebench_console.foundation.clock import iso

# Writes an event to the log, with its exception if there was one.
Log = Callable[[str, BaseException | None], None]


def open_log(path: Path, *, anew: bool = False) -> IO[bytes]:
    """Open a log for appending, or truncate it if `anew`; only its owner can read it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | (os.O_TRUNC if anew else 0)
    stream = os.fdopen(os.open(path, flags, 0o600), "ab")
    with suppress(PermissionError):  # it belongs to another user, who decides
        os.fchmod(stream.fileno(), 0o600)
    return stream


def write_log(text: str) -> None:
    """Write text with the time before it; a log that can't be written must not end the work."""
    with suppress(OSError):
        sys.stderr.write(f"{iso(time.time())} {text.rstrip()}\n")
        sys.stderr.flush()
