"""Zip archives of raw data: safe extraction, and copying members to another zip without inflating them.

7z is in `sevenzip`, tar in `tars`, a zip read like a folder in `zip_tree`.
"""

from __future__ import annotations

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO

from mlebench_console.competitions.raw import RawDataProblem, RawPath, read_as
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.threads import in_threads

_WORKERS = 4
_BATCH = 256
_MAX_RATIO = 1100  # deflate cannot exceed 1032:1, so a member that claims more is false
_BLOCK = 1 << 20
_LOCAL = struct.Struct("<26x2H")  # a local header, which ends with the lengths of name and extra field
_ENCRYPTED = 0x1
_MODE = 0o100644 << 16
_FAULTS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


@contextmanager
def opened(path: RawPath) -> Iterator[zipfile.ZipFile]:
    """Open a zip for reading.

    Raises:
        DataProblem: it is not a zip, or is damaged.
    """
    with read_as("a zip", path, *_FAULTS), path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        yield archive


def files_in(path: RawPath) -> list[str]:
    """Return the names of a zip's members that are files, in the zip's order."""
    return [name for name in _members(path) if not name.endswith("/")]


def _members(path: RawPath) -> Mapping[str, zipfile.ZipInfo]:
    """Return the members of a zip by name; where a name occurs twice, the last one."""
    if not isinstance(path, Path):
        return _read_members(path)
    found = path.stat()
    return _read_members(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=1)  # a task lists the archive it works on several times
def _read_members(path: RawPath, *state: int) -> Mapping[str, zipfile.ZipInfo]:
    del state  # part of the cache key, so that a changed file is read again
    with opened(path) as archive:
        return _by_name(archive)


def ordered_by_checksum(path: RawPath, names: Iterable[str]) -> list[str]:
    """Return names of members in the order of their content's checksums, which reveals nothing about the names.

    Raises:
        DataProblem: a member is missing.
    """
    members = _members(path)
    try:
        return sorted(names, key=lambda name: members[name].CRC)
    except KeyError as error:
        raise _incomplete(path, str(error.args[0])) from error


def _by_name(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename: info for info in archive.infolist()}


@contextmanager
def opened_member(path: RawPath, name: str) -> Iterator[IO[bytes]]:
    """Open one file of a zip, in any of its folders, for reading from front to back."""
    full_name = _full_name(path, name)
    with opened(path) as archive, archive.open(_regular(_by_name(archive), path, full_name)) as stream:
        yield stream


