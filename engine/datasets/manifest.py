"""Manifests: every file of a prepared tree with its size and SHA-256, written while the tree is made.

A manifest is `manifest.jsonl` beside `public/` and `private/`: a first line about the dataset, with named properties,
then a line for each file and for each empty folder. The marker holds the manifest's own sum.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from competitions.kit.archives import safe_path
from engine.datasets.steps import ByteProgress, ReportStep
from engine.layout import DESCRIPTION, MANIFEST, MARKER, DatasetFolder, prepared_with
from foundation.files import replacing
from foundation.problems import DataProblem, reading

_FORMAT = 1
_SIDES = ("public/", "private/")
_THREADS = 4
_BLOCK = 1 << 20
_BATCH_FILES = 256


class ListedFile(msgspec.Struct, frozen=True, gc=False):
    """A file of the tree, by its path below it; an empty folder ends with `/` and has no sum."""

    path: str
    bytes: int = 0
    sha256: str = ""

    @property
    def is_folder(self) -> bool:
        """Whether it is an empty folder."""
        return self.path.endswith("/")


class _Header(msgspec.Struct, frozen=True):
    format: int
    competition_id: str
    edition: str
    properties: dict[str, str] = {}


@dataclass(frozen=True)
class Seal:
    """A manifest as markers name it: its own SHA-256, and how many files of how many bytes it lists."""

    sha256: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """What a prepared tree consists of.

    Attributes:
        properties: what is known of the tree as a whole, by name.
        entries: files and empty folders, by path.
    """

    competition_id: str
    edition: str
    properties: Mapping[str, str]
    entries: tuple[ListedFile, ...] = field(repr=False)

    @cached_property
    def bytes(self) -> int:
        """What the files have together."""
        return sum(entry.bytes for entry in self.entries)


@dataclass(frozen=True)
class TreeDifferences:
    """How a tree differs from its manifest, by paths."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()


def write(
    prepared: Path,
    competition_id: str,
    edition: str,
    properties: Mapping[str, str],
    report: ReportStep | None = None,
) -> Seal:
    """Write the manifest of a tree from what is there.

    Raises:
        DataProblem: something in it is no file or folder, or has a name that is not UTF-8.
    """
    there = dict(_tree(prepared))
    progress = ByteProgress(sum(size for size in there.values() if size is not None), report)
    files = [path for path, size in there.items() if size is not None]
    sums = dict(zip(files, _sums(prepared, files, progress), strict=True))
    entries = [
        ListedFile(path) if size is None else ListedFile(path, size, sums[path])
        for path, size in sorted(there.items())
    ]
    header = _Header(_FORMAT, competition_id, edition, dict(properties))
    encoder = msgspec.json.Encoder()
    digest = hashlib.sha256()
    with replacing(prepared / MANIFEST) as stream:
        for line in (header, *entries):
            text = encoder.encode(line) + b"\n"
            digest.update(text)
            stream.write(text)
    return Seal(digest.hexdigest(), len(files), progress.total)


def parse(content: bytes, name: str) -> Manifest:
    """Read a manifest, whose `name` is for errors.

    Raises:
        DataProblem: it is none, or lists what would lie outside of the tree or twice.
    """
    first, _, rest = content.partition(b"\n")
    try:
        header = msgspec.json.decode(first, type=_Header)
        entries = msgspec.json.Decoder(ListedFile).decode_lines(rest)
    except msgspec.DecodeError as error:
        raise DataProblem(f"{name} is not a manifest", str(error)) from error
    if header.format != _FORMAT:
        raise DataProblem(
            f"{name} can't be read", f"its format is {header.format}, not {_FORMAT}", "Use a newer version."
        )
    seen: set[str] = set()
    for entry in entries:
        plain = safe_path(entry.path).as_posix() + ("/" if entry.is_folder else "")
        if entry.path != plain or not entry.path.startswith(_SIDES) or entry.bytes < 0 or entry.path in seen:
            raise DataProblem(f"{name} is not a manifest", f"it lists {entry.path!r}")
        seen.add(entry.path)
    return Manifest(header.competition_id, header.edition, header.properties, tuple(entries))


