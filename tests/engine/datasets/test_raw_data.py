"""A zip is found harmless before its first byte is extracted."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest

from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.engine.datasets.sources import raw_data
from mlebench_console.engine.space import DiskFull
from mlebench_console.foundation.problems import DataProblem

BODY = os.urandom(300_000)


def zipped(path: Path, members: dict[str, bytes], *, method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return path


def unpack(path: Path, target: Path) -> list[tuple[str, int, int]]:
    told: list[tuple[str, int, int]] = []
    raw_data.unpack(path, target, report=lambda what, done, total: told.append((what, done, total)))
    return told


def test_files_and_empty_folders_come_out_as_they_went_in(tmp_path: Path) -> None:
    members = {f"images/{number}.bin": BODY[number:] for number in range(600)}
    members |= {"odd \u00e4 [1]/\u2603.csv": b"a,b\n", "empty/": b"", "nothing.txt": b""}
    path = zipped(tmp_path / "x.zip", members, method=zipfile.ZIP_DEFLATED)
    told = unpack(path, tmp_path / "raw")
    found = {file.relative_to(tmp_path / "raw").as_posix(): file for file in (tmp_path / "raw").rglob("*")}
    assert {name for name, file in found.items() if file.is_file()} == {
        name for name in members if not name.endswith("/")
    }
    assert found["empty"].is_dir()
    assert all(found[name].read_bytes() == members[name] for name in ("images/0.bin", "images/599.bin"))
    total = sum(map(len, members.values()))
    assert told[-1][1:] == (total, total)


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt", "..\\out.txt"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "x.zip", {"fine.txt": b"", name: b"x"})
    with pytest.raises(DataProblem, match="outside its folder"):
        unpack(path, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataProblem, match="is a link or a device"):
        unpack(path, tmp_path / "raw")


def test_two_members_of_one_place_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a.txt", "1")
        archive.writestr("a.txt", "2")
    with pytest.raises(DataProblem, match=r"two of its members have the path a\.txt"):
        unpack(path, tmp_path / "raw")


def test_bombs_are_refused_by_what_they_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_tree, "_HARMLESS_BYTES", 1000)
    path = zipped(tmp_path / "x.zip", {"zeros": bytes(3_000_000)}, method=zipfile.ZIP_DEFLATED)
    with pytest.raises(DataProblem, match="claim to inflate to 3,000,000"):
        unpack(path, tmp_path / "raw")


def test_bombs_are_refused_by_what_is_known_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_tree, "_HARMLESS_BYTES", 1000)
    path = zipped(tmp_path / "x.zip", {"a.bin": BODY})
    raw_data.unpack(path, tmp_path / "fine", known_bytes=len(BODY), report=lambda *told: None)
    with pytest.raises(DataProblem, match="about 20,000 are known"):
        raw_data.unpack(path, tmp_path / "raw", known_bytes=20_000, report=lambda *told: None)
    assert not (tmp_path / "raw").exists()


def test_overlapping_members_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a": BODY, "b": BODY})
    content = bytearray(path.read_bytes())
    second = content.rindex(b"PK\x01\x02")
    content[second + 42 : second + 46] = (0).to_bytes(4, "little")  # b begins where a does
    path.write_bytes(content)
    with pytest.raises(DataProblem, match="overlaps another one"):
        unpack(path, tmp_path / "raw")


def test_damage_is_found_and_named(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"a.bin": BODY})
    content = bytearray(path.read_bytes())
    content[1000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataProblem, match=r"is damaged: a\.bin"):
        unpack(path, tmp_path / "raw")


def test_what_does_not_fit_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlebench_console.engine.space.free_bytes", lambda folder: 1000)
    path = zipped(tmp_path / "x.zip", {"a.bin": BODY})
    with pytest.raises(DiskFull, match="are needed"):
        unpack(path, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()
