"""Write and compare manifests of prepared trees; their format is in `foundation.manifests`.

A manifest is `manifest.jsonl` beside `public/` and `private/`. The marker contains the manifest's own sum.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mlebench_console.engine.datasets.steps import ByteProgress, ReportStep
from mlebench_console.engine.layout import DESCRIPTION, MANIFEST, MARKER, DatasetFolder, prepared_with
from mlebench_console.foundation.files import replacing
from mlebench_console.foundation.manifests import (
    FORMAT,
    Header,
    ListedFile,
    Manifest,
    Seal,
    check_seal,
    parse,
    seal_of,
)
from mlebench_console.foundation.problems import DataProblem, reading
from mlebench_console.foundation.threads import in_threads

_THREADS = 4
_BLOCK = 1 << 20
_BATCH_FILES = 256


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
    """Write the manifest of a tree from its current files.

    Raises:
        DataProblem: an entry can't be read, is a link to a folder, or has a name that is not UTF-8.
    """
    found = dict(_tree(prepared))
    progress = ByteProgress(sum(size for size in found.values() if size is not None), report)
    files = [path for path, size in found.items() if size is not None]
    sums = dict(zip(files, _sums(prepared, files, progress), strict=True))
    entries = [
        ListedFile(path) if size is None else ListedFile(path, size, sums[path])
        for path, size in sorted(found.items())
    ]
    header = Header(FORMAT, competition_id, edition, dict(properties))
    encoder = msgspec.json.Encoder()
    digest = hashlib.sha256()
    with replacing(prepared / MANIFEST) as stream:
        for line in (header, *entries):
            text = encoder.encode(line) + b"\n"
            digest.update(text)
            stream.write(text)
    return Seal(digest.hexdigest(), len(files), progress.total)


def of_dataset(folder: DatasetFolder) -> Manifest | None:
    """Read the manifest of a prepared dataset; None where MLE-bench prepared it.

    Raises:
        DataProblem: it is damaged, or does not match the sum in the marker.
    """
    seal = seal_of(prepared_with(folder) or {})
    if seal is None:
        return None
    with reading(folder.manifest):
        content = folder.manifest.read_bytes()
    check_seal(content, seal, str(folder.manifest))
    return parse(content, str(folder.manifest))


def compare(
    prepared: Path, manifest: Manifest, *, deep: bool, report: ReportStep | None = None
) -> TreeDifferences:
    """Compare a tree with its manifest: paths, sizes and the description; with `deep` the sum of every file."""
    found = dict(_tree(prepared))
    listed = {entry.path: entry for entry in manifest.entries}
    same = [entry for path, entry in listed.items() if path in found and found[path] in (None, entry.bytes)]
    to_read = [entry for entry in same if not entry.is_folder and (deep or entry.path == DESCRIPTION)]
    progress = ByteProgress(sum(entry.bytes for entry in to_read), report)
    sums = _sums(prepared, [entry.path for entry in to_read], progress)
    changed = {path for path, entry in listed.items() if found.get(path) not in (None, entry.bytes)}
    changed |= {entry.path for entry, sha256 in zip(to_read, sums, strict=True) if sha256 != entry.sha256}
    return TreeDifferences(
        tuple(sorted(listed.keys() - found.keys())),
        tuple(sorted(changed)),
        # A folder that became empty is reported by its missing files.
        tuple(sorted(path for path in found.keys() - listed.keys() if found[path] is not None)),
    )


def sha256_of(path: Path, progress: ByteProgress | None = None) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            if progress is not None:
                progress.add(path.name, len(block))
    return digest.hexdigest()


def _sums(prepared: Path, paths: Sequence[str], progress: ByteProgress) -> list[str]:
    """Return the SHA-256 of each file, in order."""

    def of_batch(batch: Sequence[str]) -> list[str]:
        return [sha256_of(prepared / path, progress) for path in batch]

    batches = [paths[start : start + _BATCH_FILES] for start in range(0, len(paths), _BATCH_FILES)]
    return [one for found in in_threads(of_batch, batches, _THREADS) for one in found]


def _tree(prepared: Path) -> Iterator[tuple[str, int | None]]:
    """Yield the files of a tree with their sizes, and its empty folders with None."""
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
