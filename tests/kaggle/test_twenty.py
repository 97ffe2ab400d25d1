"""Twenty datasets from nothing: cuts, refusals, two killed engines and a full disk cost none of the others anything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine import control
from mlebench_console.engine.control.status import lock_path
from mlebench_console.engine.places import Places
from mlebench_console.foundation import locks
from mlebench_console.state import database, datasets
from mlebench_console.state.records import Dataset, DatasetState
from tests.conformance.trees import VECTORS, Vector, describe
from tests.engine.harness import eventually
from tests.kaggle.loopback import Fault, Loopback, cuts

REFUSED = ("dog-breed-identification", "leaf-classification")
LIMITED = "spaceship-titanic"
NAMES = (
    "aerial-cactus-identification",
    "aptos2019-blindness-detection",
    "denoising-dirty-documents",
    "detecting-insults-in-social-commentary",
    "dog-breed-identification",
    "dogs-vs-cats-redux-kernels-edition",
    "google-quest-challenge",
    "histopathologic-cancer-detection",
    "jigsaw-toxic-comment-classification-challenge",
    "leaf-classification",
    "movie-review-sentiment-analysis-kernels-only",
    "nomad2018-predict-transparent-conductors",
    "plant-pathology-2020-fgvc7",
    "random-acts-of-pizza",
    "spaceship-titanic",
    "spooky-author-identification",
    "statoil-iceberg-classifier-challenge",
    "tweet-sentiment-extraction",
    "us-patent-phrase-to-phrase-matching",
    "ventilator-pressure-prediction",
)
DISK_BYTES = 48 << 20


@pytest.fixture
def small_disk(tmp_path: Path, root: None) -> Iterator[Path]:
    """A data directory on a disk of its own, which can be filled."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def own(tmp_path: Path, small_disk: Path) -> Iterator[Places]:
    config = tmp_path / "config.toml"
    config.write_text("[engine]\nkeep_free_gb = 0.001\n")
    places = Places(config, small_disk, tmp_path / "state")
    yield places
    control.stop(places)


def known(places: Places) -> dict[str, Dataset]:
    state = database.open_for_reading(places.state_dir)
    try:
        return {dataset.competition_id: dataset for dataset in datasets.all_datasets(state)}
    finally:
        state.close()


def prepared(places: Places) -> int:
    return sum(dataset.state is DatasetState.PREPARED for dataset in known(places).values())


def kill_engine(places: Places) -> None:
    lock = lock_path(places)
    os.kill(int(lock.read_text()), signal.SIGKILL)
    eventually(lambda: not locks.is_held(lock))


def prepare(places: Places, names: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "mlebench_console.console", f"--state-dir={places.state_dir}"]
    command += [f"--data-dir={places.data_dir}", f"--config={places.config_file}"]
    command += ["prepare", "--list", str(names), "--skip-verification"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_twenty_datasets_come_through_everything_that_can_happen(
    loopback: Loopback, own: Places, tmp_path: Path
) -> None:
    for number, name in enumerate(NAMES):
        shelf = loopback.add(name, accepted=name not in REFUSED)
        shelf.faults.extend(cuts(shelf.archive, number % 3, seed=number))
        if name == LIMITED:
            shelf.call_faults.append(Fault(status=429, retry_after="1"))
    names = tmp_path / "names.txt"
    names.write_text("\n".join(NAMES))
    control.start(own)
    running = prepare(own, names)
    try:
        eventually(lambda: prepared(own) >= 2)
        kill_engine(own)
        eventually(lambda: prepared(own) >= 6)
        ballast = own.data_dir / "ballast"
        fill(ballast)
        eventually(
            lambda: any(
                dataset.state is DatasetState.WAITING and "disk is full" in dataset.problem_text
                for dataset in known(own).values()
            )
        )
        assert not [
            one for one in known(own).values() if "disk is full" in one.problem_text and is_failed(one)
        ]
        kill_engine(own)
        ballast.unlink()
        out, err = running.communicate(timeout=240)
    finally:
        running.kill()
        running.wait()
    told = known(own)
    assert running.returncode == 3, err
    assert {name for name, dataset in told.items() if is_failed(dataset)} == set(REFUSED), err
    for name in REFUSED:
        assert f"https://www.kaggle.com/c/{name}/rules" in err
    assert "18 of 20 prepared" in out
    for name in set(NAMES) - set(REFUSED):
        vector = Vector(VECTORS / name)
        expected = vector.expected
        found = describe(own.data_dir / name / "prepared", expected)
        free = set(expected.get("nondeterministic", ()))
        for side in ("public", "private"):
            for path, facts in expected[side].items():
                assert f"{side}/{path}" in free or found[side][path] == facts, (name, path)
            assert found[side].keys() == expected[side].keys()
        left = {path.name for path in (own.data_dir / name).iterdir()}
        assert left == {"prepared", f"{name}.zip", f".{name}.zip.md5.json"}
    asked = loopback.count("storage")
    again = ["prepare", *(f"-c{name}" for name in NAMES if name not in REFUSED), "--json"]
    second = subprocess.run(
        [sys.executable, "-m", "mlebench_console.console", f"--data-dir={own.data_dir}", *again],
        capture_output=True,
        text=True,
    )
    assert {one["state"] for one in json.loads(second.stdout)} == {"was prepared"}
    assert loopback.count("storage") == asked


def is_failed(dataset: Dataset) -> bool:
    return dataset.state in (DatasetState.FAILED, DatasetState.REFUSED, DatasetState.UNAVAILABLE)


def fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(1 << 16))
        except OSError:
            return
