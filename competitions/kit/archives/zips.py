"""Zip archives of raw data: chosen members taken out safely, or moved to another zip without inflating them."""

from __future__ import annotations

import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from competitions.kit.archives import zip_copy, zip_directory
from competitions.raw import RawDataProblem, RawPath
from competitions.task import Preparation, Progress
from foundation.problems import DataProblem

_WORKERS = 4
_BATCH = 256
_MAX_RATIO = 1100  # deflate cannot do better than 1032:1, so a member that claims more lies
_BLOCK = 1 << 20
_FILE_TYPE = 0o170000  # of a Unix mode


@contextmanager
def opened(path: RawPath) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading.

    Raises:
        DataProblem: it is no zip, or is damaged.
    """
    with _as_data_problems(path), path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        yield archive


@contextmanager
def _as_data_problems(path: RawPath) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise RawDataProblem(f"{path} cannot be read as a zip", str(error)) from error


def files_in(path: RawPath) -> list[str]:
    """The names of the members of a zip that are files, in its own order."""
    return [name for name in _directory(path).rows if not name.endswith("/")]


@dataclass(frozen=True)
class _Directory:
    """The members of a zip, and the row of each name; the last one where a name stands twice."""

    members: zip_directory.Members
    rows: Mapping[str, int]


def _directory(path: RawPath) -> _Directory:
    if not isinstance(path, Path):
        return _read_directory(path)
    found = path.stat()
    return _read_directory(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=1)  # a task asks several times for the archive it works on
def _read_directory(path: RawPath, *state: int) -> _Directory:
    del state  # a changed file is read anew
    with _as_data_problems(path):
        members = zip_directory.read(path)
    return _Directory(members, dict(zip(members.names, range(len(members)), strict=True)))


def ordered_by_checksum(path: RawPath, names: Iterable[str]) -> list[str]:
    """Names of members in an order that follows from checksums of their bytes, which reveals nothing about the names.

    Raises:
        DataProblem: a member is missing.
    """
    directory = _directory(path)
    try:
        return sorted(names, key=lambda name: int(directory.members.crcs[directory.rows[name]]))
    except KeyError as error:
        raise _incomplete(path, str(error.args[0])) from error


def _by_name(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename: info for info in archive.infolist()}


@contextmanager
def opened_member(path: RawPath, name: str) -> Iterator[IO[bytes]]:
    """Open one file of a zip to be read once from where it lies; it may lie in a folder of the zip."""
    full_name = _full_name(path, name)
    with opened(path) as archive, archive.open(_regular(_by_name(archive), path, full_name)) as stream:
        yield stream


def read_members(path: RawPath, names: Iterable[str]) -> Iterator[bytes]:
    """The bytes of each of the named files of a zip, one after another.

    Raises:
        DataProblem: a member is missing, is a link, is damaged, or inflates to more than it says.
    """
    with opened(path) as archive:
        members = _by_name(archive)
        for name in names:
            yield archive.read(_regular(members, path, name))


def member_size(path: RawPath, name: str) -> int:
    """How many bytes one file of a zip has, by the zip's directory; it may lie in a folder of the zip.

    Raises:
        DataProblem: it is not there.
    """
    directory, full_name = _directory(path), _full_name(path, name)
    if full_name not in directory.rows:
        raise _incomplete(path, name)
    return int(directory.members.sizes[directory.rows[full_name]])


def _full_name(path: RawPath, name: str) -> str:
    # whoever opens a name that no member has gets the error
    return next((found for found in files_in(path) if PurePosixPath(found).name == name), name)


def extract_as(job: Preparation, path: RawPath, targets: Mapping[str, Path]) -> None:
    """Take the named members out of a zip, each to its own path; see `extract_members`."""
    extract_members(path, targets, job.progress)


def extract_members(path: RawPath, targets: Mapping[str, Path], progress: Progress) -> None:
    """Take the named members out of a zip, each to its own path, several at a time.

    Raises:
        DataProblem: a member is missing, is a link, is damaged, or inflates to more than it says.
    """
    for folder in {target.parent for target in targets.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    wanted = list(targets.items())
    # one that lies packed in another archive is best read once from front to back
    workers = _WORKERS if isinstance(path, Path) else 1
    # opening an archive reads its whole directory, so each worker opens it a few times only
    share = max(_BATCH, -(-len(wanted) // (4 * workers))) if workers > 1 else len(wanted)
    batches = [wanted[start : start + share] for start in range(0, len(wanted), max(share, 1))]
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            for count in pool.map(lambda batch: _extract_batch(path, batch), batches):
                done += count
                progress(path.name, done, len(wanted))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _extract_batch(path: RawPath, wanted: list[tuple[str, Path]]) -> int:
    with opened(path) as archive:
        members = _by_name(archive)
        chosen = [(_regular(members, path, name), target) for name, target in wanted]
        create_empty(target for _, target in chosen)
        for info, target in sorted(chosen, key=lambda pair: pair[0].header_offset):
            with archive.open(info) as taken, target.open("wb") as given:
                shutil.copyfileobj(taken, given, _BLOCK)
    return len(wanted)


def create_empty(files: Iterable[Path]) -> None:
    """Make files in this order: that in which an archive fills them may show their classes."""
    for file in files:
        file.open("xb").close()


def repack(job: Preparation, path: RawPath, target: Path, names: Mapping[str, str] | Iterable[str]) -> None:
    """Make a zip of some members of another one, copying their compressed bytes as they lie.

    Args:
        job: whose progress hook to call.
        path: the source zip.
        target: the zip to make.
        names: member names, or a mapping from the name in the source to the name in the target.
    """
    renamed = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    target.parent.mkdir(parents=True, exist_ok=True)
    members, targets = _chosen(path, renamed)
    zip_copy.copy(path, members, targets, target, job.progress)


def _chosen(path: RawPath, renamed: Mapping[str, str]) -> tuple[zip_directory.Members, list[str]]:
    """Members by their place in the zip, and their new names."""
    directory = _directory(path)
    missing = next((name for name in renamed if name not in directory.rows), None)
    if missing is not None:
        raise _incomplete(path, missing)
    rows = np.fromiter(map(directory.rows.__getitem__, renamed), dtype=np.intp, count=len(renamed))
    order = np.argsort(directory.members.offsets[rows], kind="stable")
    members = directory.members.at(rows[order])
    for problem, flags in (
        (_link, (members.attributes >> 16 & _FILE_TYPE) == stat.S_IFLNK),
        (_bomb, members.sizes > _MAX_RATIO * members.packed + 1024),
    ):
        if flags.any():
            raise problem(path, members.names[int(flags.argmax())])
    targets = list(renamed.values())
    return members, [targets[place] for place in order.tolist()]


@contextmanager
def new_member(target: Path, name: str, *, compressed: bool = True) -> Iterator[IO[bytes]]:
    """Make a zip with a single member and give the stream that fills it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with (
        zipfile.ZipFile(target, "x", method) as archive,
        archive.open(name, "w", force_zip64=True) as stream,
    ):
        yield stream


def _regular(directory: Mapping[str, zipfile.ZipInfo], path: RawPath, name: str) -> zipfile.ZipInfo:
    if name not in directory:
        raise _incomplete(path, name)
    info = directory[name]
    if stat.S_ISLNK(info.external_attr >> 16):
        raise _link(path, name)
    if info.file_size > _MAX_RATIO * info.compress_size + 1024:
        raise _bomb(path, name)
    return info


def _incomplete(path: RawPath, name: str) -> DataProblem:
    return RawDataProblem(f"{path} is incomplete", f"it holds no {name}")


def _link(path: RawPath, name: str) -> DataProblem:
    return DataProblem(f"{path} was not taken", f"its member {name} is a link")


def _bomb(path: RawPath, name: str) -> DataProblem:
    return DataProblem(f"{path} was not taken", f"its member {name} claims to inflate beyond all measure")


def safe_path(name: str) -> Path:
    """A member's name as a path below the folder it is extracted to.

    Raises:
        DataProblem: it would lie outside.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise DataProblem(f"Archive member {name!r} was not taken", "it would lie outside of its folder")
    return Path(path)
