"""Recordings of an agent's model calls: written where the order asks for it, and replayed to a later run.

A recording contains what agent and gateway exchanged, without the operator's keys and the run's token. It is as
untrusted as anything else that an agent writes.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from mlebench_console.environment.container.redaction import MARK, worth_hiding
from mlebench_console.foundation import jsonlines

# The most that is kept of one request or answer, and the most that it may take compressed, so that `jsonlines` can
# read the line.
MOST_BYTES = 4 << 20
_MOST_WRITTEN = 1 << 20
# The size from which on no more calls of an attempt are recorded.
MOST_FILE_BYTES = 256 << 20
_SHOWN_CHARACTERS = 60
_LEVEL = 1  # compressing a prompt of 4 MB takes 40 ms, during which the attempt's other calls wait


class Kept(StrEnum):
    """How much of a call is recorded."""

    WHOLE = "whole"
    CUT = "cut"
    NOTHING = "nothing"


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A line of recorded_calls.jsonl.

    Attributes:
        id, at, provider: as in model_calls.jsonl.
        ended_at: when the answer ended.
        request, answer: as far as they are kept, compressed with zlib; in JSON as base64.
        request_bytes, answer_bytes: their full lengths.
        request_sha256: of the whole request.
        pieces: the lengths of the pieces in which the answer came; of a cut answer they sum up to what is kept.
        is_whole: whether the answer was complete.
        kept: how much of the call is recorded.
    """

    id: str
    at: float
    ended_at: float
    provider: str
    method: str
    path: str
    query: dict[str, str]
    request: bytes
    request_bytes: int
    request_sha256: str
    status: int
    headers: dict[str, str]
    answer: bytes
    answer_bytes: int
    pieces: tuple[int, ...]
    is_whole: bool
    kept: Kept


@dataclass
class Tape:
    """A call while it is recorded: the agent's request, and the answer so far."""

    method: str
    path: str
    query: Mapping[str, str]
    request: bytes
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    answer: bytearray = field(default_factory=bytearray)
    pieces: list[int] = field(default_factory=list)
    answer_bytes: int = 0
    is_whole: bool = False

    def add(self, piece: bytes) -> None:
        """Record a piece of the answer, as far as there is room."""
        self.answer_bytes += len(piece)
        kept = piece[: MOST_BYTES - len(self.answer)]
        if kept:
            self.answer += kept
            self.pieces.append(len(kept))


class Secrets:
    """Secret values, which recordings replace by a mark."""

    def __init__(self, values: Iterable[str]) -> None:
        hidden = [re.escape(value.encode()) for value in worth_hiding(values)]
        self._pattern = re.compile(b"|".join(hidden)) if hidden else None

    def redacted(self, content: bytes) -> bytes:
        """Return the content with a mark in place of each secret."""
        return content if self._pattern is None else self._pattern.sub(MARK.encode(), content)


