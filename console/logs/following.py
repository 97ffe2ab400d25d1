"""Logs as they are printed: their last lines, then every further line once, whatever becomes of the files.

Commands print the lines of each log behind its name; screens read several as one log, `JoinedLogs`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlebench_console.console import wording
from mlebench_console.console.logs.reader import Extent, LogFile, LogLine, LogName
from mlebench_console.environment.runner import protocol
from mlebench_console.state import runs
from mlebench_console.state.database import Database
from mlebench_console.state.records import Run

_LINES_AT_ONCE = 100
# Of several logs on a screen, how many of the last lines of each are read, and how much is kept of what they print.
_HISTORY = 500
_MOST_KEPT = 8 << 20


@dataclass(frozen=True)
class RunLog:
    """The log of a run's latest attempt.

    Attributes:
        name: what its lines stand behind where logs of several runs are shown.
        ending: how the attempt has ended; empty while it goes on.
    """

    run_id: int
    name: str
    path: Path
    ending: str = ""


def run_logs(database: Database, run_ids: Sequence[int]) -> tuple[RunLog, ...]:
    """Return the logs of the runs' latest attempts; runs that never started have none."""
    logs = []
    for run_id in run_ids:
        run, attempt = runs.get(database, run_id), runs.latest_attempt(database, run_id)
        if attempt is not None:
            path = database.path.parent / attempt.directory / protocol.LOG
            ending = "" if attempt.ended_at is None else _ending(run)
            logs.append(RunLog(run_id, f"{run_id} {run.competition_id} s{run.seed}", path, ending))
    return tuple(logs)


def _ending(run: Run) -> str:
    if run.failure_class is not None:
        return f"{wording.failure(run)}: {run.failure_text}"
    return wording.outcome(run.outcome) if run.outcome is not None else str(run.state)


class FollowedLog:
    """A log that is read as it grows."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._position = 0

    def last_lines(self, count: int, *, only_whole: bool) -> list[LogLine]:
        """Return the last lines; `new_lines` goes on after them.

        Args:
            count: how many.
            only_whole: leave out a last line that has no end yet; it is a new line once it has.
        """
        self._file.refresh()
        lines = self._file.backward(self._file.end, count)
        self._position = self._file.end
        if only_whole and lines and not lines[-1].is_whole:
            self._position = lines.pop().start
        return lines

    def new_lines(self, *, has_ended: bool = False) -> Iterator[LogLine]:
        """Yield the lines that are whole now; of a log that has ended also a last line without an end.

        What is so long that it is cut counts as whole as soon as something follows. A log that was begun anew is read
        from its beginning.
        """
        file, restarts = self._file, self._file.restarts
        if not file.refresh() and not has_ended:
            return
        self._position = file.begin if file.restarts > restarts else max(self._position, file.begin)
        while True:
            lines = file.forward(self._position, _LINES_AT_ONCE)
            whole = [line for line in lines if line.is_whole or line.end < file.end or has_ended]
            if not whole:
                return
            self._position = whole[-1].end
            yield from whole

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass
class _Member:
    """One of the joined logs, its number among them, and whether all of it was read and its ending added."""

    number: int
    log: RunLog
    followed: FollowedLog
    is_complete: bool = False


class JoinedLogs(LogFile):
    """The logs of several runs as one: the last lines of each, then what they print, in the order in which it comes.

    Its lines lie in memory; the oldest of very many are dropped. After the last line of a run stands how it has ended.
    """

    def __init__(self, logs: Sequence[RunLog], height: int) -> None:
        """Create it without opening the logs.

        Args:
            logs: those of the runs.
            height: of the page, which the very last lines of all logs share.
        """
        super().__init__(Path("several logs"))
        self._logs = tuple(logs)
        self._height = height
        self._members: dict[int, _Member] = {}
        self._first = 0
        self._text = bytearray()
        # Where each line begins, and the number of its log.
        self._begins: array[int] = array("q")
        self._owners: array[int] = array("H")

    def renew(self, logs: Sequence[RunLog]) -> None:
        """Go on with the logs of the same runs' latest attempts, of which some may have begun or ended."""
        for log in logs:
            member = self._members.get(log.run_id)
            if member is not None and member.log.path == log.path:
                member.log = log
                continue
            if member is not None:
                self._append(member, member.followed.new_lines(has_ended=True))
                member.followed.close()
            number = len(self._members) if member is None else member.number
            self._members[log.run_id] = _Member(number, log, FollowedLog(LogFile(log.path)))

    def refresh(self) -> bool:
        """Append what was printed since the last call, and return whether there was anything."""
        before = self.end
        if not self._members:
            self.renew(self._logs)
            self._read_ends()
        for member in self._members.values():
            self._append_new(member)
        if len(self._text) > _MOST_KEPT:
            self._drop(self._text.index(b"\n", len(self._text) // 2) + 1)
        self._set([Extent(-1, self._first, self._next)] if self._text else [])
        return self.end != before

    def close(self) -> None:
        """Close the logs; what was read of them stays."""
        for member in self._members.values():
            member.followed.close()

    def name_at(self, position: int) -> LogName | None:
        """Return the name of the log that a line is from."""
        if not self._begins:
            return None
        number = self._owners[max(0, bisect_right(self._begins, position) - 1)]
        return LogName(number, list(self._members.values())[number].log.name)

    @property
    def _next(self) -> int:
        return self._first + len(self._text)

    def _read_ends(self) -> None:
        """Append what each log has printed of late, and below that the very last lines of each."""
        last = max(1, self._height // max(1, len(self._members)) - 1)
        ends = []
        for member in self._members.values():
            lines: list[LogLine] = []
            with suppress(OSError):
                lines = member.followed.last_lines(_HISTORY, only_whole=not member.log.ending)
            self._append(member, lines[:-last])
            ends.append((member, lines[-last:]))
        for member, lines in ends:
            self._append(member, lines)
            self._append_new(member)

    def _append_new(self, member: _Member) -> None:
        if member.is_complete:
            return
        member.is_complete = bool(member.log.ending)
        with suppress(OSError):  # it can't be read now; the other logs go on
            self._append(member, member.followed.new_lines(has_ended=member.is_complete))
        if member.is_complete:
            self._add(member, f"[{member.log.ending}]".encode())

    def _append(self, member: _Member, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self._add(member, line.content)

    def _add(self, member: _Member, content: bytes) -> None:
        self._begins.append(self._next)
        self._owners.append(member.number)
        self._text += content + b"\n"

    def _drop(self, length: int) -> None:
        """Drop the first bytes, up to the end of a line."""
        self._first += length
        del self._text[:length]
        lines = bisect_left(self._begins, self._first)
        del self._begins[:lines], self._owners[:lines]

    def _run(self, position: int, end: int) -> bytes:
        return bytes(self._text[position - self._first : end - self._first])
