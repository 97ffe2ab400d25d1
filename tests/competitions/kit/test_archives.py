"""Zip members arrive whole and inside their folder, or not at all; repacking moves bytes without inflating them."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path
from typing import IO

import pytest

from mlebench_console.competitions.kit import archives
from mlebench_console.competitions.task import Preparation
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

NOISE = os.urandom(3000)


def make_zip(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def extract_all(job: Preparation, path: Path, target: Path) -> None:
    """Take out what a zip holds, under its own names."""
    names = archives.files_in(path)
    archives.extract_as(job, path, {name: target / archives.safe_path(name) for name in names})


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_repacked_members_keep_their_packed_bytes(make_job: MakeJob, tmp_path: Path, method: int) -> None:
    members = {"train/a.jpg": NOISE, "train/b.txt": b"b" * 5000, "c": b""}
    source = make_zip(tmp_path / "s.zip", members, method)
    target = tmp_path / "out" / "t.zip"
    archives.repack(make_job(), source, target, {"train/b.txt": "b.txt", "train/a.jpg": "ä.jpg", "c": "c"})
    with zipfile.ZipFile(target) as made, zipfile.ZipFile(source) as given:
        assert made.testzip() is None
        assert {name: made.read(name) for name in made.namelist()} == {
            "b.txt": b"b" * 5000,
            "ä.jpg": NOISE,
            "c": b"",
        }
        assert made.getinfo("b.txt").compress_size == given.getinfo("train/b.txt").compress_size


def test_neither_order_nor_time_of_repacked_members_tells_where_they_came_from(
    make_job: MakeJob, tmp_path: Path
) -> None:
    source = tmp_path / "s.zip"
    pictures = {
        f"{kind}/{number}.jpg": os.urandom(9000 * number) for kind in ("cat", "dog") for number in range(6)
    }
    with zipfile.ZipFile(source, "w") as archive:
        for day, (name, content) in enumerate(pictures.items(), start=1):
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, day, 0, 0, 0)), content)
    renamed = {name: f"{7 * number % 12}.jpg" for number, name in enumerate(pictures)}
    archives.repack(make_job(), source, tmp_path / "t.zip", renamed)
    with zipfile.ZipFile(tmp_path / "t.zip") as made:
        assert made.testzip() is None
        infos = made.infolist()
        assert {old: made.read(new) for old, new in renamed.items()} == pictures
    assert [info.filename for info in infos] == sorted(renamed.values())
    assert [info.header_offset for info in infos] == sorted(info.header_offset for info in infos)
    assert len({info.date_time for info in infos}) == 1


def test_members_written_as_a_stream_are_repacked(make_job: MakeJob, tmp_path: Path) -> None:
    source = tmp_path / "s.zip"
    with source.open("wb") as stream:
        # a writer that cannot seek puts the sizes behind the data
        pipe = _Unseekable(stream)
        with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", NOISE)
            archive.writestr("b", b"later")
    archives.repack(make_job(), source, tmp_path / "t.zip", ["b", "a"])
    with zipfile.ZipFile(tmp_path / "t.zip") as made:
        assert made.testzip() is None
        assert made.read("a") == NOISE


class _Unseekable:
    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        return self._stream.write(content)

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()


def test_more_members_than_a_plain_zip_can_count_are_written(make_job: MakeJob, tmp_path: Path) -> None:
    names = [f"{number}" for number in range(66_000)]
    source = make_zip(tmp_path / "s.zip", dict.fromkeys(names, b"x"), zipfile.ZIP_STORED)
    archives.repack(make_job(), source, tmp_path / "t.zip", names)
    with zipfile.ZipFile(tmp_path / "t.zip") as made:
        assert len(made.namelist()) == 66_000
        assert made.read("65999") == b"x"


def test_numbers_of_64_bits_are_written_where_zipfile_reads_them(
    make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = {"a": NOISE, "b": b"small", "c": NOISE, "d": b"b" * 5000}
    source = make_zip(tmp_path / "s.zip", members)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 2000)  # so that no test writes four gigabytes
    archives.repack(make_job(), source, tmp_path / "t.zip", list(members))
    with zipfile.ZipFile(tmp_path / "t.zip") as made:
        assert made.testzip() is None
        assert {name: made.read(name) for name in made.namelist()} == members


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


@pytest.mark.parametrize("prefix", [b"#!/bin/sh\n", b""])
@pytest.mark.parametrize("comment", [b"PK\1\2 and more", b""])
def test_zips_with_a_comment_or_behind_other_bytes_are_repacked(
    make_job: MakeJob, tmp_path: Path, prefix: bytes, comment: bytes
) -> None:
    source = tmp_path / "s.zip"
    source.write_bytes(prefix)
    with zipfile.ZipFile(source, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = comment
        for name in ("b/", "\u00e4.txt", "PK\1\2.txt"):
            archive.writestr(name, name.encode() * 99 * (name != "b/"))
    assert archives.files_in(source) == ["\u00e4.txt", "PK\1\2.txt"]
    archives.repack(make_job(), source, tmp_path / "t.zip", ["PK\1\2.txt"])
    with zipfile.ZipFile(tmp_path / "t.zip") as made:
        assert made.read("PK\1\2.txt") == b"PK\1\2.txt" * 99


@pytest.mark.parametrize("wrong", ["place", "size", "encryption"])
def test_a_zip_whose_directory_lies_is_told(make_job: MakeJob, tmp_path: Path, wrong: str) -> None:
    source = make_zip(tmp_path / "s.zip", {"a": NOISE, "b": NOISE}, zipfile.ZIP_STORED)
    content = bytearray(source.read_bytes())
    if wrong == "place":
        content[0] = 0
    else:
        record = content.index(b"PK\1\2")
        if wrong == "encryption":
            content[record + 8] |= 1
        else:
            content[record + 20 : record + 28] = b"\0\0\1\0" * 2  # 64 KiB packed and inflated
    source.write_bytes(content)
    with pytest.raises(DataProblem, match=r"is not where the zip says|is cut short|is encrypted"):
        archives.repack(make_job(), source, tmp_path / "t.zip", ["a", "b"])


def test_a_missing_member_is_named(make_job: MakeJob, tmp_path: Path) -> None:
    source = make_zip(tmp_path / "s.zip", {"a": b"1"})
    with pytest.raises(DataProblem, match=r"b\.jpg is missing"):
        archives.repack(make_job(), source, tmp_path / "t.zip", ["b.jpg"])
    with pytest.raises(DataProblem, match=r"b\.jpg is missing"):
        archives.member_size(source, "b.jpg")
    with pytest.raises(DataProblem, match=r"b\.jpg is missing"), archives.opened_member(source, "b.jpg"):
        pass
    with pytest.raises(DataProblem, match=r"b\.jpg is missing"):
        list(archives.read_members(source, ["a", "b.jpg"]))


def test_what_is_no_zip_is_named(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "s.zip").write_bytes(b"<html>log in first</html>")
    with pytest.raises(DataProblem, match=r"s\.zip cannot be read as a zip"):
        extract_all(make_job(), tmp_path / "s.zip", tmp_path / "out")


def test_a_damaged_member_is_told(make_job: MakeJob, tmp_path: Path) -> None:
    source = make_zip(tmp_path / "s.zip", {"a": NOISE}, zipfile.ZIP_STORED)
    content = bytearray(source.read_bytes())
    content[500] ^= 0xFF
    source.write_bytes(content)
    with pytest.raises(DataProblem, match="cannot be read as a zip"):
        extract_all(make_job(), source, tmp_path / "out")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "..\\x"])
def test_no_member_leaves_its_folder(make_job: MakeJob, tmp_path: Path, name: str) -> None:
    source = make_zip(tmp_path / "s.zip", {name: b"1"})
    with pytest.raises(DataProblem, match="outside"):
        extract_all(make_job(), source, tmp_path / "out")


def test_a_link_is_not_taken(make_job: MakeJob, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataProblem, match="is a link"):
        extract_all(make_job(), tmp_path / "s.zip", tmp_path / "out")


def test_a_member_that_claims_to_inflate_beyond_measure_is_not_taken(
    make_job: MakeJob, tmp_path: Path
) -> None:
    source = make_zip(tmp_path / "s.zip", {"a": b"0" * 4_000_000}, zipfile.ZIP_BZIP2)
    with pytest.raises(DataProblem, match="more than deflate allows"):
        extract_all(make_job(), source, tmp_path / "out")


def test_many_members_are_extracted_in_parallel(make_job: MakeJob, tmp_path: Path) -> None:
    members = {f"d{number % 7}/{number}.txt": str(number).encode() for number in range(1500)}
    source = make_zip(tmp_path / "s.zip", members)
    told: list[tuple[int, int]] = []
    job = make_job(progress=lambda what, done, total: told.append((done, total)))
    out = tmp_path / "out"
    archives.extract_as(job, source, {name: out / name for name in members if name != "d0/0.txt"})
    found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*.txt")}
    assert found == {name: content for name, content in members.items() if name != "d0/0.txt"}
    assert told[-1] == (1499, 1499)


def test_a_file_is_found_in_whatever_folder_of_the_zip_it_lies(tmp_path: Path) -> None:
    source = make_zip(tmp_path / "s.zip", {"deep/er/train.csv": b"a\n"})
    assert archives.member_size(source, "train.csv") == 2
    with archives.opened_member(source, "train.csv") as stream:
        assert stream.read() == b"a\n"


def test_members_are_read_one_after_another(tmp_path: Path) -> None:
    members = {"a": NOISE, "deep/b": b"b", "c": b""}
    source = make_zip(tmp_path / "s.zip", members)
    assert list(archives.read_members(source, ["c", "a", "deep/b"])) == [b"", NOISE, b"b"]


def test_files_come_into_being_in_the_order_asked_for(
    make_job: MakeJob, tmp_path: Path, created: list[str]
) -> None:
    source = make_zip(tmp_path / "s.zip", {"cat.0": b"1", "cat.1": b"2", "dog.0": b"3"})
    wanted = {"dog.0": "1.jpg", "cat.0": "2.jpg", "cat.1": "3.jpg"}
    created.clear()
    archives.extract_as(make_job(), source, {old: tmp_path / "to" / new for old, new in wanted.items()})
    assert created == list(wanted.values())
