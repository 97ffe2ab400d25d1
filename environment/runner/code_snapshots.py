"""Snapshots of an agent's code at each submission: the files of `code/`, each content once, without secrets, limited.

The runner writes them in another thread, so that no submission waits for it; consoles read them. The folder is
untrusted while it is copied, and so is the copy of an agent that is not isolated.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath

from mlebench_console.environment.container.redaction import redacted, redacted_text
from mlebench_console.environment.container.trees import TreeEntry, open_file, walk
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.submissions import FileVersion, least_missed, version_of
from mlebench_console.foundation import files
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.problems import DataProblem, Problem

VERSION = 1
OBJECTS = "objects"
# Folders of third-party or generated files; each is listed among what is left out.
NOT_CODE = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        "node_modules",
        "site-packages",
        "__pycache__",
        ".ipynb_checkpoints",
    }
)
_MOST_NAMED = 200
_LONGEST_PATH = 400
_MOST_MANIFEST_BYTES = 4 << 20
_TEXT_PREFIX_BYTES = 8192
_NEWEST_KEPT = 2
# The share of the limit that is kept, so that not every snapshot needs to read all manifests again.
_THINNED_TO = 0.75
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class CodeLimits:
    """The limits of snapshots of code.

    Attributes:
        file_bytes: larger files are left out.
        files, bytes: of one snapshot.
        total_bytes: of all snapshots of an attempt; beyond it the least useful ones are removed.
        depth: of folders below `code/`.
        seen: the entries that one snapshot may examine.
        seconds: the time that one snapshot may take.
    """

    file_bytes: int = 1 << 20
    files: int = 2000
    bytes: int = 16 << 20
    total_bytes: int = 64 << 20
    depth: int = 16
    seen: int = 20_000
    seconds: float = 5.0


@dataclass(frozen=True)
class KeptFile:
    """A file of a snapshot: its path below `code/`, and size and digest of what is kept of it."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class LeftOut:
    """A file that a snapshot does not contain, and why; `bytes` is -1 for anything but a file."""

    path: str
    bytes: int
    why: str


@dataclass(frozen=True)
class CodeSnapshot:
    """The manifest of one snapshot.

    Attributes:
        sequence: the number of the submission that it belongs to.
        at: when copying began.
        seconds: how long that took.
        more_left_out: how many more were left out than are named.
        cut: why the rest was not examined; empty where everything was.
    """

    version: int
    sequence: int
    at: float
    seconds: float
    files: tuple[KeptFile, ...]
    left_out: tuple[LeftOut, ...] = ()
    more_left_out: int = 0
    cut: str = ""


