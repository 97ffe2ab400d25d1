"""Requests and tokens a minute of one key, shared by all gateways of a host, fairly between their runs.

They meet in a small file in memory, under a lock that the kernel drops with its holder. Nothing in it is held by
anybody: what is taken is paid back by time alone, so that a killed gateway leaves no permit behind, and one that waited
is forgotten after two seconds.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

# Of a minute's worth, what may go out at once after a pause: 10 seconds.
_BURST = 1 / 6
_ALIVE_SECONDS = 2.0
_LEAST_WAIT, _LONGEST_WAIT = 0.02, 0.5
_MAX_BYTES = 1 << 20

Result = TypeVar("Result")


class _Run(msgspec.Struct):
    """A run in the file.

    Attributes:
        served: minutes of the key's quota that it was given, from where its waiting began.
        seen_at: when it last asked.
    """

    served: float
    seen_at: float
    waits: bool


class _Bucket(msgspec.Struct):
    """The file: what may be sent now, and whose turn it is.

    Attributes:
        turn: how much the run had been served that was served last; who has not waited begins there.
    """

    at: float
    requests: float
    tokens: float
    turn: float = 0.0
    runs: dict[str, _Run] = msgspec.field(default_factory=dict)


class SharedRate:
    """One run's share of what its key may send; of the runs that wait the one that was served least is next."""

    def __init__(
        self,
        path: Path,
        run: str,
        *,
        requests: float | None,
        tokens: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Meet the others.

        Args:
            path: the file; the same for all who use the key.
            run: what this one is called there.
            requests: a minute; None for any number.
            tokens: likewise.
            clock: the same for all processes of a host, and never set back.
        """
        self._path = path
        self._run = run
        self._requests = requests
        self._tokens = tokens
        self._clock = clock

    def take(self, tokens: int) -> float | None:
        """Take what a call needs; returns None when it may be sent, else after how many seconds to ask again."""

        def change(bucket: _Bucket, now: float) -> float | None:
            own = bucket.runs.setdefault(self._run, _Run(bucket.turn, now, False))
            if not own.waits:
                own.served = max(own.served, bucket.turn)  # time in which nothing was asked earns nothing
            own.seen_at = now
            wait = self._seconds_until(bucket, tokens)
            others = (run for name, run in bucket.runs.items() if run.waits and name != self._run)
            is_next = all(own.served <= other.served for other in others)
            own.waits = wait > 0 or not is_next
            if own.waits:
                return min(max(wait, _LEAST_WAIT), _LONGEST_WAIT)
            bucket.requests -= 1 if self._requests is not None else 0
            bucket.tokens -= tokens if self._tokens is not None else 0
            bucket.turn = own.served
            own.served += self._minutes(1, tokens)
            return None

        busy: float | None = _LEAST_WAIT
        return self._change(change, busy=busy)

    def settle(self, taken: int, used: int) -> bool:
        """Correct what a call has taken by what it has used; False where that has to be tried again."""

        def change(bucket: _Bucket, _now: float) -> bool:
            bucket.tokens += taken - used if self._tokens is not None else 0
            own = bucket.runs.get(self._run)
            if own is not None:
                own.served += self._minutes(0, used) - self._minutes(0, taken)
            return True

        return self._change(change, busy=False)

    def leave(self) -> bool:
        """Wait no longer, so that nobody waits for this one; False where that has to be tried again."""

        def change(bucket: _Bucket, _now: float) -> bool:
            own = bucket.runs.get(self._run)
            if own is not None:
                own.waits = False
            return True

        return self._change(change, busy=False)

    def _seconds_until(self, bucket: _Bucket, tokens: int) -> float:
        """Compute when there is enough; a call of more tokens than go out at once waits for these and leaves a debt."""
        wait = 0.0
        if self._requests is not None:
            wait = max(wait, (1 - bucket.requests) * 60 / self._requests)
        if self._tokens is not None:
            needed = min(float(tokens), self._tokens * _BURST)
            wait = max(wait, (needed - bucket.tokens) * 60 / self._tokens)
        return wait

    def _minutes(self, requests: int, tokens: int) -> float:
        of_requests = requests / self._requests if self._requests else 0.0
        return max(of_requests, tokens / self._tokens if self._tokens else 0.0)

    def _change(self, change: Callable[[_Bucket, float], Result], *, busy: Result) -> Result:
        """Change the file under its lock; returns `busy` where another process holds that, which is stopped perhaps."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return busy
            now = self._clock()
            bucket = self._refilled(os.pread(descriptor, _MAX_BYTES, 0), now)
            result = change(bucket, now)
            content = msgspec.json.encode(bucket)
            os.pwrite(descriptor, content, 0)
            os.ftruncate(descriptor, len(content))
            return result
        finally:
            os.close(descriptor)

    def _refilled(self, content: bytes, now: float) -> _Bucket:
        most_requests = max(1.0, (self._requests or 0.0) * _BURST)
        most_tokens = max(1.0, (self._tokens or 0.0) * _BURST)
        try:
            bucket = msgspec.json.decode(content, type=_Bucket)
        except msgspec.MsgspecError:  # new, or left torn
            return _Bucket(now, most_requests, most_tokens)
        passed = max(0.0, now - bucket.at)
        bucket.at = now
        bucket.requests = min(most_requests, bucket.requests + passed * (self._requests or 0.0) / 60)
        bucket.tokens = min(most_tokens, bucket.tokens + passed * (self._tokens or 0.0) / 60)
        for name, run in list(bucket.runs.items()):
            run.waits = run.waits and now - run.seen_at < _ALIVE_SECONDS
            if not run.waits and run.served <= bucket.turn:
                del bucket.runs[name]  # of whom nothing needs to be remembered
        return bucket
