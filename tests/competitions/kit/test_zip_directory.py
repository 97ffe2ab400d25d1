"""The members of a zip are told as zipfile tells them, and moved wherever and however large they lie."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from competitions.kit import archives
from competitions.kit.archives import zip_copy, zip_directory
from competitions.task import silent
from foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

PLAIN = {"b/": b"", "b/2.txt": b"two" * 99, "a.txt": b"", "PK\1\2.txt": b"PK\1\2"}


def make_zip(path: Path, members: dict[str, bytes], *, before: bytes = b"", comment: bytes = b"") -> Path:
    path.write_bytes(before)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = comment
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda path: make_zip(path, PLAIN),
        lambda path: make_zip(path, {}),
        lambda path: make_zip(path, {"ä.txt": b"1", "b": b"2"}),
        lambda path: make_zip(path, {"a": b"1"}, comment=b"PK\1\2 and more"),
        lambda path: make_zip(path, {"a": b"1"}, before=b"#!/bin/sh\n"),
        lambda path: make_zip(path, {f"{number:05}": b"" for number in range(65_540)}),
    ],
    ids=["plain", "empty", "other letters", "comment", "behind other bytes", "very many"],
)
def test_members_are_told_as_zipfile_tells_them(make: object, tmp_path: Path) -> None:
    path = make(tmp_path / "s.zip")  # type: ignore[operator]  # one of the functions above
    members = zip_directory.read(path)
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    assert list(members.names) == [info.filename for info in infos]
    for column, attribute in (
        *((members.flags, "flag_bits"), (members.methods, "compress_type"), (members.crcs, "CRC")),
        *((members.packed, "compress_size"), (members.sizes, "file_size")),
        *((members.attributes, "external_attr"), (members.offsets, "header_offset")),
    ):
        assert column.tolist() == [getattr(info, attribute) for info in infos], attribute


def test_members_of_all_sizes_and_far_apart_are_moved_whole(make_job: MakeJob, tmp_path: Path) -> None:
    sizes = [0, 1, 5 << 20, 100, 70_000, 4 << 20, 7, 9 << 20, 3]
    members = {f"{number}": os.urandom(size) for number, size in enumerate(sizes)}
    source = make_zip(tmp_path / "s.zip", members)
    chosen = ["8", "2", "0", "3", "7", "6"]
    archives.repack(make_job(), source, tmp_path / "t.zip", {name: f"new/{name}" for name in chosen})
    with zipfile.ZipFile(tmp_path / "t.zip") as made:
        assert {name: made.read(name) for name in made.namelist()} == {
            f"new/{name}": members[name] for name in chosen
        }


@pytest.mark.parametrize("wrong", ["signature", "size"])
def test_a_zip_whose_directory_lies_is_told(tmp_path: Path, wrong: str) -> None:
    source = make_zip(tmp_path / "s.zip", {"a": os.urandom(100), "b": os.urandom(100)})
    members = zip_directory.read(source)
    if wrong == "signature":
        content = bytearray(source.read_bytes())
        content[int(members.offsets[1])] = 0
        source.write_bytes(content)
    else:
        members.packed[0] = 10_000_000
    with pytest.raises(DataProblem, match=r"is not where the zip says|is cut short"):
        zip_copy.copy(source, members, members.names, tmp_path / "t.zip", silent)


def test_an_encrypted_member_is_not_moved(tmp_path: Path) -> None:
    source = make_zip(tmp_path / "s.zip", {"a": b"1"})
    members = zip_directory.read(source)
    members.flags[0] |= 1
    with pytest.raises(DataProblem, match="encrypted"):
        zip_copy.copy(source, members, members.names, tmp_path / "t.zip", silent)
