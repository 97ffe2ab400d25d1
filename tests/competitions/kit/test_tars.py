"""Files go from one tar to others in one pass, and what is damaged or missing is named."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Literal

import pytest

from mlebench_console.competitions.kit.archives import tars
from mlebench_console.competitions.kit.archives.tars import Destination
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

CONTENT = {f"all/{name}.jpg": name.encode() * 5000 for name in "abc"}


def archive(path: Path, mode: Literal["w", "w:gz"]) -> Path:
    with tarfile.open(path, mode) as made:
        for name, content in CONTENT.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("all/link.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(link)
    return path


def held(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(path, "r:") as made:
        for member in made.getmembers():
            content = made.extractfile(member)
            assert content is not None, f"{member.name} is no file"
            found[member.name] = content.read()
    return found


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_files_get_to_their_archives_under_their_new_names(
    mode: Literal["w", "w:gz"], make_job: MakeJob, tmp_path: Path
) -> None:
    one, two = tmp_path / "made" / "one.tar", tmp_path / "made" / "two.tar"
    wanted = {"all/c.jpg": Destination(one, "x/c.jpg"), "all/a.jpg": Destination(two, "a.jpg")}
    tars.distribute(make_job(), archive(tmp_path / "raw.tar.gz", mode), wanted)
    assert held(one) == {"x/c.jpg": CONTENT["all/c.jpg"]}
    assert held(two) == {"a.jpg": CONTENT["all/a.jpg"]}


def test_members_may_be_put_in_the_order_of_their_new_names(make_job: MakeJob, tmp_path: Path) -> None:
    job, raw = make_job(), archive(tmp_path / "raw.tar", "w")
    hidden, plain = tmp_path / "hidden.tar", tmp_path / "plain.tar"
    names = dict(zip(CONTENT, "zxy", strict=True))
    for target in (hidden, plain):
        wanted = {old: Destination(target, new) for old, new in names.items()}
        tars.distribute(job, raw, wanted, by_name=[hidden])
    assert list(held(plain)) == list(names.values())
    assert list(held(hidden)) == sorted(names.values())
    assert held(hidden) == held(plain) == {new: CONTENT[old] for old, new in names.items()}
    assert not list(job.scratch.iterdir())


def test_files_of_a_folder_are_packed_likewise(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
    target = tmp_path / "one.tar"
    tars.pack(make_job(), tmp_path, {"all/b.jpg": Destination(target, "b.jpg")})
    assert held(target) == {"b.jpg": CONTENT["all/b.jpg"]}
    with pytest.raises(DataProblem, match=r"gone\.jpg is missing"):
        tars.pack(make_job(), tmp_path, {"all/gone.jpg": Destination(tmp_path / "two.tar", "x")})


@pytest.mark.parametrize("name", ["all/gone.jpg", "all/link.jpg"])
def test_what_is_no_file_of_the_archive_is_named(name: str, make_job: MakeJob, tmp_path: Path) -> None:
    raw = archive(tmp_path / "raw.tar", "w")
    with pytest.raises(DataProblem, match=f"{name} is missing"):
        tars.distribute(make_job(), raw, {name: Destination(tmp_path / "one.tar", "x")})


@pytest.mark.parametrize("mode", ["w", "w:gz"])
@pytest.mark.parametrize("damage", ["cut", "garbled", "empty"])
def test_a_damaged_archive_is_named(
    mode: Literal["w", "w:gz"], damage: str, make_job: MakeJob, tmp_path: Path
) -> None:
    raw = archive(tmp_path / "raw.tar.gz", mode)
    whole = raw.read_bytes()
    raw.write_bytes(
        {"cut": whole[: len(whole) // 2], "garbled": b"\x1f\x8b" + whole[::-1], "empty": b""}[damage]
    )
    wanted = {name: Destination(tmp_path / "one.tar", name) for name in CONTENT}
    with pytest.raises(DataProblem, match=r"raw\.tar\.gz"):
        tars.distribute(make_job(), raw, wanted)


def test_the_checksum_at_the_end_of_a_gzip_is_looked_at(make_job: MakeJob, tmp_path: Path) -> None:
    raw = archive(tmp_path / "raw.tar.gz", "w:gz")
    whole = bytearray(raw.read_bytes())
    whole[-8] ^= 1
    raw.write_bytes(whole)
    with pytest.raises(DataProblem, match="cannot be read as a tar"):
        tars.distribute(make_job(), raw, {"all/a.jpg": Destination(tmp_path / "one.tar", "a")})
