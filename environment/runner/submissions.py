"""Snapshots of an agent's submission while it works: of settled regular files, limited in size, each content once.

Their total size is limited too: older ones are thinned out, while the engine keeps their grades.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from mlebench_console.environment.container.redaction import worth_hiding
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import SubmissionRefused, SubmissionTaken
from mlebench_console.foundation import files
from mlebench_console.foundation.files import NotRegular, TooLarge
from mlebench_console.foundation.problems import DataProblem, Problem

_BLOCK = 1 << 20
# The limit of all snapshots of an attempt: 1 GiB per minute would be 1.4 TB per day.
MOST_BYTES = 5 << 30
# The newest ones are never removed: the last may be the final submission, the one before may be being graded.
_NEWEST_KEPT = 2


# Device, inode, size and times of a version of a file; no program can set the last one back.
FileVersion = tuple[int, int, int, int, int]


def version_of(status: os.stat_result) -> FileVersion:
    """Return what identifies a version of a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class Refusals:
    """Counts refusals by code, so that an agent that repeats itself a hundred thousand times does not fill the log."""

    def __init__(self, reported: Iterable[SubmissionRefused]) -> None:
        """Continue counting from the events of earlier runners."""
        self._counted = {one.code: one for one in reported}
        self._reported = {code: one.times for code, one in self._counted.items()}

    def note(self, at: float, problem: DataProblem) -> SubmissionRefused | None:
        """Count a refusal, and return the event to report, if any."""
        code = _code_of(problem)
        before = self._counted.get(code)
        now = SubmissionRefused(at, str(problem), code, 1 if before is None else before.times + 1)
        self._counted[code] = now
        # 1, 10, 100, 1000 ...
        return self._report(code) if str(now.times).strip("0") == "1" else None

    def unreported(self) -> list[SubmissionRefused]:
        """Return the events for counts that have grown since their last report."""
        codes = [code for code, one in self._counted.items() if one.times > self._reported.get(code, 0)]
        return [self._report(code) for code in codes]

    def _report(self, code: str) -> SubmissionRefused:
        one = self._counted[code]
        self._reported[code] = one.times
        return one


def _code_of(problem: DataProblem) -> str:
    if isinstance(problem, TooLarge):
        return "too_large"
    return "not_regular" if isinstance(problem, NotRegular) else "unreadable"


def least_missed(times: Sequence[float], now: float, newest_kept: int) -> int:
    """Return the index of the snapshot whose removal leaves the smallest gap, relative to its age.

    The first and the newest are not chosen unless there are no others.
    """
    between = range(1, len(times) - newest_kept)
    return min(between, key=lambda at: (times[at + 1] - times[at - 1]) / (now - times[at] + 1), default=0)