def read_members(path: RawPath, names: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of each of the named files of a zip.

    Raises:
        DataProblem: a member is missing, is a link, is damaged, or inflates to more than it says.
    """
    with opened(path) as archive:
        members = _by_name(archive)
        for name in names:
            yield archive.read(_regular(members, path, name))


def member_size(path: RawPath, name: str) -> int:
    """Return the size of one file of a zip, in any of its folders, as the zip's directory states it.

    Raises:
        DataProblem: there is no such file.
    """
    members, full_name = _members(path), _full_name(path, name)
    if full_name not in members:
        raise _incomplete(path, name)
    return members[full_name].file_size


def _full_name(path: RawPath, name: str) -> str:
    # a name that no member has is returned as it is: opening it raises the error
    return next((found for found in files_in(path) if PurePosixPath(found).name == name), name)


def extract_as(job: Preparation, path: RawPath, targets: Mapping[str, Path]) -> None:
    """Extract the named members of a zip, each to its own path, several at a time.

    Raises:
        DataProblem: a member is missing, is a link, is damaged, or inflates to more than it says.
    """
    for folder in {target.parent for target in targets.values()}:
        folder.mkdir(parents=True, exist_ok=True)
    members = list(targets.items())
    # an archive inside another archive is best read once from front to back
    workers = _WORKERS if isinstance(path, Path) else 1
    # opening an archive reads its whole directory, so each worker opens it only a few times
    share = max(_BATCH, -(-len(members) // (4 * workers))) if workers > 1 else len(members)
    batches = [members[start : start + share] for start in range(0, len(members), max(share, 1))]
    done = 0
    for count in in_threads(lambda batch: _extract_batch(path, batch), batches, workers):
        done += count
        job.progress(path.name, done, len(members))


def _extract_batch(path: RawPath, batch: list[tuple[str, Path]]) -> int:
    with opened(path) as archive:
        members = _by_name(archive)
        chosen = [(_regular(members, path, name), target) for name, target in batch]
        create_empty(target for _, target in chosen)
        for info, target in sorted(chosen, key=lambda pair: pair[0].header_offset):
            with archive.open(info) as content, target.open("wb") as stream:
                shutil.copyfileobj(content, stream, _BLOCK)
    return len(batch)


def create_empty(files: Iterable[Path]) -> None:
    """Create empty files in this order, since the order of an archive's members may reveal their classes."""
    for file in files:
        file.open("xb").close()


def repack(job: Preparation, path: RawPath, target: Path, names: Mapping[str, str] | Iterable[str]) -> None:
    """Make a zip of some members of another one, copying their compressed bytes unchanged.

    Members are ordered by their new names and all get the same time: a member's position and time in the
    source may reveal its class.

    Args:
        job: whose progress hook to call.
        path: the source zip.
        target: the zip to make.
        names: member names, or a mapping from the name in the source to the name in the target.

    Raises:
        DataProblem: a member is missing, a link, encrypted, cut short or not where the source says.
    """
    renamed = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    members = _members(path)
    pairs = []
    for old, new in renamed.items():
        info = _regular(members, path, old)
        pairs.append((info, _renamed(info, new)))
    copies = sorted((copy for _, copy in pairs), key=lambda copy: copy.filename)
    end = 0
    for copy in copies:
        copy.header_offset = end
        end += len(copy.FileHeader()) + copy.compress_size
    # an archive inside another archive must be read from front to back
    pairs.sort(key=lambda pair: pair[0].header_offset)
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as source, target.open("xb") as made:
        for done, (info, copy) in enumerate(pairs, start=1):
            made.seek(copy.header_offset)
            made.write(copy.FileHeader())
            _copy_packed(source, info, made)
            job.progress(target.name, done, len(pairs))
        made.seek(end)
        with zipfile.ZipFile(made, "w") as archive:  # writes the directory where the stream stands
            archive.filelist = copies


def _renamed(info: zipfile.ZipInfo, name: str) -> zipfile.ZipInfo:
    renamed = zipfile.ZipInfo(name)
    renamed.compress_type = info.compress_type
    renamed.CRC = info.CRC
    renamed.compress_size = info.compress_size
    renamed.file_size = info.file_size
    renamed.external_attr = _MODE
    return renamed


def _copy_packed(source: IO[bytes], info: zipfile.ZipInfo, target: IO[bytes]) -> None:
    if info.flag_bits & _ENCRYPTED:
        raise DataProblem(f"Archive member {info.filename!r} was refused", "it is encrypted")
    source.seek(info.header_offset)
    head = source.read(_LOCAL.size)
    if len(head) < _LOCAL.size or not head.startswith(b"PK\3\4"):
        raise DataProblem(f"Archive member {info.filename!r} is not where the zip says", "the zip is damaged")
    source.read(sum(_LOCAL.unpack(head)))
    left = info.compress_size
    while left and (block := source.read(min(left, _BLOCK))):
        target.write(block)
        left -= len(block)
    if left:
        raise DataProblem(f"Archive member {info.filename!r} is cut short", "the zip is incomplete")


@contextmanager
def new_member(target: Path, name: str, *, compressed: bool = True) -> Iterator[IO[bytes]]:
    """Make a zip with a single member and yield the stream to write its content to."""
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
        raise DataProblem(f"{path} was refused", f"its member {name} is a link")
    if info.file_size > _MAX_RATIO * info.compress_size + 1024:
        raise DataProblem(
            f"{path} was refused", f"its member {name} claims to inflate by more than deflate allows"
        )
    return info


def _incomplete(path: RawPath, name: str) -> DataProblem:
    return RawDataProblem(f"{path} is incomplete", f"{name} is missing in it")


def safe_path(name: str) -> Path:
    """Return a member's name as a path relative to the folder it is extracted to.

    Raises:
        DataProblem: the path would lead outside that folder.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise DataProblem(f"Archive member {name!r} was refused", "it would be extracted outside its folder")
    return Path(path)