class CodeSnapshots:
    """Takes the snapshots of one attempt in order: objects by their digests, and a manifest for each submission.

    All from `_take` on is done by another thread, for one snapshot at a time.
    """

    def __init__(
        self,
        attempt: Path,
        hidden: Callable[[], tuple[str, ...]],
        worker: Executor,
        clock: Clock,
        *,
        limits: CodeLimits | None = None,
    ) -> None:
        """Prepare.

        Args:
            attempt: its directory.
            hidden: returns the secrets to remove; raises a Problem where they are not known any more.
            worker: does the copying.
            clock: for the time of each snapshot.
            limits: what may be kept.
        """
        self._attempt = attempt
        self._folder = attempt / protocol.CODE_SNAPSHOTS
        self._hidden = hidden
        self._clock = clock
        self._limits = limits or CodeLimits()
        self._code = _Folder(attempt, self._limits, self._has, self._put)
        self._sequences: set[int] | None = None
        self._held = 0
        self._worker = worker
        self._waiting: deque[int] = deque()
        self._asked: set[int] = set()
        self._turn: Future[None] | None = None
        self._sequence = 0

    def keep(self, sequence: int) -> None:
        """Start to keep the current code for a submission, unless that was done or tried before."""
        if sequence not in self._asked:
            self._asked.add(sequence)
            self._waiting.append(sequence)
            self._begin_next()

    def advance(self, seconds: float) -> str:
        """Continue with what waits, for so long, and return why the last one could not be kept, or nothing."""
        problem = ""
        if self._turn is not None and seconds:
            wait([self._turn], seconds)
        if self._turn is not None and self._turn.done():
            error = self._turn.exception()
            if error is not None:
                reason = error.in_one_line() if isinstance(error, Problem) else str(error)
                problem = f"the code as it was at submission {self._sequence} was not kept: {reason}"
            self._turn = None
        self._begin_next()
        return problem

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being kept or waiting."""
        return self._turn is None and not self._waiting

    def _begin_next(self) -> None:
        if self._turn is None and self._waiting:
            self._sequence = self._waiting.popleft()
            self._turn = self._worker.submit(self._take, self._sequence)

    def _take(self, sequence: int) -> None:
        """Take a snapshot for a submission, unless it exists.

        Raises:
            Problem: the secrets that it may hold are not known.
            OSError: it can't be written.
        """
        if self._sequences is None:
            self._recover()
        assert self._sequences is not None
        if sequence in self._sequences:
            return
        manifest = self._code.store_files(sequence, self._clock.now(), self._hidden())
        place = manifest_path(self._attempt, sequence)
        files.write_json(place, asdict(manifest))
        self._sequences.add(sequence)
        self._held += place.stat().st_size
        if self._held > self._limits.total_bytes:
            self._thin_out()

    def _recover(self) -> None:
        """Find the snapshots of an earlier runner, and remove unfinished ones."""
        (self._folder / OBJECTS).mkdir(parents=True, exist_ok=True)
        files.remove_partials(self._folder)
        self._settle(set(self._manifests()))

    def _manifests(self) -> dict[int, int]:
        """Return the numbers of the snapshots that are there, with the sizes of their manifests."""
        found = (path for path in self._folder.glob("*.json") if path.stem.isdigit())
        return {int(path.stem): path.stat().st_size for path in found}

    def _settle(self, sequences: set[int]) -> None:
        """Remove all objects but those of some snapshots, and add up the size of the rest."""
        wanted = {each.sha256 for one in self._read_all(sequences) for each in one.files}
        self._held = sum(self._manifests().values())
        for path in (self._folder / OBJECTS).iterdir():
            if path.name in wanted:
                self._held += path.lstat().st_size
            else:
                path.unlink()
        self._sequences = sequences

    def _read_all(self, sequences: Iterable[int]) -> Iterator[CodeSnapshot]:
        found = (read_snapshot(self._attempt, sequence) for sequence in sorted(sequences))
        return (one for one in found if one is not None)

    def _has(self, kept: KeptFile) -> bool:
        """Return whether an object exists with its full size, which a power cut may have emptied."""
        try:
            return self._object(kept).lstat().st_size == kept.bytes
        except FileNotFoundError:
            return False

    def _put(self, kept: KeptFile, content: bytes) -> None:
        """Write an object, without syncing it to disk, as readers verify the digest."""
        files.write_bytes(self._object(kept), content, durable=False)
        self._held += kept.bytes

    def _object(self, kept: KeptFile) -> Path:
        return self._folder / OBJECTS / kept.sha256

    def _thin_out(self) -> None:
        """Remove snapshots until the rest is small enough, keeping the first, and more recent ones more densely."""
        sizes, order = self._manifests(), list(self._read_all(self._manifests()))
        used = Counter(each.sha256 for one in order for each in one.files)
        held = self._held
        while len(order) > _NEWEST_KEPT and held > self._limits.total_bytes * _THINNED_TO:
            times = [one.at for one in order]
            gone = order.pop(least_missed(times, times[-1], _NEWEST_KEPT))
            held -= sizes[gone.sequence]
            for each in gone.files:
                used[each.sha256] -= 1
                held -= 0 if used[each.sha256] else each.bytes
            manifest_path(self._attempt, gone.sequence).unlink(missing_ok=True)
        self._settle({one.sequence for one in order})


class _Folder:
    """Reads an agent's folder, within limits, and puts the files without secrets where their contents are kept."""

    def __init__(
        self,
        attempt: Path,
        limits: CodeLimits,
        has: Callable[[KeptFile], bool],
        put: Callable[[KeptFile, bytes], None],
    ) -> None:
        """Prepare.

        Args:
            attempt: its directory.
            limits: what may be kept.
            has: returns whether a content is kept already.
            put: keeps one; may raise OSError.
        """
        self._source = attempt / protocol.CODE
        self._limits = limits
        self._has = has
        self._put = put
        self._known: dict[str, tuple[FileVersion, KeptFile]] = {}

    def store_files(self, sequence: int, at: float, hidden: tuple[str, ...]) -> CodeSnapshot:
        """Store the current files, and return the manifest.

        Raises:
            OSError: a content can't be kept.
        """
        began, limits = time.monotonic(), self._limits
        found = _Found(hidden)
        seen: dict[str, tuple[FileVersion, KeptFile]] = {}
        for number, entry in enumerate(self._walk(found)):
            if number >= limits.seen or time.monotonic() > began + limits.seconds:
                names = f"{limits.seen:,} names were seen"
                over = names if number >= limits.seen else f"{limits.seconds:g} s were over"
                found.cut = f"{over}; what follows was not looked at"
                break
            if stat.S_ISDIR(entry.status.st_mode):
                continue
            path = _path(entry)
            try:
                if path is None:
                    raise _LeftOutError("its path is too long")
                self._check(entry.status, found)
                version, kept, content = self._content_of(path, entry, hidden)
                if found.bytes + kept.bytes > limits.bytes:
                    raise _LeftOutError(f"the others have {limits.bytes:,} bytes already")
            except (_LeftOutError, OSError) as error:
                size = entry.status.st_size if stat.S_ISREG(entry.status.st_mode) else -1
                found.leave_out(path or _text(entry.place), error, size)
                continue
            if content is not None and not self._has(kept):
                self._put(kept, content)
            seen[path] = version, kept
            found.add(kept)
        self._known = seen
        return CodeSnapshot(
            VERSION,
            sequence,
            at,
            round(time.monotonic() - began, 3),
            tuple(sorted(found.files, key=lambda each: each.path)),
            tuple(found.left_out),
            found.more,
            found.cut,
        )

    def _walk(self, found: _Found) -> Iterator[TreeEntry]:
        """Walk the folder, and record as left out what can't be read and the folders that are not walked."""

        def refused(place: str, error: OSError) -> None:
            found.leave_out(_text(place.partition("/")[2] or place), error)

        def enter(entry: TreeEntry) -> bool:
            path, why = _path(entry), ""
            if path is None or len(entry.above) > self._limits.depth:
                why = f"it is more than {self._limits.depth} folders deep"
            elif entry.name in NOT_CODE:
                why = "a folder of this name holds no code of the agent's own"
            if why:
                found.leave_out(path or _text(entry.place), _LeftOutError(why))
            return not why

        return walk(self._source, refused, enter)

    def _check(self, status: os.stat_result, found: _Found) -> None:
        """Check that a file may be kept, before it is read.

        Raises:
            _LeftOutError: it may not.
        """
        if stat.S_ISLNK(status.st_mode):
            raise _LeftOutError("it is a link")
        if not stat.S_ISREG(status.st_mode):
            raise _LeftOutError("it is not a regular file")
        if status.st_size > self._limits.file_bytes:
            raise _LeftOutError(f"it has more than {self._limits.file_bytes:,} bytes")
        if len(found.files) >= self._limits.files:
            raise _LeftOutError(f"there are {self._limits.files:,} files already")

    def _content_of(
        self, path: str, entry: TreeEntry, hidden: tuple[str, ...]
    ) -> tuple[FileVersion, KeptFile, bytes | None]:
        """Return what is kept of a file, and its content unless it has not changed since the last snapshot.

        Raises:
            _LeftOutError: it is not kept.
            OSError: it can't be read.
        """
        known = self._known.get(path)
        if known is not None and known[0] == version_of(entry.status) and self._has(known[1]):
            return *known, None
        version, content = self._read(entry)
        if b"\0" in content[:_TEXT_PREFIX_BYTES]:
            raise _LeftOutError("it is binary")
        content = redacted(content, hidden)
        digest = hashlib.sha256(content).hexdigest()
        return version, KeptFile(redacted_text(path, hidden), len(content), digest), content

    def _read(self, entry: TreeEntry) -> tuple[FileVersion, bytes]:
        """Read a consistent version of a file; try twice if it is written to meanwhile."""
        for _ in range(2):
            descriptor = open_file(entry)
            with os.fdopen(descriptor, "rb") as stream:
                before = os.fstat(descriptor)
                if not stat.S_ISREG(before.st_mode):
                    raise _LeftOutError("it is not a regular file")
                content = stream.read(self._limits.file_bytes + 1)
                after = os.fstat(descriptor)
            if len(content) > self._limits.file_bytes:
                raise _LeftOutError(f"it has more than {self._limits.file_bytes:,} bytes")
            if version_of(before) == version_of(after):
                return version_of(after), content
        raise _LeftOutError("it was written to while it was read")


