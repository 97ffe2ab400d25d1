"""Secrets' values replaced by a mark: in a stream that comes in any pieces, in files, and in the engine's texts.

Standard library only, because it is copied into container images.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

MARK = "[secret]"
# Shorter values are words or numbers that stand in any text: taking them out would hide nothing.
SHORTEST = 6
# What is larger is data: a day's log of an agent has some megabytes.
MOST_FILE_BYTES = 64 << 20


def worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values that are long enough to be secrets, each once, longer ones first."""
    return tuple(sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True))


class StreamRedactor:
    """Takes secrets out of a stream; what may be the beginning of one waits for what follows it."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = [value.encode() for value in worth_hiding(values)]
        self._pattern = re.compile(b"|".join(map(re.escape, self._values)))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next piece and return what is settled."""
        if not self._values:
            return data
        text, settled, place = self._held + data, bytearray(), 0
        while True:
            waiting = self._beginning(text, place)
            found = self._pattern.search(text, place)
            # A value that is itself the beginning of a longer one waits as well.
            if found is None or found.start() >= waiting:
                break
            settled += text[place : found.start()] + MARK.encode()
            place = found.end()
        self._held = text[waiting:]
        return bytes(settled + text[place:waiting])

    def rest(self) -> bytes:
        """Return what still waits when nothing follows."""
        held, self._held = self._held, b""
        return self._pattern.sub(MARK.encode(), held) if self._values else held

    def _beginning(self, text: bytes, place: int) -> int:
        """Find where the first value begins that the text breaks off in; its end when it breaks off in none."""
        longest = len(self._values[0])
        for start in range(max(place, len(text) - longest + 1), len(text)):
            tail = text[start:]
            if any(len(tail) < len(value) and value.startswith(tail) for value in self._values):
                return start
        return len(text)


def redact_files(folder: Path, values: Iterable[str]) -> list[str]:
    """Take secrets out of all files below a folder, of which nobody may be writing any more.

    Returns:
        What could not be looked through or replaced, one line each.
    """
    hidden = [value.encode() for value in worth_hiding(values)]
    failures = []
    pattern = re.compile(b"|".join(map(re.escape, hidden)))
    for parent, _folders, names in os.walk(folder) if hidden else ():
        for name in names:
            try:
                _redact_file(Path(parent, name), pattern)
            except OSError as error:
                failures.append(f"{name!r} may hold a secret: {error.strerror}")
    return failures


def _redact_file(path: Path, pattern: re.Pattern[bytes]) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):  # nothing else is handed on, and opening a pipe would wait
        return
    with path.open("rb") as stream:
        found = os.fstat(stream.fileno())
        content = stream.read(MOST_FILE_BYTES) if found.st_size <= MOST_FILE_BYTES else b""
    cleaned = pattern.sub(MARK.encode(), content)
    if cleaned != content:
        # By another name first: the file may have a second one, outside of the folder.
        partial = path.with_name(f".{path.name[:200]}.partial")
        partial.write_bytes(cleaned)
        partial.chmod(stat.S_IMODE(found.st_mode))
        partial.replace(path)


class TextRedactor:
    """Takes secrets that agents were given out of texts; holds their values in memory alone."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()

    def learn(self, names: Iterable[str], operator: Mapping[str, str]) -> None:
        """Remember the values of the operator's variables of these names."""
        self._values = worth_hiding((*self._values, *(operator.get(name, "") for name in names)))

    def clean(self, text: str) -> str:
        """Put a mark where a secret stood."""
        for value in self._values:
            text = text.replace(value, MARK)
        return text
