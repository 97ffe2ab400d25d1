"""Recordings of an agent's model calls, written where the order asks for it.

A recording contains what agent and gateway exchanged, without the operator's keys and the run's token. It is as
untrusted as anything else that an agent writes.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

import msgspec

from mlebench_console.environment.container.redaction import redacted
from mlebench_console.foundation import jsonlines

# The most that is kept of one request or answer, and the most that it may take compressed, so that `jsonlines` can
# read the line.
MOST_BYTES = 4 << 20
_MOST_WRITTEN = 1 << 20
# The size from which on no more calls of an attempt are recorded.
MOST_FILE_BYTES = 256 << 20
_LEVEL = 1  # compressing a prompt of 4 MB takes 40 ms, during which the attempt's other calls wait


class Kept(StrEnum):
    """How much of a call is recorded."""

    WHOLE = "whole"
    CUT = "cut"
    NOTHING = "nothing"


class RecordedCall(msgspec.Struct, kw_only=True):
    """A call while it is recorded, and then a line of recorded_calls.jsonl.

    Attributes:
        id, at, provider: as in model_calls.jsonl.
        request, answer: as far as they are kept; in the line compressed with zlib, as base64.
        request_bytes, answer_bytes: their full lengths.
        is_whole: whether the answer was complete.
        ended_at: when the answer ended.
        kept: how much of the call is recorded.
    """

    id: str
    at: float
    provider: str
    method: str
    path: str
    query: dict[str, str]
    request: bytes
    request_bytes: int = 0
    status: int = 0
    headers: dict[str, str] = {}
    answer: bytearray = msgspec.field(default_factory=bytearray)
    answer_bytes: int = 0
    is_whole: bool = False
    ended_at: float = 0.0
    kept: Kept = Kept.WHOLE

    def add(self, piece: bytes) -> None:
        """Record a piece of the answer, as far as there is room."""
        self.answer_bytes += len(piece)
        self.answer += piece[: MOST_BYTES - len(self.answer)]


class Recorder:
    """Writes the recording of an attempt, with a mark in place of each secret."""

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        self._path = path
        self._secrets = tuple(secrets)

    def keep(self, call: RecordedCall) -> Kept:
        """Record a call that has ended, and return how much of it was kept."""
        request, answer = redacted(call.request, self._secrets), redacted(bytes(call.answer), self._secrets)
        request_kept, request_written = _written(request)
        answer_kept, answer_written = _written(answer)
        is_cut = (
            request_kept < len(request) or answer_kept < len(answer) or len(call.answer) < call.answer_bytes
        )
        line = msgspec.structs.replace(
            call,
            request=request_written,
            request_bytes=len(request),
            answer=bytearray(answer_written),
            answer_bytes=call.answer_bytes - len(call.answer) + len(answer),
            ended_at=time.time(),
            kept=Kept.CUT if is_cut else Kept.WHOLE,
        )
        try:
            if self._path.exists() and self._path.stat().st_size > MOST_FILE_BYTES:
                return Kept.NOTHING
            jsonlines.append(self._path, [msgspec.to_builtins(line)])
        except OSError:
            return Kept.NOTHING  # as on a full disk; the call's line in model_calls.jsonl says so
        return line.kept


def _written(content: bytes) -> tuple[int, bytes]:
    """Compress as much of a content as there is room for, and return how many bytes that is, and the result."""
    kept = min(len(content), MOST_BYTES)
    packed = zlib.compress(content[:kept], _LEVEL)
    while len(packed) > _MOST_WRITTEN:
        kept //= 2
        packed = zlib.compress(content[:kept], _LEVEL)
    return kept, packed
