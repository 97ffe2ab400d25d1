"""Replace secret values by a mark: in a stream that comes in any pieces, in files, and in the engine's texts.

Standard library only, because it is copied into container images.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from mlebench_console.environment.container.trees import TreeEntry, open_file, walk

MARK = "[secret]"
# Shorter values are words or numbers that occur in any text: replacing them would hide nothing.
SHORTEST = 6
# For each folder. A day's log of an agent has some megabytes, which takes less than a second; a gigabyte takes about
# one. For two folders it is less than a runner waits before it ends an overdue attempt.
REDACTION_SECONDS = 25.0
_MOST_FAILURES = 5
_CUT = "..."
_BLOCK = 4 << 20

Clock = Callable[[], float]


def worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values that are long enough to be secrets, each once, longer ones first."""
    return tuple(sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True))


class StreamRedactor:
    """Removes secrets from a stream; what may be the beginning of one is held back until the next piece."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = [value.encode() for value in worth_hiding(values)]
        self._pattern = re.compile(b"|".join(map(re.escape, self._values)))
        self._firsts = {value[0] for value in self._values}
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Return the redacted text of the next piece, as far as it can be decided yet."""
        if not self._values:
            return data
        text, settled, place = self._held + data, bytearray(), 0
        while True:
            waiting = self._beginning(text, place)
            found = self._pattern.search(text, place)
            # A value that may be the beginning of a longer one is held back as well.
            if found is None or found.start() >= waiting:
                break
            settled += text[place : found.start()] + MARK.encode()
            place = found.end()
        self._held = text[waiting:]
        return bytes(settled + text[place:waiting])

    def rest(self) -> bytes:
        """Return the rest, since nothing follows."""
        held, self._held = self._held, b""
        return self._pattern.sub(MARK.encode(), held) if self._values else held

    def _beginning(self, text: bytes, place: int) -> int:
        """Return where a value begins that the end of the text may cut off; the text's end if there is none."""
        longest = len(self._values[0])
        for start in range(max(place, len(text) - longest + 1), len(text)):
            if text[start] not in self._firsts:
                continue
            tail = text[start:]
            if any(len(tail) < len(value) and value.startswith(tail) for value in self._values):
                return start
        return len(text)


def redacted(content: bytes, values: Iterable[str]) -> bytes:
    """Return a whole content with a mark in place of each secret."""
    redactor = StreamRedactor(values)
    return redactor.feed(content) + redactor.rest()


def redacted_text(text: str, values: Iterable[str]) -> str:
    """Return a text with a mark in place of each secret."""
    return redacted(text.encode(), values).decode("utf-8", "replace")


def redact_files(
    folder: Path, values: Iterable[str], *, seconds: float = REDACTION_SECONDS, clock: Clock = time.monotonic
) -> list[str]:
    """Remove secrets from all files below a folder, which nobody may be writing any more.

    Returns:
        What could not be searched or replaced, one line each and a few at most; a last line counts the others.
    """
    hidden = [value.encode() for value in worth_hiding(values)]
    if not hidden:
        return []
    failures: list[str] = []
    more = 0

    def refused(place: str, error: OSError) -> None:
        nonlocal more
        if len(failures) < _MOST_FAILURES:
            failures.append(f"{place!r} may hold a secret: {error.strerror or error}")
        else:
            more += 1

    give_up = clock() + seconds
    search = _Search(hidden, lambda: clock() > give_up)
    for entry in walk(folder, refused):
        # Only regular files are collected, and opening a pipe would block.
        if stat.S_ISREG(entry.status.st_mode):
            try:
                search.redact(entry)
            except _OutOfTime:
                failures.append(
                    f"{entry.place!r} and what follows may hold a secret: searching took over {seconds:g} s"
                )
                break
            except OSError as error:
                refused(entry.place, error)
    return [*failures, f"{more} more may hold a secret"] if more else failures


class _OutOfTime(Exception):
    """Searching for secrets has used up its time."""


class _Search:
    """Searches files for secrets and replaces those that contain one; holes in files are skipped."""

    def __init__(self, hidden: list[bytes], is_over: Callable[[], bool]) -> None:
        self._hidden = hidden
        self._overlap = len(hidden[0]) - 1  # the longest comes first
        self._is_over = is_over

    def redact(self, entry: TreeEntry) -> None:
        """Replace a file that contains a secret by one without secrets.

        Raises:
            OSError: it can't be read or replaced.
            _OutOfTime: the time is used up.
        """
        if self._is_over():
            raise _OutOfTime
        source = open_file(entry)
        try:
            if self._is_found_in(source):
                self._replace(entry, source)
        finally:
            os.close(source)

    def _is_found_in(self, source: int) -> bool:
        for start, end in _extents(source):
            before = b""
            for block in self._blocks(source, start, end):
                text = before + block
                if any(value in text for value in self._hidden):
                    return True
                before = text[-self._overlap :]
        return False

    def _replace(self, entry: TreeEntry, source: int) -> None:
        # A new file instead of writing in place: the file may have another hard link outside the folder.
        name = f".{secrets.token_hex(8)}.partial"
        found, folder = os.fstat(source), os.fstat(entry.folder)
        if not folder.st_mode & stat.S_IWUSR and folder.st_uid == os.geteuid():
            os.fchmod(entry.folder, stat.S_IMODE(folder.st_mode) | stat.S_IWUSR)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        sink = os.open(name, flags, 0o600, dir_fd=entry.folder)
        try:
            with os.fdopen(sink, "wb", closefd=False) as stream:
                shift = 0
                for start, end in _extents(source):
                    stream.seek(start + shift)
                    redactor = StreamRedactor([value.decode() for value in self._hidden])
                    for block in self._blocks(source, start, end):
                        stream.write(redactor.feed(block))
                    stream.write(redactor.rest())
                    shift = stream.tell() - end
                stream.truncate(found.st_size + shift)
            os.fchmod(sink, stat.S_IMODE(found.st_mode))
            os.rename(name, entry.name, src_dir_fd=entry.folder, dst_dir_fd=entry.folder)
        except BaseException:
            os.unlink(name, dir_fd=entry.folder)
            raise
        finally:
            os.close(sink)

    def _blocks(self, source: int, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            if self._is_over():
                raise _OutOfTime
            block = os.pread(source, min(_BLOCK, end - start), start)
            if not block:
                return
            yield block
            start += len(block)


def _extents(file: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a file that have data; holes were never written."""
    end, size = 0, os.fstat(file).st_size
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole follows
                return
            raise
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


class TextRedactor:
    """Removes secrets that agents were given from texts; it keeps their values in memory only."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()

    def learn(self, names: Iterable[str], operator: Mapping[str, str]) -> None:
        """Add the values of the operator's variables with these names."""
        self._values = worth_hiding((*self._values, *(operator.get(name, "") for name in names)))

    def clean(self, text: str) -> str:
        """Return the text with a mark in place of each secret, also of one that is cut off by `...` after a part."""
        for value in self._values:
            parts = text.replace(value, MARK).split(_CUT)
            for number, part in enumerate(parts[:-1]):
                lengths = range(len(value) - 1, SHORTEST - 1, -1)
                length = next((length for length in lengths if part.endswith(value[:length])), 0)
                parts[number] = part[: len(part) - length] + (MARK if length else "")
            text = _CUT.join(parts)
        return text
