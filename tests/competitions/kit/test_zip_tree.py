"""A zip is used as the folder that it would be extracted to, archives within it too, and without a second copy."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mlebench_console.competitions.kit import archives, placing, tables
from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.competitions.kit.archives.zip_tree import ZipPath
from mlebench_console.competitions.kit.formats import npy
from mlebench_console.competitions.raw import RawPath, walk
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

NOISE = os.urandom(300_000)
FILES = {
    "train.csv": b"id,label\na,1\nb,2\n",
    "train/a.png": b"a" * 1000,
    "train/b.png": NOISE,
    "train/deep/c.txt": b"",
    "odd \u00e4 [1]/\u2603 %s.csv": b"x\n",
    " leading/..hidden": b"h",
}


def inner(files: dict[str, bytes], method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


@pytest.fixture(params=["folder", "stored", "deflated"])
def raw(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RawPath]:
    """The same raw data in a folder and in zips."""
    method = zipfile.ZIP_STORED if request.param == "stored" else zipfile.ZIP_DEFLATED
    photos = {f"train/{number:05d}.jpg": NOISE[number:][:2000] for number in range(3000)}
    files = FILES | {"photos.zip": inner(photos, zipfile.ZIP_STORED), "empty/": b""}
    if request.param == "folder":
        for name, content in files.items():
            path = tmp_path / "raw" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir() if name.endswith("/") else path.write_bytes(content)
        yield tmp_path / "raw"
        return
    path = tmp_path / "x.zip"
    path.write_bytes(inner(files, method))
    with zip_tree.opened(path) as tree:
        yield ZipPath(tree)
    assert not (tmp_path / "scratch").exists() or not any((tmp_path / "scratch").iterdir())


def names(paths: Iterator[RawPath], base: RawPath) -> list[str]:
    return sorted(path.relative_to(base).as_posix() for path in paths)


def test_it_is_looked_through_as_a_folder_is(raw: RawPath) -> None:
    top = [" leading", "empty", "odd \u00e4 [1]", "photos.zip", "train", "train.csv"]
    assert names(raw.iterdir(), raw) == top
    assert names(raw.glob("train/*.png"), raw) == ["train/a.png", "train/b.png"]
    assert names(raw.glob("*/*.csv"), raw) == ["odd \u00e4 [1]/\u2603 %s.csv"]
    assert names((raw / "nowhere").glob("*"), raw) == []
    assert names((raw / "train").rglob("*"), raw) == [
        "train/a.png",
        "train/b.png",
        "train/deep",
        "train/deep/c.txt",
    ]
    walked = {folder.relative_to(raw).as_posix(): sorted(found) for folder, found in walk(raw / "train")}
    assert walked == {"train": ["a.png", "b.png"], "train/deep": ["c.txt"]}
    assert (raw / "empty").is_dir() and not list((raw / "empty").iterdir())
    assert not (raw / "train.cs").exists() and not (raw / "train").is_file()
    path = raw / "train" / "b.png"
    assert (path.name, path.stem, path.suffix, path.parent) == ("b.png", "b", ".png", raw / "train")
    assert path.stat().st_size == len(NOISE)
    assert sorted([path, raw / "train" / "a.png"])[0].name == "a.png"


def test_files_are_read_as_in_a_folder(raw: RawPath) -> None:
    for name, content in FILES.items():
        assert (raw / name).read_bytes() == content
        with (raw / name).open("rb") as stream:
            assert stream.read() == content
    assert tables.read_csv(raw / "train.csv")["label"].tolist() == [1, 2]
    with pytest.raises(FileNotFoundError):
        (raw / "train" / "z.png").open("rb")
    with pytest.raises(FileNotFoundError):
        list((raw / "nowhere").iterdir())


def test_files_are_placed_as_from_a_folder(raw: RawPath, make_job: MakeJob) -> None:
    job = make_job()
    placing.place_tree(job, raw / "train", job.public / "images")
    placed = {path.relative_to(job.public).as_posix(): path.read_bytes() for path in job.public.rglob("*.*")}
    assert placed == {
        f"images/{name[6:]}": content for name, content in FILES.items() if name.startswith("train/")
    }
    with pytest.raises(DataProblem, match=r"z\.png is missing"):
        placing.copy_file(job, raw / "train" / "z.png", job.public / "z.png")
    with pytest.raises(DataProblem, match="not a regular file"):
        placing.copy_file(job, raw / "train", job.public / "z.png")


def test_archives_within_are_read_where_they_lie(raw: RawPath, make_job: MakeJob) -> None:
    job = make_job()
    photos = raw / "photos.zip"
    assert len(archives.files_in(photos)) == 3000
    wanted = {f"train/{number:05d}.jpg": f"{number}.jpg" for number in range(2999, 0, -2)}
    archives.repack(job, photos, job.public / "odd.zip", wanted)
    with zipfile.ZipFile(job.public / "odd.zip") as archive:
        assert sorted(archive.namelist()) == sorted(wanted.values())
        assert archive.read("77.jpg") == NOISE[77:][:2000]
        assert archive.testzip() is None
    archives.extract_as(job, photos, {name: job.public / new for name, new in wanted.items()})
    assert (job.public / "2999.jpg").read_bytes() == NOISE[2999:][:2000]
    with archives.opened_member(photos, "00005.jpg") as stream:
        assert stream.read() == NOISE[5:][:2000]


def test_arrays_are_read(tmp_path: Path) -> None:
    array = np.arange(24).reshape(4, 6)
    stream = io.BytesIO()
    np.save(stream, array)
    path = tmp_path / "x.zip"
    path.write_bytes(inner({"a.npy": stream.getvalue()}, zipfile.ZIP_DEFLATED))
    with zip_tree.opened(path) as tree:
        assert (npy.read_npy(ZipPath(tree) / "a.npy") == array).all()


def test_members_and_archives_of_64_bits_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("wide.csv", "w", force_zip64=True) as stream:
            stream.write(b"a,b\n1,2\n")
        for number in range(66_000):  # more than a directory of 16 bits can count
            archive.writestr(f"many/{number}", b"")
        archive.writestr("last.csv", b"c\n3\n")
    with zip_tree.opened(path) as tree:
        assert (ZipPath(tree) / "wide.csv").read_bytes() == b"a,b\n1,2\n"
        assert (ZipPath(tree) / "last.csv").read_bytes() == b"c\n3\n"
        assert sum(1 for _ in (ZipPath(tree) / "many").iterdir()) == 66_000


def test_a_zip_beyond_four_gigabytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with path.open("wb") as stream:
        stream.seek(5 << 30)  # a hole takes no room
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("far.csv", b"far")
    with zip_tree.opened(path) as tree:
        assert tree.member("far.csv").header_offset >= 5 << 30
        assert (ZipPath(tree) / "far.csv").read_bytes() == b"far"


@pytest.mark.parametrize("second", ["a.csv", "a.csv/b", "./a.csv", "A/../a.csv"])
def test_what_would_lie_over_itself_is_refused(tmp_path: Path, second: str) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", b"1")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *told, **more: None)
            archive.writestr(second, b"2")
    with pytest.raises(DataProblem), zip_tree.opened(path):
        pass


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(inner({"a.csv": NOISE}, zipfile.ZIP_LZMA))
    with pytest.raises(DataProblem, match="unknown method"), zip_tree.opened(path):
        pass


def test_paths_of_one_zip_are_equal_and_have_no_path_on_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(inner(FILES, zipfile.ZIP_STORED))
    with zip_tree.opened(path) as tree:
        one, two = ZipPath(tree) / "train" / "a.png", ZipPath(tree) / "train/a.png"
        assert one == two and len({one, two}) == 1
        assert isinstance(one, ZipPath) and str(one) == str(path / "train" / "a.png")
        with pytest.raises(TypeError):
            os.fspath(one)  # type: ignore[call-overload]  # that it has none is what is tested
