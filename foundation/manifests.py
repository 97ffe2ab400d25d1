"""Manifest files of prepared datasets: every file of a tree with its size and SHA-256, secured by a seal.

The first line describes the dataset; then follows a line for each file and for each empty folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

import msgspec

from mlebench_console.foundation.problems import DataProblem

NAME = "manifest.jsonl"
FORMAT = 1
PUBLIC, PRIVATE = SIDES = ("public/", "private/")


class ListedFile(msgspec.Struct, frozen=True, gc=False):
    """A file of the tree by its path in it; the path of an empty folder ends with `/`, and it has no checksum."""

    path: str
    bytes: int = 0
    sha256: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether it is an empty folder."""
        return self.path.endswith("/")


class Header(msgspec.Struct, frozen=True):
    """The first line."""

    format: int
    competition_id: str
    edition: str
    properties: dict[str, str] = {}


@dataclass(frozen=True)
class Seal:
    """A marker's record of a manifest: its SHA-256, and the number and total size of the files that it lists."""

    sha256: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """The content of a prepared tree.

    Attributes:
        properties: properties of the whole tree, by name.
        entries: files and empty folders, by path.
    """

    competition_id: str
    edition: str
    properties: Mapping[str, str]
    entries: tuple[ListedFile, ...] = field(repr=False)

    @cached_property
    def bytes(self) -> int:
        """The total size of the files."""
        return sum(entry.bytes for entry in self.entries)


def parse(content: bytes, name: str) -> Manifest:
    """Parse a manifest; `name` is used in error messages.

    Raises:
        DataProblem: it is not a manifest, or lists a path outside the tree or twice.
    """
    first, _, rest = content.partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=Header)
        entries = msgspec.json.Decoder(ListedFile).decode_lines(rest)
    except msgspec.DecodeError as error:
        raise DataProblem(f"{name} is not a manifest", str(error)) from error
    if header.format != FORMAT:
        raise DataProblem(
            f"{name} can't be read", f"its format is {header.format}, not {FORMAT}", "Use a newer version."
        )
    seen: set[str] = set()
    for entry in entries:
        if not _is_plain(entry) or entry.bytes < 0 or entry.path in seen:
            raise DataProblem(f"{name} is not a manifest", f"it lists {entry.path!r}")
        seen.add(entry.path)
    return Manifest(header.competition_id, header.edition, header.properties, tuple(entries))


def check_seal(content: bytes, seal: Seal, name: str) -> None:
    """Compare a manifest with its seal.

    Raises:
        DataProblem: its checksum differs.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != seal.sha256:
        raise DataProblem(
            f"{name} does not belong to this dataset",
            f"expected SHA-256 {seal.sha256}, found {found}",
            "Prepare or import the dataset again.",
        )


def seal_of(marker: Mapping[str, object]) -> Seal | None:
    """Return the seal in a marker; None for one without."""
    try:
        return msgspec.convert(marker.get("manifest"), Seal)
    except msgspec.ValidationError:
        return None


def _is_plain(entry: ListedFile) -> bool:
    """Return whether a path is in normal form and below `public/` or `private/`."""
    path = PurePosixPath(entry.path)
    usual = path.as_posix() + ("/" if entry.is_folder else "")
    return (
        usual == entry.path
        and entry.path.startswith(SIDES)
        and ".." not in path.parts
        and "\\" not in entry.path
    )