class SubmissionWatch:
    """Watches one attempt's submission.csv; `last` is the newest snapshot, even of an earlier runner."""

    def __init__(
        self,
        attempt: Path,
        *,
        limit_bytes: int,
        every_seconds: float,
        taken: Sequence[SubmissionTaken],
        most_bytes: int = MOST_BYTES,
        hidden: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Prepare.

        Args:
            attempt: its directory.
            limit_bytes: the largest submission.
            every_seconds: the least time between snapshots.
            taken: the earlier snapshots, oldest first.
            most_bytes: the limit of all snapshots, the newest excepted.
            hidden: returns the secrets to search for; raises a Problem where they are not known any more.
        """
        self._attempt = attempt
        self._source = attempt / protocol.SUBMISSION / protocol.SUBMISSION_FILE
        self._limit = limit_bytes
        self._every = every_seconds
        self._most = most_bytes
        self._hidden = hidden
        self._holds_secret = False
        self.with_secrets: list[str] = []
        """The snapshots in which a secret was found; they stay as they are, since they are graded."""
        self.last = taken[-1] if taken else None
        self._kept = [one for one in taken if (attempt / one.path).exists()]
        self._seen: FileVersion | None = None
        self._taken: FileVersion | None = None
        self._refused: FileVersion | None = None

    def check(self, now: float, elapsed: float) -> SubmissionTaken | None:
        """Take a snapshot if the file is new, has settled since the last check, and a snapshot is due.

        `now` is only recorded; whether a snapshot is due depends on the seconds since the start.

        Raises:
            DataProblem: the file can't be copied; raised once for each version of it.
        """
        current = self._current()
        settled = current is not None and current == self._seen
        self._seen = current
        if current is None or not settled or current in (self._taken, self._refused):
            return None
        if self.last is not None and elapsed - self.last.elapsed_seconds < self._every:
            return None
        return self._take(current, now, elapsed, final=False)

    def take_final(self, now: float, elapsed: float) -> SubmissionTaken | None:
        """Take the final snapshot, now that nobody writes any more; the newest one again if the file is the same.

        Raises:
            DataProblem: the file can't be copied.
        """
        folder = self._source.parent
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
        current = self._current()
        return None if current is None else self._take(current, now, elapsed, final=True)

    def _current(self) -> FileVersion | None:
        try:
            found = self._source.lstat()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None  # the agent may make its folder inaccessible while it works; `take_final` opens it
        return version_of(found)

    def _take(
        self, current: FileVersion, now: float, elapsed: float, *, final: bool
    ) -> SubmissionTaken | None:
        sequence = 1 if self.last is None else self.last.sequence + 1
        name = protocol.snapshot_name(sequence)
        target = self._attempt / name
        partial = target.with_suffix(files.PARTIAL_SUFFIX)
        try:
            sha256, size, settled = self._copy(partial)
        except DataProblem:
            self._refused = current
            raise
        if not settled and not final:
            partial.unlink()
            return None  # it changed while it was copied: it is checked again
        self._taken = current
        is_same = self.last is not None and self.last.sha256 == sha256
        kept = self.last.path if self.last is not None and is_same else name
        if self._holds_secret and kept not in self.with_secrets:
            self.with_secrets.append(kept)
        if is_same:
            partial.unlink()
            return self.last if final else None
        partial.replace(target)
        files.sync_directory(target.parent)
        self.last = SubmissionTaken(now, sequence, elapsed, sha256, size, name)
        self._kept.append(self.last)
        self._thin_out(elapsed)
        return self.last

    def _thin_out(self, now: float) -> None:
        """Remove snapshots until the rest is small enough, keeping the first, and more recent ones more densely."""
        while len(self._kept) > _NEWEST_KEPT and sum(one.bytes for one in self._kept) > self._most:
            place = least_missed([one.elapsed_seconds for one in self._kept], now, _NEWEST_KEPT)
            gone = self._kept.pop(place)
            (self._attempt / protocol.snapshot_name(gone.sequence)).unlink(missing_ok=True)

    def _copy(self, partial: Path) -> tuple[str, int, bool]:
        """Copy the submission; return the digest and size of the copy, and whether nobody wrote meanwhile."""
        digest = hashlib.sha256()
        secrets: tuple[str, ...] = ()
        with suppress(Problem):  # after a restart of the host nobody knows them
            secrets = worth_hiding(self._hidden())
        values = [value.encode() for value in secrets]
        self._holds_secret, before_it = False, b""
        with (
            files.reading_untrusted(self._source, max_bytes=self._limit) as source,
            partial.open("wb") as sink,
        ):
            before = os.fstat(source.fileno())
            left = self._limit
            while left > 0 and (block := source.read(min(_BLOCK, left))):
                left -= sink.write(block)
                digest.update(block)
                if values:
                    text = before_it + block
                    self._holds_secret |= any(value in text for value in values)
                    before_it = text[1 - len(values[0]) :]
            sink.flush()
            os.fsync(sink.fileno())
            after = os.fstat(source.fileno())
        settled = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
        return digest.hexdigest(), self._limit - left, settled
