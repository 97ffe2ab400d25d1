"""Kaggle's zip, extracted for those who keep it so, or consumed: several members at a time, restartable.

With `consume` the zip gives back the space of what has been extracted while it is being extracted,
so that both together never need much more than the larger of the two.
"""

from __future__ import annotations

import ctypes
import stat
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from competitions.kit.archives import zip_tree
from competitions.kit.archives.member_streams import Member
from competitions.kit.archives.zip_tree import ZipTree
from engine.datasets.telling import Tell
from engine.space import require_space, telling_full_disks
from foundation.files import sync_file_system

_WORKERS = 4
_BATCH_FILES = 256
_BATCH_BYTES = 64 << 20
_LOCAL_HEADER_BYTES = 30
_TABLES = frozenset({".csv", ".tsv", ".json", ".jsonl", ".txt", ".bson"})
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h


@dataclass(frozen=True)
class Contents:
    """What a zip holds, found harmless: its files by path, each with its size."""

    sizes: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """How much it inflates to."""
        return sum(self.sizes.values())


def read_contents(path: Path) -> Contents:
    """Read what a zip holds.

    Raises:
        DataProblem: it is no zip, or would write outside its folder, over itself, or beyond all measure.
    """
    with zip_tree.opened(path) as tree:
        return _contents(tree)


def _contents(tree: ZipTree) -> Contents:
    return Contents({place: tree.member(place).size for place in tree.files})


def is_best_consumed(path: Path) -> bool:
    """Whether a zip that is not needed any more is better extracted, giving its space back, than read as it lies.

    It is where most of it is only linked to afterwards, and not where tables would lie beside what is made of them.
    """
    tables = sum(
        size
        for place, size in read_contents(path).sizes.items()
        if PurePosixPath(place).suffix.lower() in _TABLES
    )
    return tables <= path.stat().st_size


def is_unpacked(contents: Contents, target: Path) -> bool:
    """Whether everything of a zip lies in a folder."""
    return all(_is_there(target / place, size) for place, size in contents.sizes.items())


def unpack(
    path: Path,
    target: Path,
    *,
    known_bytes: int | None = None,
    keep_free: int = 0,
    consume: bool = False,
    tell: Tell,
) -> None:
    """Extract a zip into a folder; what lies there already from a killed try is not extracted again.

    Raises:
        DataProblem: it is damaged or not harmless.
        DiskFull: it does not fit.
    """
    with zip_tree.opened(path, known_bytes=known_bytes) as tree:
        contents = _contents(tree)
        missing = {
            place: size for place, size in contents.sizes.items() if not _is_there(target / place, size)
        }
        needed = sum(missing.values())
        if not consume:  # what is consumed makes room for what comes; whether that is enough shows on the way
            require_space(target.parent, needed, keep_free=keep_free)
        work = _Work(tree, target, _Done(contents.bytes, contents.bytes - needed, tell))
        with telling_full_disks(target.parent):
            for folder in tree.folders:
                (target / folder).mkdir(parents=True, exist_ok=True)
            batches = list(_batches(missing))
            at_once = _WORKERS if consume else max(len(batches), 1)
            with ThreadPoolExecutor(_WORKERS) as pool:
                for start in range(0, len(batches), at_once):
                    some = batches[start : start + at_once]
                    work.run(pool, some)
                    if consume:
                        sync_file_system(target)  # only what has reached the disk may vanish from the zip
                        _punch(path, [tree.member(place) for batch in some for place in batch])


class _Done:
    """How many bytes are extracted, told from any thread."""

    def __init__(self, total: int, done: int, tell: Tell) -> None:
        self._total = total
        self._tell = tell
        self._done = done
        self._lock = threading.Lock()
        self.add(0)

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._tell("", self._done, self._total)


@dataclass(frozen=True)
class _Work:
    tree: ZipTree
    target: Path
    done: _Done

    def run(self, pool: ThreadPoolExecutor, batches: Sequence[Sequence[str]]) -> None:
        try:
            for _ in pool.map(self._extract, batches):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise

    def _extract(self, batch: Sequence[str]) -> None:
        for place in batch:
            final = self.target / place
            partial = final.with_name(f".{final.name[:200]}.partial~")
            with partial.open("wb") as given:
                self.tree.copy(place, given, self.done.add)
            partial.rename(final)


def _is_there(path: Path, size: int) -> bool:
    """Whether a member has been extracted: files get their name when they are whole."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == size


def _batches(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    batch: list[str] = []
    total = 0
    for place, size in sizes.items():
        batch.append(place)
        total += size
        if len(batch) == _BATCH_FILES or total >= _BATCH_BYTES:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _punch(path: Path, members: Sequence[Member]) -> None:
    """Give the space of extracted members back to the file system; the zip keeps its directory and length."""
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("r+b") as stream:
        for member in members:
            libc.fallocate(
                stream.fileno(),
                _KEEP_SIZE | _PUNCH_HOLE,
                ctypes.c_int64(member.offset),
                ctypes.c_int64(_LOCAL_HEADER_BYTES + member.packed),
            )