class _LeftOutError(Exception):
    """A file is not kept; the message says why."""


class _Found:
    """The files found so far for one snapshot."""

    def __init__(self, hidden: tuple[str, ...]) -> None:
        self._hidden = hidden
        self.files: list[KeptFile] = []
        self.bytes = 0
        self.left_out: list[LeftOut] = []
        self.more = 0
        self.cut = ""

    def add(self, kept: KeptFile) -> None:
        self.files.append(kept)
        self.bytes += kept.bytes

    def leave_out(self, path: str, error: _LeftOutError | OSError, size: int = -1) -> None:
        if len(self.left_out) < _MOST_NAMED:
            why = error.strerror if isinstance(error, OSError) else None
            self.left_out.append(LeftOut(redacted_text(path, self._hidden), size, why or str(error)))
        else:
            self.more += 1


def _path(entry: TreeEntry) -> str | None:
    """Return an entry's path below `code/` as text; None where it is too long."""
    found = entry.path(_LONGEST_PATH)
    return None if found is None else _text(str(found))


def _text(name: str) -> str:
    """Return a name as text, with escapes for what is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def manifest_path(attempt: Path, sequence: int) -> Path:
    """Return where the manifest of the code at a submission is."""
    return attempt / protocol.CODE_SNAPSHOTS / f"{sequence}.json"


def read_snapshot(attempt: Path, sequence: int) -> CodeSnapshot | None:
    """Read the manifest of the code at a submission; None where it is missing or invalid.

    Paths that would lead outside a folder are dropped: without isolation an agent may have written it.
    """
    import msgspec  # as in protocol

    try:
        with files.reading_untrusted(
            manifest_path(attempt, sequence), max_bytes=_MOST_MANIFEST_BYTES
        ) as stream:
            found = msgspec.json.decode(stream.read(), type=CodeSnapshot)
    except (DataProblem, msgspec.MsgspecError):
        return None
    if found.version > VERSION or found.sequence != sequence:
        return None
    return replace(found, files=tuple(each for each in found.files if _is_sound(each)))


def read_now(attempt: Path, hidden: tuple[str, ...], at: float) -> tuple[CodeSnapshot, dict[str, bytes]]:
    """Return a snapshot of `code/` as it is now, and the contents by their digests."""
    contents: dict[str, bytes] = {}

    def put(kept: KeptFile, content: bytes) -> None:
        contents[kept.sha256] = content

    folder = _Folder(attempt, CodeLimits(), lambda kept: kept.sha256 in contents, put)
    return folder.store_files(0, at, hidden), contents


def read_kept(attempt: Path, kept: KeptFile) -> bytes:
    """Read a file of a snapshot.

    Raises:
        DataProblem: it is missing or has changed.
    """
    place = attempt / protocol.CODE_SNAPSHOTS / OBJECTS / kept.sha256
    with files.reading_untrusted(place, max_bytes=CodeLimits().file_bytes * 2) as stream:
        content = stream.read()
    if hashlib.sha256(content).hexdigest() != kept.sha256:
        raise DataProblem(f"the copy of {kept.path} is damaged", "it is not what was kept")
    return content


def _is_sound(kept: KeptFile) -> bool:
    path = PurePosixPath(kept.path)
    parts_are_sound = path.parts and all(part not in ("..", "/") and "\0" not in part for part in path.parts)
    return bool(parts_are_sound and not path.is_absolute() and _SHA256.fullmatch(kept.sha256))
