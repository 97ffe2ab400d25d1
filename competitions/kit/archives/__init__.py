"""Archives of raw data: members of zips taken out safely, or moved to another zip without inflating them.

7z is in `sevenzip`, tar in `tars`, a zip used as a folder in `zip_tree`.
"""

from __future__ import annotations

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO

from competitions.raw import RawDataProblem, RawPath
from competitions.task import Preparation
from foundation.problems import DataProblem

_WORKERS = 4
_BATCH = 256
_MAX_RATIO = 1100  # deflate cannot do better than 1032:1, so a member that claims more lies
_BLOCK = 1 << 20
_STEP = 1000
_LOCAL = struct.Struct("<26x2H")  # a local header, which ends with the lengths of name and extra field
_ENCRYPTED = 0x1
_MODE = 0o100644 << 16


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
    return [name for name in _members(path) if not name.endswith("/")]


def _members(path: RawPath) -> Mapping[str, zipfile.ZipInfo]:
    """The members of a zip by name; the last one where a name stands twice."""
    if not isinstance(path, Path):
        return _read_members(path)
    found = path.stat()
    return _read_members(path, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=1)  # a task asks several times for the archive it works on
def _read_members(path: RawPath, *state: int) -> Mapping[str, zipfile.ZipInfo]:
    del state  # a changed file is read anew
    with opened(path) as archive:
        return _by_name(archive)


def ordered_by_checksum(path: RawPath, names: Iterable[str]) -> list[str]:
    """Names of members in an order that follows from checksums of their bytes, which reveals nothing about the names.

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
    members, full_name = _members(path), _full_name(path, name)
    if full_name not in members:
        raise _incomplete(path, name)
    return members[full_name].file_size


def _full_name(path: RawPath, name: str) -> str:
    # whoever opens a name that no member has gets the error
    return next((found for found in files_in(path) if PurePosixPath(found).name == name), name)


def extract_as(job: Preparation, path: RawPath, targets: Mapping[str, Path]) -> None:
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
                job.progress(path.name, done, len(wanted))
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

    They are put in the order of their new names and all get the same time: where a member lay in the
    source, and since when, may show its class.

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
    pairs.sort(
        key=lambda pair: pair[0].header_offset
    )  # an archive within an archive is read from front to back
    target.parent.mkdir(parents=True, exist_ok=True)
    with path.open("rb") as source, target.open("xb") as made:
        for done, (info, copy) in enumerate(pairs, start=1):
            made.seek(copy.header_offset)
            made.write(copy.FileHeader())
            _copy_packed(source, info, made)
            if done % _STEP == 0 or done == len(pairs):
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
        raise DataProblem(f"Archive member {info.filename!r} was not taken", "it is encrypted")
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
        raise DataProblem(f"{path} was not taken", f"its member {name} is a link")
    if info.file_size > _MAX_RATIO * info.compress_size + 1024:
        raise DataProblem(f"{path} was not taken", f"its member {name} claims to inflate beyond all measure")
    return info


def _incomplete(path: RawPath, name: str) -> DataProblem:
    return RawDataProblem(f"{path} is incomplete", f"it holds no {name}")


def safe_path(name: str) -> Path:
    """A member's name as a path below the folder it is extracted to.

    Raises:
        DataProblem: it would lie outside.
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts:
        raise DataProblem(f"Archive member {name!r} was not taken", "it would lie outside of its folder")
    return Path(path)