def of_dataset(folder: DatasetFolder) -> Manifest | None:
    """Read the manifest of a prepared dataset; None where MLE-bench or an older version prepared it.

    Raises:
        DataProblem: it is damaged, or not the one that the marker names.
    """
    seal = seal_of(prepared_with(folder) or {})
    if seal is None:
        return None
    with reading(folder.manifest):
        content = folder.manifest.read_bytes()
    check_seal(content, seal, str(folder.manifest))
    return parse(content, str(folder.manifest))


def check_seal(content: bytes, seal: Seal, name: str) -> None:
    """Compare a manifest with its own sum.

    Raises:
        DataProblem: it is another one.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != seal.sha256:
        raise DataProblem(
            f"{name} is not the one that belongs to this dataset",
            f"expected SHA-256 {seal.sha256}, found {found}",
            "Prepare or import the dataset again.",
        )


def seal_of(marker: Mapping[str, object]) -> Seal | None:
    """Return how a marker names the manifest; None for one without."""
    try:
        return msgspec.convert(marker.get("manifest"), Seal)
    except msgspec.ValidationError:
        return None


def compare(
    prepared: Path, manifest: Manifest, *, deep: bool, report: ReportStep | None = None
) -> TreeDifferences:
    """Compare a tree with its manifest: paths, sizes and the description; with `deep` the sum of every file."""
    there = dict(_tree(prepared))
    listed = {entry.path: entry for entry in manifest.entries}
    same = [entry for path, entry in listed.items() if path in there and there[path] in (None, entry.bytes)]
    to_read = [entry for entry in same if not entry.is_folder and (deep or entry.path == DESCRIPTION)]
    progress = ByteProgress(sum(entry.bytes for entry in to_read), report)
    sums = _sums(prepared, [entry.path for entry in to_read], progress)
    changed = {path for path, entry in listed.items() if there.get(path) not in (None, entry.bytes)}
    changed |= {entry.path for entry, found in zip(to_read, sums, strict=True) if found != entry.sha256}
    return TreeDifferences(
        tuple(sorted(listed.keys() - there.keys())),
        tuple(sorted(changed)),
        # A folder that is empty now is told of by what is missing in it.
        tuple(sorted(path for path in there.keys() - listed.keys() if there[path] is not None)),
    )


def sha256_of(path: Path, progress: ByteProgress | None = None) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            if progress is not None:
                progress.add(path.name, len(block))
    return digest.hexdigest()


def _sums(prepared: Path, paths: Sequence[str], progress: ByteProgress) -> list[str]:
    """The SHA-256 of each file, in order."""

    def of_batch(batch: Sequence[str]) -> list[str]:
        return [sha256_of(prepared / path, progress) for path in batch]

    batches = [paths[start : start + _BATCH_FILES] for start in range(0, len(paths), _BATCH_FILES)]
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            return [one for found in pool.map(of_batch, batches) for one in found]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _tree(prepared: Path) -> Iterator[tuple[str, int | None]]:
    """Go through the files of a tree with their sizes, and through its empty folders, which have none."""
    start = len(str(prepared)) + 1
    for base, folders, names in os.walk(prepared, onerror=_refuse):
        here = base[start:]
        if not here:
            names = [name for name in names if name not in (MARKER, MANIFEST)]
        before = f"{here}/" if here else ""
        for name in names:
            path = before + name
            yield _utf8(path), _size_of(os.path.join(base, name))  # noqa: PTH118 - called for every one of millions
        for name in folders:
            if os.path.islink(os.path.join(base, name)):  # noqa: PTH114, PTH118 - as above
                raise _refused(prepared / before / name, "it is a link to a folder")
        if here and not names and not folders:
            yield _utf8(before), None


def _size_of(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - called for every one of millions
    except OSError as error:
        raise _refused(Path(path), error.strerror or str(error)) from error


def _utf8(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise _refused(Path(path), "its name is not UTF-8") from error
    return path


def _refuse(error: OSError) -> None:
    raise _refused(Path(str(error.filename)), error.strerror or str(error)) from error


def _refused(path: Path, why: str) -> DataProblem:
    return DataProblem(f"{str(path)!r} can't be listed in a manifest", why)
