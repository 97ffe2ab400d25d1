"""Mirrors: copies of prepared datasets, with each file compared with its manifest while it is copied.

A mirror has an index, `datasets.json`, and the trees as in a data directory, so that a lab needs to download and
prepare only once. It contains the answers too, for everyone who can read it.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import msgspec

from mlebench_console.competitions import registry
from mlebench_console.competitions.kit.archives import safe_path
from mlebench_console.competitions.model import EDITIONS, Competition, Edition, edition_named
from mlebench_console.engine.claims import claimed_folder
from mlebench_console.engine.datasets.prepared import checksums, manifest
from mlebench_console.engine.datasets.prepared.stores import (
    Bucket,
    Folder,
    Store,
    read_whole,
    unreachable,
)
from mlebench_console.engine.datasets.prepared.workspace import put_in_place, set_one_time, workspace
from mlebench_console.engine.datasets.steps import ByteProgress, ReportStep
from mlebench_console.engine.downloads import PartialFile, TemporaryFailure, Wait, retrying, sleep
from mlebench_console.engine.layout import (
    MANIFEST,
    MARKER,
    DatasetFolder,
    dataset_folder,
    is_prepared,
    prepared_with,
)
from mlebench_console.engine.space import naming_full_disks, require_space
from mlebench_console.foundation import manifests
from mlebench_console.foundation.clock import SystemClock
from mlebench_console.foundation.files import PARTIAL_SUFFIX, replacing, write_json
from mlebench_console.foundation.manifests import ListedFile, Manifest, Seal
from mlebench_console.foundation.problems import DataProblem, UsageProblem, reading
from mlebench_console.foundation.threads import in_threads

INDEX = "datasets.json"
_FORMAT = 1
_AT_ONCE = 8
_BLOCK = 1 << 20
_SHORT = 12
_PATIENCE = 60.0


@dataclass(frozen=True)
class Mirrored:
    """One dataset of a mirror.

    Attributes:
        path: of its tree in the mirror.
        marker: how it was prepared.
        seal: of its manifest, from the marker.
    """

    competition_id: str
    edition: Edition
    path: str
    marker: dict[str, Any]
    seal: Seal

    @property
    def key(self) -> tuple[str, str]:
        """Its competition and edition."""
        return self.competition_id, self.edition


Report = Callable[[Mirrored, str, int, int], None]


class _Index(msgspec.Struct):
    format: int
    datasets: list[_IndexEntry]


class _IndexEntry(msgspec.Struct):
    path: str
    marker: dict[str, Any]


def datasets_of(store: Store) -> list[Mirrored]:
    """List the datasets of a mirror; in a folder without an index, those that are prepared with a manifest.

    Raises:
        Problem: it is not a mirror, or can't be read.
    """
    if isinstance(store, Folder) and not (store.root / INDEX).exists():
        return datasets_in(store.root)
    try:
        index = msgspec.json.decode(read_whole(store, INDEX), type=_Index)
    except msgspec.DecodeError as error:
        raise DataProblem(f"{store.name}/{INDEX} is not the index of a mirror", str(error)) from error
    if index.format != _FORMAT:
        raise DataProblem(
            f"{store.name} can't be read",
            f"its format is {index.format}, not {_FORMAT}",
            "Use a newer version.",
        )
    return [_mirrored(one) for one in index.datasets]


def datasets_in(data_dir: Path) -> list[Mirrored]:
    """List the datasets of a data directory that are prepared with a manifest, of readable competitions."""
    found = []
    for competition, edition in product(registry.readable(registry.all_ids())[0], EDITIONS):
        folder = dataset_folder(competition, data_dir, edition)
        marker = prepared_with(folder) or {}
        seal = manifests.seal_of(marker)
        if seal is not None and is_prepared(competition, folder):
            path = f"{competition.id}/{folder.prepared.name}"
            found.append(Mirrored(competition.id, edition, path, marker, seal))
    return found


def mirror(
    source: Path, chosen: Sequence[Mirrored], place: str, report: Report
) -> Iterator[tuple[Mirrored, bool]]:
    """Copy datasets of a data directory to a folder or to S3; yield each, and whether it had to be copied.

    Other datasets there stay. `report` is called with the dataset and the copied bytes.

    Raises:
        Problem: one does not match its manifest, or the target can't be written.
    """
    if urlsplit(place).scheme == "s3":
        yield from _to_bucket(source, chosen, Bucket(place), report)
    elif urlsplit(place).scheme:
        raise UsageProblem(f"{place} can't be written", "", "Give a folder or s3://BUCKET/PREFIX.")
    else:
        yield from _to_folder(source, chosen, Path(place).expanduser().absolute(), report)


def import_dataset(
    competition: Competition,
    folder: DatasetFolder,
    store: Store,
    *,
    keep_free: int = 0,
    report: ReportStep,
    wait: Wait = sleep,
) -> None:
    """Copy one dataset into a data directory, continuing an earlier, killed import.

    The dataset appears in one step, after every file matches the manifest, and the tables their known checksums.

    Raises:
        Problem: it is not in the mirror, can't be read, is damaged, or does not fit.
    """
    wanted = (competition.id, folder.edition)
    found = next((one for one in datasets_of(store) if one.key == wanted), None)
    if found is None:
        raise DataProblem(
            "it was not imported",
            f"{store.name} has no edition {folder.edition} of it",
            subject=competition.id,
        )
    with claimed_folder(folder.root, folder.claim, competition.id), workspace(folder) as work:
        _copy(competition, folder, store, found, work, keep_free, report, wait)


def is_there(competition: Competition, folder: DatasetFolder, found: Mirrored) -> bool:
    """Return whether a folder has the same prepared tree, by the sum of its manifest."""
    return is_prepared(competition, folder) and manifests.seal_of(prepared_with(folder) or {}) == found.seal


def write_archive(source: Path, found: Sequence[Mirrored], target: Path, report: ReportStep) -> None:
    """Write datasets of a data directory into a tar archive, which appears in one step.

    Raises:
        Problem: one does not match its manifest, or the disk is full.
    """
    progress = ByteProgress(sum(one.seal.bytes for one in found), report)
    require_space(target.parent, progress.total)
    with (
        naming_full_disks(target.parent),
        replacing(target) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, INDEX, json.dumps(_index_of(found)).encode())
        for one in found:
            listed, content = _manifest_of(Folder(source), one)
            _add(archive, f"{one.path}/{MANIFEST}", content)
            for entry in listed.entries:
                if not entry.is_folder:
                    _add_file(archive, source, one, entry)
                    progress.add(entry.path, entry.bytes)


def _to_folder(
    source: Path, chosen: Sequence[Mirrored], target: Path, report: Report
) -> Iterator[tuple[Mirrored, bool]]:
    """Copy into a folder, which can be used as a data directory too."""
    if target == source:
        raise UsageProblem(f"{target} can't be its own mirror", "", "Give another folder.")
    for one in chosen:
        competition = registry.get(one.competition_id)
        folder = DatasetFolder(target / one.competition_id, one.edition)
        copied = not is_there(competition, folder, one)
        if copied:
            with claimed_folder(folder.root, folder.claim, one.competition_id), workspace(folder) as work:
                _copy(competition, folder, Folder(source), one, work, 0, partial(report, one), sleep)
            write_json(target / INDEX, _index_of(datasets_in(target)))
        yield one, copied


def _to_bucket(
    source: Path, chosen: Sequence[Mirrored], bucket: Bucket, report: Report
) -> Iterator[tuple[Mirrored, bool]]:
    """Upload to S3.

    Each tree gets a folder named by its manifest, so that readers of an earlier tree find all of its files until the
    index refers to the new one.
    """
    known = {one.key: one for one in datasets_of(bucket)} if bucket.has(INDEX) else {}
    for one in chosen:
        former = known.get(one.key)
        copied = former is None or former.seal != one.seal
        if copied:
            known[one.key] = _upload(source, one, bucket, report)
            bucket.write(INDEX, json.dumps(_index_of(list(known.values()))).encode())
        if former is not None and copied:
            for name in bucket.sizes(former.path):
                bucket.remove(f"{former.path}/{name}")
        yield one, copied


def _upload(source: Path, found: Mirrored, bucket: Bucket, report: Report) -> Mirrored:
    listed, content = _manifest_of(Folder(source), found)
    copy = replace(found, path=f"{found.path}.{found.seal.sha256[:_SHORT]}")
    there = bucket.sizes(copy.path)
    progress = ByteProgress(listed.bytes, partial(report, found))

    def upload(entry: ListedFile) -> None:
        path = source / found.path / entry.path
        if there.get(entry.path) != entry.bytes:
            with reading(path):
                if manifest.sha256_of(path) != entry.sha256:
                    raise _differs(found, path)
            _retried(lambda: bucket.upload(f"{copy.path}/{entry.path}", path), bucket, sleep)
        progress.add(entry.path, entry.bytes)

    list(in_threads(upload, [entry for entry in listed.entries if not entry.is_folder], _AT_ONCE))
    bucket.write(f"{copy.path}/{MANIFEST}", content)
    return copy


def _copy(
    competition: Competition,
    folder: DatasetFolder,
    store: Store,
    found: Mirrored,
    work: Path,
    keep_free: int,
    report: ReportStep,
    wait: Wait,
) -> None:
    listed, content = _manifest_of(store, found)
    before = f".import.{folder.prepared.name}."
    staging = folder.root / f"{before}{found.seal.sha256[:_SHORT]}{PARTIAL_SUFFIX}"
    for left in folder.root.glob(f"{before}*{PARTIAL_SUFFIX}"):
        if left != staging:
            shutil.rmtree(left)  # from a killed import of another tree, as we hold the claim
    missing = [entry for entry in listed.entries if not _is_whole(staging / entry.path, entry)]
    progress = ByteProgress(listed.bytes, report)
    progress.add("", listed.bytes - sum(entry.bytes for entry in missing))
    require_space(folder.root, sum(entry.bytes for entry in missing), keep_free=keep_free)

    def fetch(entry: ListedFile) -> None:
        target = staging / entry.path
        if entry.is_folder:
            target.mkdir(parents=True, exist_ok=True)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(store, found, entry, target, progress, wait)

    list(in_threads(fetch, missing, _AT_ONCE))
    for side in ("public", "private"):
        (staging / side).mkdir(parents=True, exist_ok=True)
    if found.marker.get("verified") and folder.edition == "v1":
        checksums.check_known(competition, checksums.checksums_of(staging))
    set_one_time(staging / "public")
    (staging / MANIFEST).write_bytes(content)
    write_json(staging / MARKER, found.marker)
    staging.rename(work / "prepared")
    put_in_place(work, folder)


def _is_whole(path: Path, entry: ListedFile) -> bool:
    """Return whether a file was copied before: it gets its name only when it is complete."""
    return path.is_dir() if entry.is_folder else path.is_file() and path.stat().st_size == entry.bytes


def _fetch(
    store: Store, found: Mirrored, entry: ListedFile, target: Path, progress: ByteProgress, wait: Wait
) -> None:
    """Copy a file, continuing where an earlier try was interrupted.

    Raises:
        DataProblem: it does not match the manifest.
        EnvironmentProblem: the store could not be read after several retries.
    """
    partial = PartialFile(target.with_name(f".{target.name[:200]}.partial~"), "sha256")
    if partial.size > entry.bytes:
        partial.remove()
    at = partial.size
    progress.add(entry.path, at)

    def receive() -> None:
        nonlocal at
        chunks = store.chunks(f"{found.path}/{entry.path}", at) if at < entry.bytes else ()
        for there in partial.receive(chunks):
            progress.add(entry.path, there - at)
            at = there
            if at > entry.bytes:
                break
        if at < entry.bytes:
            raise TemporaryFailure(f"{at:,} of {entry.bytes:,} bytes of {entry.path} arrived")

    _retried(receive, store, wait, partial.gained)
    if at != entry.bytes or partial.digest() != entry.sha256:
        partial.remove()
        raise _differs(found, f"{store.name}/{found.path}/{entry.path}")
    partial.path.rename(target)


def _retried(
    call: Callable[[], None], store: Store, wait: Wait, gained: Callable[[], int] = lambda: 0
) -> None:
    """Call until it succeeds, for about a minute without progress.

    Raises:
        EnvironmentProblem: it failed for too long.
    """
    try:
        retrying(call, gained, patience=_PATIENCE, wait=wait, clock=SystemClock())
    except TemporaryFailure as cut:
        raise unreachable(store, cut) from None


def _manifest_of(store: Store, found: Mirrored) -> tuple[Manifest, bytes]:
    """Read the manifest of a mirror's dataset; return its text too.

    Raises:
        Problem: it can't be read, or does not match the index.
    """
    path = f"{found.path}/{MANIFEST}"
    content = read_whole(store, path)
    manifests.check_seal(content, found.seal, f"{store.name}/{path}")
    listed = manifests.parse(content, f"{store.name}/{path}")
    if (listed.competition_id, listed.edition) != found.key:
        raise DataProblem(
            f"{store.name}/{path} is of another dataset", f"{listed.competition_id}, edition {listed.edition}"
        )
    return listed, content


def _mirrored(entry: _IndexEntry) -> Mirrored:
    seal = manifests.seal_of(entry.marker)
    competition_id, edition = (str(entry.marker.get(key)) for key in ("competition_id", "edition"))
    if seal is None or edition not in EDITIONS or safe_path(entry.path).as_posix() != entry.path:
        raise DataProblem(f"the index of a mirror can't be read: its entry {entry.path!r} is not valid")
    return Mirrored(competition_id, edition_named(edition), entry.path, entry.marker, seal)


def _index_of(found: Sequence[Mirrored]) -> dict[str, Any]:
    entries = sorted(
        ({"path": one.path, "marker": one.marker} for one in found), key=lambda one: str(one["path"])
    )
    return {"format": _FORMAT, "datasets": entries}


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _add_file(archive: tarfile.TarFile, source: Path, found: Mirrored, entry: ListedFile) -> None:
    path = source / found.path / entry.path
    member = tarfile.TarInfo(f"{found.path}/{entry.path}")
    member.size = entry.bytes
    with reading(path), path.open("rb") as stream:
        summing = _Summing(stream)
        archive.addfile(member, summing)
        if summing.read(1) or summing.digest.hexdigest() != entry.sha256:
            raise _differs(found, path)


class _Summing(io.RawIOBase):
    """A stream that computes its SHA-256 while it is read."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__()
        self.digest = hashlib.sha256()
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(size)
        self.digest.update(content)
        return content


def _differs(found: Mirrored, path: Path | str) -> DataProblem:
    return DataProblem(
        f"{path} does not match its manifest",
        "its content differs",
        "Verify it where it was prepared: mlebench-console datasets verify --deep",
        subject=found.competition_id,
    )
