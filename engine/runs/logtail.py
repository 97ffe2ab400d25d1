"""The last lines of an agent's log, for telling why it ended; an agent may have printed anything."""

from __future__ import annotations

from pathlib import Path

from environment.runlog import log_parts
from foundation import files

_BYTES = 64 << 10
_LINES = 200


def last_lines(log: Path) -> str:
    """Read at most the last 200 lines of the last 64 KiB; empty when there is no log."""
    parts = log_parts(log)
    if not parts:
        return ""
    with files.reading_untrusted(parts[-1].path) as stream:
        stream.seek(max(0, parts[-1].length - _BYTES))
        content = stream.read(_BYTES)
    text = content.decode("utf-8", "replace").replace("\r", "\n")
    return "\n".join(text.split("\n")[-_LINES:])
