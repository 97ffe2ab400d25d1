"""A member of a zip is read as a file is: in any order, by any number of threads, and damage is told by name."""

from __future__ import annotations

import os
import random
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path

import pytest

from mlebench_console.competitions.kit.archives import zip_members
from mlebench_console.foundation.problems import DataProblem

TEXT = random.Random(0).randbytes(12_000_000).hex().encode()  # compresses to half of it
METHODS = pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])


def in_zip(path: Path, content: bytes, method: int) -> zipfile.ZipInfo:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("a.csv")
        info.extra = b"\xff\xff\4\0abcd"
        archive.writestr(info, content, method, compresslevel=1)
    return info


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[FileIO]:
    path = tmp_path / "x.zip"
    path.touch()
    with path.open("rb", buffering=0) as stream:
        yield stream


@METHODS
def test_all_of_it_and_any_part_of_it_can_be_read(tmp_path: Path, opened: FileIO, method: int) -> None:
    member = in_zip(tmp_path / "x.zip", TEXT, method)
    assert zip_members.read(opened, member) == TEXT
    with zip_members.opened(opened, member) as stream:
        assert stream.read() == TEXT
        assert stream.read(1) == b""
        draw = random.Random(0)
        for place in (
            len(TEXT) - 22,
            len(TEXT) - (9 << 20),
            0,
            *(draw.randrange(len(TEXT)) for _ in range(9)),
        ):
            assert stream.seek(place) == place
            assert stream.read(1 << 21) == TEXT[place:][: 1 << 21]
        assert stream.seek(-5, os.SEEK_END) == len(TEXT) - 5
        assert stream.read() == TEXT[-5:]
        stream.seek(len(TEXT) + 7)
        assert stream.read() == b""


def test_a_compressed_member_is_not_inflated_from_its_start_for_every_place(
    tmp_path: Path, opened: FileIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_members, "_SPACING", 1 << 20)
    monkeypatch.setattr(zip_members, "_MOST_MARKS", 8)
    member = in_zip(tmp_path / "x.zip", TEXT, zipfile.ZIP_DEFLATED)
    with zip_members.opened(opened, member) as stream:
        assert stream.read() == TEXT
        pread, packed = os.pread, [0]

        def counted(*where: int) -> bytes:
            found = pread(*where)
            packed[0] += len(found)
            return found

        monkeypatch.setattr(os, "pread", counted)
        places = [draw * len(TEXT) // 40 for draw in random.Random(0).sample(range(40), 40)]
        for place in places:
            stream.seek(place)
            assert stream.read(1000) == TEXT[place:][:1000]
        assert packed[0] < 40 * member.compress_size / 4
        stream.seek(len(TEXT) // 2)
        assert stream.read() == TEXT[len(TEXT) // 2 :]  # its checksum is still the right one


@METHODS
def test_threads_can_share_a_zip(tmp_path: Path, opened: FileIO, method: int) -> None:
    member = in_zip(tmp_path / "x.zip", TEXT, method)

    def crc(number: int) -> int:
        with zip_members.opened(opened, member) as stream:
            found = 0
            while block := stream.read(100_000 + number):
                found = zlib.crc32(block, found)
        return found

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(crc, range(8))) == {zlib.crc32(TEXT)}


@METHODS
def test_a_member_without_bytes_is_empty(tmp_path: Path, opened: FileIO, method: int) -> None:
    member = in_zip(tmp_path / "x.zip", b"", method)
    assert zip_members.read(opened, member) == b""
    with zip_members.opened(opened, member) as stream:
        assert stream.read() == b""


@METHODS
@pytest.mark.parametrize("kind", ["flipped", "moved", "cut", "claims more", "claims less"])
def test_damage_is_told(tmp_path: Path, opened: FileIO, method: int, kind: str) -> None:
    path = tmp_path / "x.zip"
    member = in_zip(path, TEXT, method)
    content = bytearray(path.read_bytes())
    if kind == "flipped":
        content[len(content) // 2] ^= 0x10
    elif kind == "moved":
        content[0] ^= 0xFF
    elif kind == "cut":
        del content[member.compress_size // 2 :]
    else:
        more = 1 if kind == "claims more" else -1
        member.file_size += more
    path.write_bytes(content)
    with pytest.raises(DataProblem, match=r"x\.zip is damaged: a\.csv"):
        zip_members.read(opened, member)
    with (
        pytest.raises(DataProblem, match=r"x\.zip is damaged: a\.csv"),
        zip_members.opened(opened, member) as stream,
    ):
        stream.read()
