"""Preparing from Kaggle's zip: the time beside `cp` of the same bytes, and the most that lies on the disk meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring import Comparison, compare, python

_TIMES = 5.0  # inflating takes three times as long as copying
_PEAK = 1.01  # markers and locks are small change
_LOOK_SECONDS = 0.005
_MEMORY = Path("/dev/shm")
_PREPARE = """
import shutil, sys
from pathlib import Path
from mlebench_console.state.records import PreparationOptions
from mlebench_console.engine.datasets.preparing import prepare
competition_id, data = sys.argv[1:3]
shutil.rmtree(Path(data, competition_id, "prepared"), ignore_errors=True)
prepare(competition_id, data_dir=data, options=PreparationOptions(verify=False))
"""
_COPY = (
    "import shutil, subprocess, sys; shutil.rmtree(sys.argv[2], ignore_errors=True);"
    " subprocess.run(['cp', '-r', sys.argv[1], sys.argv[2]], check=True);"
    " subprocess.run(['sync', '-f', sys.argv[2]], check=True)"
)


@dataclass(frozen=True)
class _Shape:
    """A zip of one kind.

    Attributes:
        is_timed: whether nearly all of it is copied, so that copying is what to compare with.
    """

    competition: str
    subject: str
    fill: Callable[[zipfile.ZipFile], None]
    is_timed: bool = False


def measure(rounds: int) -> Iterator[Comparison]:
    """Measure the whole way of zips of images, of a table and of an archive."""
    for shape in _SHAPES:
        with _disk() as disk:
            data = disk / "data"
            path = data / shape.competition / f"{shape.competition}.zip"
            path.parent.mkdir(parents=True)
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                shape.fill(archive)
            if shape.is_timed:
                yield _time(shape, data, disk / "copied", min(rounds, 3))
                shutil.rmtree(path.parent / "prepared")
            yield _peak(shape, data, path.stat().st_size)


def _time(shape: _Shape, data: Path, copied: Path, rounds: int) -> Comparison:
    found = compare(
        "prepare",
        python(f"prepare from a zip: {shape.subject}", "-c", _PREPARE, shape.competition, str(data)),
        python("cp -r of zip and output", "-c", _COPY, str(data), str(copied)),
        promise=_TIMES,
        rounds=rounds,
    )
    shutil.rmtree(copied)
    return found


def _peak(shape: _Shape, data: Path, zip_bytes: int) -> Comparison:
    """Return the most that the disk held while the program ran, beside the zip and what comes of it; in gigabytes."""
    command = [sys.executable, "-c", _PREPARE, shape.competition, str(data)]
    before = shutil.disk_usage(data).free
    least = [before]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            least[0] = min(least[0], shutil.disk_usage(data).free)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        subprocess.run(command, check=True)
    finally:
        ended.set()
        watching.join()
    made = _blocks(data / shape.competition / "prepared")
    return Comparison(
        "prepare",
        f"peak disk, GB: {shape.subject}",
        (zip_bytes + before - least[0]) / 1e9,
        "zip and output, GB",
        (zip_bytes + made) / 1e9,
        _PEAK,
    )


def _blocks(folder: Path) -> int:
    """Return how much of the disk a folder takes, where the last block of every file is a whole one."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512


@contextmanager
def _disk() -> Iterator[Path]:
    """A folder on a disk that nobody else writes to, if we may have one."""
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        mounted = (
            os.geteuid() == 0
            and not subprocess.run(
                ["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False
            ).returncode
        )
        try:
            yield Path(folder)
        finally:
            if mounted:
                subprocess.run(["umount", folder], check=True)


def _noise(count: int, size: int) -> list[bytes]:
    """Contents that deflate takes a few percent from, as from photos."""
    random = np.random.default_rng(0)
    letters = np.minimum(random.integers(0, 256, count * size, dtype=np.uint8), 239)
    content = letters.tobytes()
    return [content[start : start + size] for start in range(0, count * size, size)]


def _images(archive: zipfile.ZipFile, count: int = 8_000, size: int = 28_000) -> None:
    names = [f"{number:040x}" for number in range(count)]
    archive.writestr("train_labels.csv", "id,label\n" + "".join(f"{name},1\n" for name in names))
    archive.writestr("sample_submission.csv", "id,label\n")
    for number, (name, content) in enumerate(zip(names, _noise(count, size), strict=True)):
        archive.writestr(f"train/{name}.tif", content)
        if number % 4 == 0:
            archive.writestr(f"test/{name}.tif", b"")


def _table(archive: zipfile.ZipFile, count: int = 1_000_000) -> None:
    random = np.random.default_rng(0)
    places = np.round(random.random((count, 4)) * 80 - 40, 6).tolist()
    rows = "".join(
        f"2012-01-01 00:00:00.{number:09},{number % 500 / 10},2012-01-01 00:00:00 UTC,{a},{b},{c},{d},1\n"
        for number, (a, b, c, d) in enumerate(places)
    )
    columns = "pickup_longitude,pickup_latitude,dropoff_longitude,dropoff_latitude,passenger_count"
    archive.writestr("train.csv", f"key,fare_amount,pickup_datetime,{columns}\n{rows}")
    archive.writestr("GCP-Coupons-Instructions.rtf", b"{\\rtf1}")


def _questions(archive: zipfile.ZipFile, count: int = 80_000) -> None:
    """A table in a zip, large enough to be streamed."""
    random = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(2_000)], dtype=object)
    texts = [" ".join(random.choice(words, 500)) for _ in range(200)]
    rows = (
        f'"{number}","{texts[number % 200][:60]}","<p>{number} {texts[number % 199]}</p>\n","python c#"\n'
        for number in range(count)
    )
    with (
        archive.open("Train.zip", "w") as stream,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as inner,
    ):
        inner.writestr("Train.csv", '"Id","Title","Body","Tags"\n' + "".join(rows))


def _archive(archive: zipfile.ZipFile, count: int = 17_500, size: int = 8_000) -> None:
    names = [f"{number:032x}.jpg" for number in range(count)]
    archive.writestr("train.csv", "id,has_cactus\n" + "".join(f"{name},1\n" for name in names))
    with archive.open("train.zip", "w") as stream, zipfile.ZipFile(stream, "w") as inner:
        for name, content in zip(names, _noise(count, size), strict=True):
            inner.writestr(f"train/{name}", content)


_IMAGES = "histopathologic-cancer-detection"
_SHAPES = (
    _Shape(_IMAGES, "8,000 images", _images, is_timed=True),
    _Shape("new-york-city-taxi-fare-prediction", "1,000,000 rides", _table),
    _Shape("facebook-recruiting-iii-keyword-extraction", "80,000 questions in a zip", _questions),
    _Shape("aerial-cactus-identification", "17,500 in a zip", _archive),
)
