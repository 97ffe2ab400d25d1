"""A rate limit of requests and tokens per minute, shared fairly by all gateways of a host that use one key.

The gateways share a small file in memory, under a lock that the kernel releases when its holder dies. It is a token
bucket that refills with time alone, so a killed gateway leaves no permit behind, and one that waited is dropped
after two seconds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mlebench_console.foundation.locks import FileLock

# The share of a minute's quota that may be used at once after a pause: 10 seconds.
_BURST = 1 / 6
_ALIVE_SECONDS = 2.0
_LEAST_WAIT, _LONGEST_WAIT = 0.02, 0.5
_MAX_BYTES = 1 << 20


class _Run(msgspec.Struct):
    """A run in the file.

    Attributes:
        served: minutes of the key's quota that it has used, on the scale of `turn`.
        seen_at: when it last made a request.
    """

    served: float
    seen_at: float
    waits: bool


class _Bucket(msgspec.Struct):
    """The file: the quota that is available now, and the order of the runs.

    Attributes:
        turn: the `served` of the run that was served last; a run that has not waited begins there.
    """

    at: float
    requests: float
    tokens: float
    turn: float = 0.0
    runs: dict[str, _Run] = msgspec.field(default_factory=dict)


class KeyRate:
    """One run's access to the quota of its key; of the waiting runs, the one that was served least is next."""

    def __init__(
        self,
        path: Path,
        run: str,
        *,
        requests: float | None,
        tokens: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the limits; the file is created when first used.

        Args:
            path: the file; the same for all runs that use the key.
            run: the run's name in it.
            requests: the most requests per minute; None for no limit.
            tokens: the most tokens per minute; None for no limit.
            clock: a monotonic clock that all processes of a host share.
        """
        self._path = path
        self._run = run
        self._requests = requests
        self._tokens = tokens
        self._clock = clock

    def take(self, tokens: int) -> float | None:
        """Take what a call needs and return None, or return after how many seconds to try again."""
        with self._changing() as bucket:
            if bucket is None:
                return _LEAST_WAIT
            own = bucket.runs.setdefault(self._run, _Run(bucket.turn, bucket.at, False))
            if not own.waits:
                own.served = max(own.served, bucket.turn)  # an idle run earns no credit
            own.seen_at = bucket.at
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

    def settle(self, taken: int, used: int) -> bool:
        """Replace the tokens that a call took by those it used; return False if that must be tried again."""
        with self._changing() as bucket:
            if bucket is None:
                return False
            bucket.tokens += taken - used if self._tokens is not None else 0
            own = bucket.runs.get(self._run)
            if own is not None:
                own.served += self._minutes(0, used) - self._minutes(0, taken)
            return True

    def leave(self) -> bool:
        """Stop waiting, so that no other run waits for this one; return False if that must be tried again."""
        with self._changing() as bucket:
            if bucket is None:
                return False
            own = bucket.runs.get(self._run)
            if own is not None:
                own.waits = False
            return True

    def _seconds_until(self, bucket: _Bucket, tokens: int) -> float:
        """Return when there is enough; a call larger than a burst waits for a full bucket and leaves a debt."""
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

    @contextmanager
    def _changing(self) -> Iterator[_Bucket | None]:
        """Change the file under its lock; None while another process, even a stopped one, holds it."""
        with FileLock(self._path, follow_links=False) as lock:
            if not lock.acquire():
                yield None
                return
            bucket = self._refilled(os.pread(lock.descriptor, _MAX_BYTES, 0), self._clock())
            yield bucket
            content = msgspec.json.encode(bucket)
            os.pwrite(lock.descriptor, content, 0)
            os.ftruncate(lock.descriptor, len(content))

    def _refilled(self, content: bytes, now: float) -> _Bucket:
        most_requests = max(1.0, (self._requests or 0.0) * _BURST)
        most_tokens = max(1.0, (self._tokens or 0.0) * _BURST)
        try:
            bucket = msgspec.json.decode(content, type=_Bucket)
        except msgspec.MsgspecError:  # a new file, or one that a killed process left incomplete
            return _Bucket(now, most_requests, most_tokens)
        passed = max(0.0, now - bucket.at)
        bucket.at = now
        bucket.requests = min(most_requests, bucket.requests + passed * (self._requests or 0.0) / 60)
        bucket.tokens = min(most_tokens, bucket.tokens + passed * (self._tokens or 0.0) / 60)
        for name, run in list(bucket.runs.items()):
            run.waits = run.waits and now - run.seen_at < _ALIVE_SECONDS
            if not run.waits and run.served <= bucket.turn:
                del bucket.runs[name]  # it would begin at `turn` anyway
        return bucket