class Recorder:
    """Writes the recording of an attempt."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self._path = path
        self._secrets = secrets

    def keep(self, tape: Tape, *, id: str, at: float, ended_at: float, provider: str) -> Kept:
        """Record a call that has ended, and return how much of it was kept."""
        request = self._secrets.redacted(tape.request)
        answer, pieces = self._secrets.redacted(bytes(tape.answer)), tape.pieces
        if len(answer) != len(tape.answer):
            pieces = [len(answer)]
        request_kept, request_written = _written(request)
        answer_kept, answer_written = _written(answer)
        is_cut = (
            request_kept < len(request) or answer_kept < len(answer) or len(tape.answer) < tape.answer_bytes
        )
        line = RecordedCall(
            id=id,
            at=at,
            ended_at=ended_at,
            provider=provider,
            method=tape.method,
            path=tape.path,
            query=dict(tape.query),
            request=request_written,
            request_bytes=len(request),
            request_sha256=hashlib.sha256(request).hexdigest(),
            status=tape.status,
            headers=dict(tape.headers),
            answer=answer_written,
            answer_bytes=tape.answer_bytes - len(tape.answer) + len(answer),
            pieces=tuple(_first(pieces, answer_kept)),
            is_whole=tape.is_whole,
            kept=Kept.CUT if is_cut else Kept.WHOLE,
        )
        try:
            if self._path.exists() and self._path.stat().st_size > MOST_FILE_BYTES:
                return Kept.NOTHING
            jsonlines.append(self._path, [msgspec.to_builtins(line)])
        except OSError:
            return Kept.NOTHING  # as on a full disk; the call's line in model_calls.jsonl says so
        return line.kept


class Deviation(Exception):
    """A call is not the next one of the recording; the message says where they differ."""


class Replay:
    """Serves the recorded calls of a run in their order; calls that overlapped may come in any order."""

    def __init__(self, path: Path, secrets: Secrets, *, run_id: int) -> None:
        self._secrets = secrets
        self._of = f"this run replays the model calls of run {run_id}"
        self._left = sorted(read_recording(path), key=lambda call: call.at)
        self._served = 0

    def next(
        self, method: str, provider: str, path: str, query: Mapping[str, str], request: bytes
    ) -> RecordedCall:
        """Return the recorded call that matches a request, and remove it from those left.

        Raises:
            Deviation: the recording has another one next, or none.
        """
        if not self._left:
            raise Deviation(f"{self._of}, which made {self._served:,}; all were served")
        content = self._secrets.redacted(request)
        digest = hashlib.sha256(content).hexdigest()
        first = self._left[0]
        for call in self._left:
            if call.at > first.ended_at:
                break
            same = (call.method, call.provider, call.path, call.query) == (
                method,
                provider,
                path,
                dict(query),
            )
            if same and call.request_sha256 == digest:
                if len(answer_of(call)) < call.answer_bytes:
                    raise Deviation(
                        f"{self._of}; the answer to call {self._served + 1:,} was too long to be recorded"
                    )
                self._left.remove(call)
                self._served += 1
                return call
        requested = f"{method} /{provider}{path}"
        where = _difference(first, requested, query, content)
        raise Deviation(f"{self._of} and deviates at call {self._served + 1:,}: {where}")


def read_recording(path: Path) -> Iterator[RecordedCall]:
    """Yield the calls of a recording, skipping invalid lines."""
    offset, end = -1, 0
    while end > offset:
        offset = end
        lines = jsonlines.read(path, offset)
        end = lines.offset
        for line in lines.values:
            try:
                yield msgspec.convert(line, RecordedCall)
            except msgspec.ValidationError:
                continue


def request_of(call: RecordedCall) -> bytes:
    """Return a call's request, as far as it was kept."""
    return _unpacked(call.request)


def answer_of(call: RecordedCall) -> bytes:
    """Return a call's answer, as far as it was kept."""
    return _unpacked(call.answer)


def pieces_of(call: RecordedCall) -> Iterator[bytes]:
    """Yield the pieces of an answer as they came."""
    content, start = answer_of(call), 0
    for length in call.pieces:
        yield content[start : start + length]
        start += length


def _written(content: bytes) -> tuple[int, bytes]:
    """Compress as much of a content as there is room for, and return how many bytes that is, and the result."""
    kept = min(len(content), MOST_BYTES)
    packed = zlib.compress(content[:kept], _LEVEL)
    while len(packed) > _MOST_WRITTEN:
        kept //= 2
        packed = zlib.compress(content[:kept], _LEVEL)
    return kept, packed


def _unpacked(packed: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(packed, MOST_BYTES)
    except zlib.error:
        return b""  # not written by a recorder, so it need not match any request


def _first(pieces: Iterable[int], length: int) -> Iterator[int]:
    for piece in pieces:
        if length <= 0:
            return
        yield min(piece, length)
        length -= piece


def _difference(recorded: RecordedCall, requested: str, query: Mapping[str, str], content: bytes) -> str:
    expected = f"{recorded.method} /{recorded.provider}{recorded.path}"
    if expected != requested:
        return f"{expected} was recorded, {requested[:200]} is requested"
    if recorded.query != dict(query):
        return f"the query of {expected} differs"
    try:
        before, now = msgspec.json.decode(request_of(recorded)), msgspec.json.decode(content)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return f"the body of {expected} differs"  # the recording is cut
    return _where(before, now, "") or f"the body of {expected} differs"


def _where(before: Any, now: Any, place: str, depth: int = 0) -> str:
    """Describe the first place where two JSON values differ; empty where they are equal."""
    if before == now or depth > 100:
        return ""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            inside = f"{place}.{name}" if place else str(name)
            if name not in before or name not in now:
                return f"{inside[:200]} is {'new' if name in now else 'missing'}"
            if found := _where(before[name], now[name], inside, depth + 1):
                return found
    if isinstance(before, list) and isinstance(now, list):
        for number, (one, other) in enumerate(zip(before, now, strict=False)):
            if found := _where(one, other, f"{place}[{number}]", depth + 1):
                return found
        return f"{place[:200]} has {len(now)} entries instead of {len(before)}"
    start = 0
    if isinstance(before, str) and isinstance(now, str):
        start = next(
            (at for at, (one, other) in enumerate(zip(before, now, strict=False)) if one != other),
            min(len(before), len(now)),
        )
        before, now = before[start:], now[start:]
    at = f", character {start + 1:,}" if start else ""
    return f"{place[:200]}{at}: {_short(before)} was recorded, {_short(now)} is requested"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
