"""Preparing generated raw data by shape, compared with reading the input once and writing the result once.

What is to be read and written is tables, by pandas, or bytes; of small members of a zip, where bytes are the least of
it, it is the members, by zipfile.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from benchmarks.measuring import Comparison
from mlebench_console import prepare_competition
from mlebench_console.competitions.kit.tables import large_tables

_ROUNDS = 3  # each takes seconds, and the best of them counts
_TABLES, _FILES = 1 / 3, 2.0
_STREAMED = 1 / 2  # reading some rows at a time costs a little, and nobody waits for these tables but once
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class _Shape:
    """Raw data of one kind.

    Attributes:
        reference: reads and writes as much, and returns how long it took.
        against: what the reference is, in words.
        promise: how many times the reference it may take.
        streamed: the table is taken for one that is too large to be held.
    """

    competition: str
    subject: str
    make: Callable[[Path], None]
    reference: Callable[[Path, Path, Path], float]
    against: str
    promise: float
    streamed: bool = False


def measure(rounds: int) -> Iterator[Comparison]:
    """Measure one competition of each shape."""
    for shape in _SHAPES:
        with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            yield _measure(shape, Path(folder), 1 if shape.streamed else min(rounds, _ROUNDS))


def _measure(shape: _Shape, folder: Path, rounds: int) -> Comparison:
    raw, data, copy = folder / "raw", folder / "data", folder / "copy"
    raw.mkdir()
    shape.make(raw)
    times: list[float] = []
    references: list[float] = []
    for number in range(rounds + 1):
        shutil.rmtree(data, ignore_errors=True)
        with mock.patch.object(large_tables, "_SMALL", 0) if shape.streamed else nullcontext():
            start = time.perf_counter()
            prepared = prepare_competition(shape.competition, data_dir=data, raw=raw)
            taken = time.perf_counter() - start
        reference = shape.reference(raw, prepared, copy)
        if number:  # the first round is for the caches
            times.append(taken)
            references.append(reference)
        shutil.rmtree(copy)
    return Comparison(
        "prepare",
        shape.subject,
        min(times),
        shape.against,
        min(references),
        shape.promise,
    )


def _by_pandas(raw: Path, prepared: Path, copy: Path) -> float:
    copy.mkdir()
    tables = [pd.read_csv(path) for path in sorted(prepared.rglob("*.csv"))]
    start = time.perf_counter()
    pd.read_csv(raw / "train.csv")
    for number, table in enumerate(tables):
        table.to_csv(copy / str(number), index=False)
    return time.perf_counter() - start


def _by_copying(raw: Path, prepared: Path, copy: Path) -> float:
    """Read what the task reads and write as much as it wrote, file by file."""
    copy.mkdir()
    sizes = [path.stat().st_size for path in prepared.rglob("*") if path.is_file()]
    inputs = [path for path in raw.rglob("*") if path.is_file()]
    start = time.perf_counter()
    content = b"".join(path.read_bytes() for path in inputs)
    done = 0
    for number, size in enumerate(sizes):
        (copy / str(number)).write_bytes(memoryview(content)[done % max(len(content) - size, 1) :][:size])
        done += size
    return time.perf_counter() - start


def _by_zipfile(raw: Path, prepared: Path, copy: Path) -> float:
    """Copy the zips that were made, member by member."""
    del raw
    copy.mkdir()
    start = time.perf_counter()
    for number, path in enumerate(prepared.rglob("*.zip")):
        with zipfile.ZipFile(path) as made, zipfile.ZipFile(copy / str(number), "w") as archive:
            for member in made.infolist():
                archive.writestr(member, made.read(member))
    return time.perf_counter() - start


def _rides(raw: Path, count: int = 1_000_000) -> None:
    random = np.random.default_rng(0)
    moments = pd.Series(pd.to_datetime(random.integers(1_200_000_000, 1_400_000_000, count), unit="s"))
    text = moments.dt.strftime("%Y-%m-%d %H:%M:%S")
    places = {
        name: np.where(random.random(count) < 0.5, np.round(values, 6), values.astype(np.float32))
        for name in ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude")
        for values in [random.random(count) * 80 - 40]
    }
    table = pd.DataFrame(
        {
            "key": text + "." + pd.Series(np.arange(count)).astype(str).str.zfill(7),
            "fare_amount": np.round(random.random(count) * 50, 1),
            "pickup_datetime": text + " UTC",
            **places,
            "passenger_count": random.integers(1, 7, count),
        }
    )
    table.to_csv(raw / "train.csv", index=False)
    (raw / "GCP-Coupons-Instructions.rtf").write_bytes(b"{\\rtf1}")


def _many_rides(raw: Path) -> None:
    _rides(raw, count=4_000_000)


def _forests(raw: Path) -> None:
    random, count = np.random.default_rng(0), 500_000
    columns = {f"feature{place}": random.integers(0, 3000 if place < 10 else 2, count) for place in range(54)}
    table = pd.DataFrame({"Id": np.arange(count), **columns, "Cover_Type": np.arange(count) % 7 + 1})
    table.to_csv(raw / "train.csv", index=False)


def _breaths(raw: Path) -> None:
    random, count = np.random.default_rng(0), 1_000_000
    table = pd.DataFrame(
        {
            "id": np.arange(1, count + 1),
            "breath_id": np.arange(count) // 80 + 1,
            "R": random.choice([5, 20, 50], count),
            "C": random.choice([10, 20, 50], count),
            "time_step": random.random(count) * 3,
            "u_in": random.random(count) * 100,
            "u_out": random.integers(0, 2, count),
            "pressure": random.random(count) * 60,
        }
    )
    table.to_csv(raw / "train.csv", index=False)


def _essays(raw: Path) -> None:
    random, count = np.random.default_rng(0), 60_000
    words = np.array(["".join(random.choice(list("abcdefgh"), 5)) for _ in range(2_000)], dtype=object)
    texts = [" ".join(words[start : start + 300]) for start in random.integers(0, 1700, count)]
    table = pd.DataFrame(
        {
            "essay_id": [f"{number:07x}" for number in random.permutation(1 << 20)[:count]],
            "full_text": [text + ', "so"\n' if row % 3 else text for row, text in enumerate(texts)],
            "score": random.integers(1, 7, count),
        }
    )
    table.to_csv(raw / "train.csv", index=False)


def _thumbnails(raw: Path, count: int = 17_500, size: int = 1_400) -> None:
    random = np.random.default_rng(0)
    content = random.bytes(size * count)
    names = [f"{number:032x}.jpg" for number in random.permutation(count)]
    with zipfile.ZipFile(raw / "train.zip", "w", zipfile.ZIP_STORED) as archive:
        for number, name in enumerate(names):
            archive.writestr(f"train/{name}", content[number * size : (number + 1) * size])
    pd.DataFrame({"id": names, "has_cactus": 1}).to_csv(raw / "train.csv", index=False)


def _photos(raw: Path) -> None:
    _thumbnails(raw, count=5_000, size=30_000)


def _patches(raw: Path) -> None:
    random, count, size = np.random.default_rng(0), 8_000, 27_000
    names = [f"{number:040x}" for number in random.permutation(count)]
    for part, chosen in (("train", names), ("test", names[: count // 4])):
        (raw / part).mkdir()
        for name in chosen:
            (raw / part / f"{name}.tif").write_bytes(random.bytes(size if part == "train" else 1))
    pd.DataFrame({"id": names, "label": 1}).to_csv(raw / "train_labels.csv", index=False)


def _table(competition: str, subject: str, make: Callable[[Path], None], *, streamed: bool = False) -> _Shape:
    promise = _STREAMED if streamed else _TABLES
    return _Shape(competition, f"table: {subject}", make, _by_pandas, "pandas, in and out", promise, streamed)


def _files(competition: str, subject: str, make: Callable[[Path], None]) -> _Shape:
    return _Shape(competition, subject, make, _by_copying, "reading and writing bytes", _FILES)


_CACTUS = "aerial-cactus-identification"
_SHAPES = (
    _table("new-york-city-taxi-fare-prediction", "1,000,000 taxi rides", _rides),
    _table("new-york-city-taxi-fare-prediction", "4,000,000 rides, streamed", _many_rides, streamed=True),
    _table("tabular-playground-series-dec-2021", "500,000 x 56 integers", _forests),
    _table("ventilator-pressure-prediction", "1,000,000 steps, %.10g", _breaths),
    _table("learning-agency-lab-automated-essay-scoring-2", "60,000 texts of 1.8 kB", _essays),
    _Shape(
        _CACTUS,
        "zip to zip: 17,500 of 1.4 kB",
        _thumbnails,
        _by_zipfile,
        "zipfile, member by member",
        _FILES,
    ),
    _files(_CACTUS, "zip to zip: 5,000 of 30 kB", _photos),
    _files("histopathologic-cancer-detection", "files copied: 8,000 of 27 kB", _patches),
)
