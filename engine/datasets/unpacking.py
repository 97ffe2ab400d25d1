"""Kaggle's zip, extracted once: checked as a whole before the first byte, several members at a time.

With `consume` the zip gives back the space of what has been extracted while it is being extracted,
so that both together never need much more than the larger of the two.
"""

from __future__ import annotations

import ctypes
import stat
import threading
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from competitions.kit import archives
from engine.datasets.telling import Tell
from engine.space import require_space, telling_full_disks
from foundation.files import sync_file_system
from foundation.problems import DataProblem

_WORKERS = 4
_BLOCK = 1 << 20
_BATCH_FILES = 256
_BATCH_BYTES = 64 << 20
_MOST_INFLATED = 200  # times the zip: the real ones stay below 30, and nobody's data need more
_HARMLESS_BYTES = 1 << 30
_LOCAL_HEADER_BYTES = 30
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h


@dataclass(frozen=True)
class Member:
    """A file in a zip and where it goes."""

    info: zipfile.ZipInfo
    path: Path


@dataclass(frozen=True)
class Contents:
    """What a zip holds, found harmless."""

    members: tuple[Member, ...]
    folders: tuple[Path, ...]

    @property
    def bytes(self) -> int:
        """How much it inflates to."""
        return sum(member.info.file_size for member in self.members)


def read_contents(path: Path) -> Contents:
    """Read what a zip holds.

    Raises:
        DataProblem: it is no zip, or would write outside its folder, over itself, or beyond all measure.
    """
    with archives.opened(path) as archive:
        infos = archive.infolist()
    members: dict[Path, Member] = {}
    folders: dict[Path, None] = {}
    for info in infos:
        place = archives.safe_path(info.filename)
        if info.is_dir():
            folders[place] = None
            continue
        _refuse_odd(path, info)
        if place in members:
            raise DataProblem(f"{path} was not taken", f"two of its members would lie at {place}")
        members[place] = Member(info, place)
    found = Contents(tuple(members.values()), tuple(folders))
    _refuse_bombs(path, found)
    return found


def unpack(path: Path, target: Path, *, keep_free: int = 0, consume: bool = False, tell: Tell) -> None:
    """Extract a zip into a folder; what lies there already from a killed try is not extracted again.

    Raises:
        DataProblem: it is damaged or not harmless.
        DiskFull: it does not fit.
    """
    contents = read_contents(path)
    done = _Done(contents.bytes, tell)
    missing = [member for member in contents.members if not is_there(target, member)]
    needed = sum(member.info.file_size for member in missing)
    done.add(contents.bytes - needed)
    if not consume:  # what is consumed makes room for what comes; whether that is enough shows on the way
        require_space(target.parent, needed, keep_free=keep_free)
    with telling_full_disks(target.parent):
        folders = {target / folder for folder in contents.folders}
        folders |= {(target / member.path).parent for member in contents.members}
        for folder in (target, *sorted(folders)):
            folder.mkdir(parents=True, exist_ok=True)
        batches = list(_batches(sorted(missing, key=lambda member: member.info.header_offset)))
        with ThreadPoolExecutor(_WORKERS) as pool:
            workers = _Workers(path, target, done)
            if not consume:
                _run(pool, workers, batches)
                return
            for start in range(0, len(batches), _WORKERS):
                some = batches[start : start + _WORKERS]
                _run(pool, workers, some)
                sync_file_system(target)  # only what has reached the disk may vanish from the zip
                _punch(path, [member.info for batch in some for member in batch])


def _run(pool: ThreadPoolExecutor, workers: _Workers, batches: Sequence[Sequence[Member]]) -> None:
    try:
        for _ in pool.map(workers.extract, batches):
            pass
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    finally:
        workers.close()


class _Done:
    """How many bytes are extracted, told from any thread."""

    def __init__(self, total: int, tell: Tell) -> None:
        self._total = total
        self._tell = tell
        self._done = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            self._tell("", self._done, self._total)


class _Workers:
    """Threads that each keep the zip open: opening reads its whole directory."""

    def __init__(self, path: Path, target: Path, done: _Done) -> None:
        self._path = path
        self._target = target
        self._done = done
        self._own = threading.local()
        self._opened: list[zipfile.ZipFile] = []

    def extract(self, batch: Sequence[Member]) -> None:
        if not hasattr(self._own, "archive"):
            self._own.archive = zipfile.ZipFile(self._path)
            self._opened.append(self._own.archive)
        for member in batch:
            self._extract_one(self._own.archive, member)

    def close(self) -> None:
        for archive in self._opened:
            archive.close()
        self._opened.clear()
        self._own = threading.local()

    def _extract_one(self, archive: zipfile.ZipFile, member: Member) -> None:
        final = self._target / member.path
        partial = final.with_name(f".{final.name[:200]}.partial~")
        try:
            with archive.open(member.info) as taken, partial.open("wb") as given:
                while chunk := taken.read(_BLOCK):
                    given.write(chunk)
                    self._done.add(len(chunk))
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise DataProblem(
                f"{self._path} is damaged",
                f"{member.info.filename}: {error}",
                "Remove it; it is downloaded again then.",
            ) from error
        partial.rename(final)


def is_there(target: Path, member: Member) -> bool:
    """Whether a member has been extracted: files get their name when they are whole."""
    try:
        found = (target / member.path).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == member.info.file_size


def _batches(members: Sequence[Member]) -> Iterator[list[Member]]:
    batch: list[Member] = []
    size = 0
    for member in members:
        batch.append(member)
        size += member.info.file_size
        if len(batch) == _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _refuse_odd(path: Path, info: zipfile.ZipInfo) -> None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise DataProblem(f"{path} was not taken", f"its member {info.filename} is a link or a device")
    if info.flag_bits & 0x1:
        raise DataProblem(f"{path} was not taken", f"its member {info.filename} is encrypted")


def _refuse_bombs(path: Path, contents: Contents) -> None:
    size = path.stat().st_size
    if contents.bytes > size * _MOST_INFLATED + _HARMLESS_BYTES:
        raise DataProblem(
            f"{path} was not taken", f"its {size:,} bytes claim to inflate to {contents.bytes:,}"
        )
    end = 0
    for info in sorted((member.info for member in contents.members), key=lambda one: one.header_offset):
        if info.header_offset < end:
            raise DataProblem(f"{path} was not taken", f"its member {info.filename} overlaps another one")
        end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
    if end > size:
        raise DataProblem(f"{path} was not taken", "its members reach beyond its end")


def _punch(path: Path, infos: Sequence[zipfile.ZipInfo]) -> None:
    """Give the space of extracted members back to the file system; the zip keeps its directory and length."""
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("r+b") as stream:
        for info in infos:
            length = _LOCAL_HEADER_BYTES + info.compress_size
            libc.fallocate(
                stream.fileno(),
                _KEEP_SIZE | _PUNCH_HOLE,
                ctypes.c_int64(info.header_offset),
                ctypes.c_int64(length),
            )
