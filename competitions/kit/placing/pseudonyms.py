"""New names for test items whose real ones can be looked up, also inside files, such as DICOM headers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from mlebench_console.competitions.raw import RawPath, is_regular, read_as, walk
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import DataProblem
from mlebench_console.foundation.threads import in_threads

_WORKERS = 4
_STEM = 12
_PATIENT = ((b"\x10\0\x10\0", b"PN"), (b"\x10\0\x20\0", b"LO"))  # tags and kinds of DICOM: name and number
_ROOT = "2.25."  # the root under which anyone may make unique identifiers for DICOM files


def uids(names: Iterable[str], key: bytes) -> dict[str, str]:
    """Return for each identifier a new one of equal length, always the same for the same key."""
    made = {}
    for name in names:
        places = len(name) - len(_ROOT)
        digest = hashlib.blake2b(name.encode(), key=hashlib.blake2b(key).digest()).digest()
        digits = str(int.from_bytes(digest))
        if not 0 < places <= len(digits) - 10:
            raise DataProblem(f"Identifier {name!r} cannot be renamed", "its length is unusual")
        # the last digits, which are uniformly distributed; the first one must not be 0
        made[name] = _ROOT + str(int(digits[-places]) % 9 + 1) + digits[len(digits) - places + 1 :]
    if len(set(made.values())) < len(made):
        raise DataProblem("Identifiers cannot be renamed", "two of them would become the same")
    return made


def file_names(names: Iterable[str], key: bytes) -> dict[str, str]:
    """Return for each file name a new one with the same suffix, always the same for the same key."""
    digests = {name: hashlib.blake2b(name.encode(), key=hashlib.blake2b(key).digest()) for name in names}
    made = {name: digest.hexdigest()[:_STEM] + Path(name).suffix for name, digest in digests.items()}
    if len(set(made.values())) < len(made):
        raise DataProblem("Files cannot be renamed", "two of them would become the same")
    return made


def place_renamed(job: Preparation, source: RawPath, target: Path, names: dict[str, str]) -> None:
    """Copy each folder under its new name, replacing the name inside the files as well.

    The part after the last dot of a name often is the patient's number, so it is replaced too, in DICOM's
    fields for the patient's name and number. Folders are made in the order of their new names.

    Raises:
        DataProblem: a folder is missing, or contains something that is neither file nor folder.
    """
    ordered = sorted(names.items(), key=lambda pair: pair[1])
    for _, new in ordered:
        (target / new).mkdir(parents=True, exist_ok=True)
    work = in_threads(lambda pair: _copy(job, source / pair[0], target / pair[1], *pair), ordered, _WORKERS)
    for done, _ in enumerate(work, start=1):
        job.progress(target.name, done, len(names))


def _copy(job: Preparation, source: RawPath, target: Path, old: str, new: str) -> None:
    if not source.is_dir():
        raise job.missing(source.name, source.parent)
    for here, names in walk(source):
        there = target / here.relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in names:
            if not is_regular(here / name):
                raise DataProblem(f"{here / name} was refused", "it is not a regular file")
            content = _renamed((here / name).read_bytes(), old.encode(), new.encode())
            (there / name.replace(old, new)).write_bytes(content)


def _renamed(content: bytes, old: bytes, new: bytes) -> bytes:
    number = old.rpartition(b".")[2]
    other = new[-len(number) :]
    size = len(number) + len(number) % 2  # values are padded to an even length
    for tag, kind in _PATIENT:
        for head in (tag + kind + size.to_bytes(2, "little"), tag + size.to_bytes(4, "little")):
            content = content.replace(head + number, head + other)
    return content.replace(old, new)


def place_unrecognisable(job: Preparation, pairs: Iterable[tuple[RawPath, Path]]) -> None:
    """Copy images with a few bytes appended, which viewers ignore, so that file hashes match no published file.

    Raises:
        DataProblem: an image is missing.
    """
    wanted = list(pairs)
    for folder in {target.parent for _, target in wanted}:
        folder.mkdir(parents=True, exist_ok=True)
    for done, _ in enumerate(in_threads(_copy_marked, wanted, _WORKERS), start=1):
        job.progress("pictures", done, len(wanted))


def _copy_marked(pair: tuple[RawPath, Path]) -> None:
    source, target = pair
    with read_as("an image", source, OSError):
        content = source.read_bytes()
    target.write_bytes(content + hashlib.blake2b(content, digest_size=16).digest())
