"""Zips that are consumed while they are extracted: their marker, and cleaning up after a killed extraction.

Freeing a member's space keeps the zip's length and directory, so that it still looks whole. The marker identifies the
zip; it stays as long as the folder with the extracted files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.competitions.kit.archives.zip_tree import ZipTree
from mlebench_console.engine.datasets.prepared import checksums
from mlebench_console.engine.datasets.prepared.workspace import TRASH, discard
from mlebench_console.engine.layout import DatasetFolder
from mlebench_console.foundation.files import write_json
from mlebench_console.foundation.problems import DataProblem

_LOCAL_HEADER_BYTES = 30
_LEFTOVERS = (".consuming.json", ".raw.partial", ".prepared*.partial", f"{TRASH}*")
_BLOCK_BYTES = 512  # what `st_blocks` counts


class Marker(msgspec.Struct, frozen=True):
    """The zip that is being consumed.

    Attributes:
        zip: its name.
        size: its length, which stays.
        members: a sum over the names, sizes and CRCs in its directory, which stays too.
        md5: its MD5 when it was whole, if known.
    """

    zip: str
    size: int
    members: str
    md5: str | None = None

    def is_of(self, path: Path) -> bool:
        """Return whether a zip is the marked one."""
        return (
            path.name == self.zip and path.stat().st_size == self.size and members_sum(path) == self.members
        )


def mark(folder: DatasetFolder, path: Path, md5: str | None) -> None:
    """Mark a zip, before any of its space is freed."""
    marker = Marker(path.name, path.stat().st_size, members_sum(path), md5)
    write_json(folder.consuming, msgspec.to_builtins(marker))


def marked(folder: DatasetFolder) -> Marker | None:
    """Read the marker; None without a valid one."""
    try:
        return msgspec.json.decode(folder.consuming.read_bytes(), type=Marker)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def unsettled(data_dir: Path) -> set[str]:
    """List the folders of a data directory with files of killed preparations."""
    return {path.parent.name for pattern in _LEFTOVERS for path in data_dir.glob(f"*/{pattern}")}


def settle(folder: DatasetFolder) -> None:
    """Clean up after a killed preparation; the caller must hold the claim.

    Extracted files are kept unless there is another zip; a zip whose space was freed, and whose content was not
    extracted completely, is removed, because it is useless. Afterwards a marker, if any, belongs to the existing zip or
    to the extracted one.
    """
    for path in (*checksums.stale_records(folder.root), *folder.root.glob(f"{TRASH}*")):
        discard(folder, path)
    marker = marked(folder)
    zips = folder.zips()
    if folder.whole_raw.is_dir():
        for path in zips:
            if (marker is not None and marker.is_of(path)) or is_hollow(path):
                _remove_zip(path)
            else:
                discard(folder, folder.whole_raw)  # extracted from another zip than this one, which is whole
                folder.consuming.unlink(missing_ok=True)
                break
        return
    if marker is not None and not any(marker.is_of(path) for path in zips):
        marker = None
    if marker is None:
        folder.consuming.unlink(missing_ok=True)
        for path in zips:
            if not is_hollow(path):
                continue
            if folder.partial_raw.is_dir() and _holds_what_is_freed(folder.partial_raw, path):
                mark(folder, path, None)
                return
            _remove_zip(path)
        if folder.partial_raw.is_dir():
            discard(folder, folder.partial_raw)


def is_hollow(path: Path) -> bool:
    """Return whether some of a zip's space has been freed, so that members read as zeros."""
    found = path.stat()
    if found.st_blocks * _BLOCK_BYTES >= found.st_size:
        return False
    try:
        with zip_tree.opened(path) as tree:
            return bool(_freed(tree))
    except DataProblem:
        return False  # damaged in another way, which is reported when it is read


def members_sum(path: Path) -> str:
    """Return a sum over the directory of a zip.

    Raises:
        DataProblem: it has no directory.
    """
    digest = hashlib.sha256()
    with zip_tree.opened(path) as tree:
        for place in tree.files:
            member = tree.member(place)
            digest.update(f"{place}\0{member.header_offset}\0{member.file_size}\0{member.CRC}\n".encode())
    return digest.hexdigest()


def _freed(tree: ZipTree) -> list[str]:
    with tree.path.open("rb", buffering=0) as stream:

        def is_freed(place: str) -> bool:
            stream.seek(tree.member(place).header_offset)
            return not any(stream.read(_LOCAL_HEADER_BYTES))

        return [place for place in tree.files if is_freed(place)]


def _holds_what_is_freed(extracted: Path, path: Path) -> bool:
    with zip_tree.opened(path) as tree:
        return all(
            (extracted / place).is_file()
            and (extracted / place).stat().st_size == tree.member(place).file_size
            for place in _freed(tree)
        )


def _remove_zip(path: Path) -> None:
    path.unlink()
    checksums.forget_zip(path)
