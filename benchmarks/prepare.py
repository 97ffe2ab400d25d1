"""Preparing from Kaggle's zip beside `cp` of the zip and of what comes of it; tells the peak on the disk too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

from benchmarks.measuring import Comparison, compare, python
from engine.space import size_on_disk

COMPETITION = "histopathologic-cancer-detection"
_IMAGES = 8_000
_IMAGE_BYTES = 28_000
_LOOK_SECONDS = 0.02
_PROGRAM = """
import shutil, sys
from pathlib import Path
from engine.preparing import prepare
data = Path(sys.argv[1])
shutil.rmtree(data / {id!r} / "prepared", ignore_errors=True)
prepare({id!r}, data_dir=data, verify=False)
"""


def measure(rounds: int) -> list[Comparison]:
    """Measure the whole way of a zip of images, which is what most of the 3.3 TB are."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        path = data / COMPETITION / f"{COMPETITION}.zip"
        path.parent.mkdir(parents=True)
        _make_zip(path)
        program = _PROGRAM.format(id=COMPETITION)
        before = size_on_disk(data)
        peak = _peak(data, [sys.executable, "-c", program, str(data)])
        after = size_on_disk(data)
        told = f"peak {peak / 1e6:.0f} MB for a zip of {before / 1e6:.0f} MB and {(after - before) / 1e6:.0f} MB made"
        print(f"{'prepare':10} {told}")
        copied = Path(folder, "copied")
        copy = (
            "import shutil, subprocess, sys; shutil.rmtree(sys.argv[2], ignore_errors=True);"
            " subprocess.run(['cp', '-r', sys.argv[1], sys.argv[2]], check=True);"
            " subprocess.run(['sync', '-f', sys.argv[2]], check=True)"
        )
        return [
            compare(
                "prepare",
                python(f"prepare {_IMAGES:,} images from a zip", "-c", program, str(data)),
                python("cp -r of zip and output", "-c", copy, str(data), str(copied)),
                promise=None,
                rounds=min(rounds, 3),
            )
        ]


def _make_zip(path: Path) -> None:
    """A zip in Kaggle's layout for this competition: a table and images that don't compress."""
    names = [f"{number:040x}" for number in range(_IMAGES)]
    rows = "".join(f"{name},{number % 2}\n" for number, name in enumerate(names))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train_labels.csv", f"id,label\n{rows}")
        archive.writestr("sample_submission.csv", "id,label\n")
        for number, name in enumerate(names):
            folder = "train" if number % 4 else "test"
            archive.writestr(f"{folder}/{name}.tif", os.urandom(_IMAGE_BYTES))
            if folder == "test":
                archive.writestr(f"train/{name}.tif", os.urandom(_IMAGE_BYTES))


def _peak(folder: Path, command: list[str]) -> int:
    """The most that the disk of a folder gave while a command ran."""
    least = [shutil.disk_usage(folder).free]
    began = least[0] + size_on_disk(folder)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            least[0] = min(least[0], shutil.disk_usage(folder).free)

    watching = threading.Thread(target=look)
    watching.start()
    try:
        subprocess.run(command, check=True)
    finally:
        ended.set()
        watching.join()
    return began - least[0]
