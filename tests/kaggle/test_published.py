"""Raw files that Kaggle does not deliver come from where they are published, or from `raw/`, with nobody at hand."""

from __future__ import annotations

import io
import random
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Competition, PublishedFile
from mlebench_console.engine.datasets import preparing
from mlebench_console.engine.datasets.sources import published
from mlebench_console.engine.datasets.steps import DownloadProgress
from tests.conformance.trees import VECTORS, Vector, describe
from tests.kaggle.loopback import Fault, Loopback, published_apart, storage_url
from tests.kaggle.test_download import Waits

ID = "freesound-audio-tagging-2019"
NAME = "FSDKaggle2019.meta.zip"
SHELF = "labels"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(DownloadProgress, "wait", lambda _self, seconds, why: made(seconds, why))
    monkeypatch.setattr(published, "SystemClock", lambda: made)
    return made


@pytest.fixture
def competition(monkeypatch: pytest.MonkeyPatch) -> Competition:
    """The competition, with labels that the loopback Kaggle's storage publishes."""
    found = replace(registry.get(ID), published=(PublishedFile(NAME, storage_url(SHELF)),))
    monkeypatch.setattr(preparing, "get", lambda _: found)
    return found


@pytest.fixture
def data(tmp_path: Path, loopback: Loopback) -> Path:
    """A data directory; Kaggle delivers everything but the labels."""
    delivered, others = published_apart(ID)
    labels = io.BytesIO(others[NAME])
    with zipfile.ZipFile(labels, "a") as more:
        more.writestr("FSDKaggle2019.meta/large enough to be cut", random.Random(0).randbytes(600_000))
    loopback.add(SHELF, archive=labels.getvalue())
    loopback.add(ID, archive=delivered)
    return tmp_path / "data"


def prepare(data: Path) -> None:
    vector = Vector(VECTORS / ID)
    folder = prepare_competition(ID, data_dir=data, verify=False)
    found = describe(folder, vector.expected)
    assert found == {side: vector.expected[side] for side in ("public", "private")}


def asked(loopback: Loopback, name: str) -> list[str]:
    return [one.range for one in loopback.asked if one.what == "storage" and one.competition == name]


def test_labels_are_downloaded_and_a_cut_download_goes_on(
    loopback: Loopback, competition: Competition, data: Path, waits: Waits
) -> None:
    shelf = loopback.shelves[SHELF]
    half = len(shelf.archive) // 2
    shelf.faults.extend([Fault(status=503), Fault(cut_after=half)])
    prepare(data)
    *whole, rest = asked(loopback, SHELF)
    assert whole == ["", "", ""]
    assert 0 < int(rest.removeprefix("bytes=").removesuffix("-")) <= half
    assert waits.reasons[0] == "127.0.0.1 answered 503" and len(waits.reasons) == 2
    assert [path.name for path in (data / ID / "published").iterdir()] == [NAME]
    shutil.rmtree(data / ID / "prepared")
    prepare(data)
    assert len(asked(loopback, SHELF)) == 4, "what is there is not downloaded again"


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("unpacked", [False, True])
def test_labels_in_raw_are_used_and_are_not_mistaken_for_kaggles_data(
    unpacked: bool, loopback: Loopback, competition: Competition, data: Path
) -> None:
    raw = data / ID / "raw"
    raw.mkdir(parents=True)
    (raw / NAME).write_bytes(loopback.shelves[SHELF].archive)
    if unpacked:
        shutil.unpack_archive(raw / NAME, raw)
        (raw / NAME).unlink()
    prepare(data)
    assert asked(loopback, SHELF) == []
    assert len(asked(loopback, ID)) == 1


def test_labels_that_cannot_be_had_stop_before_anything_large_is_downloaded(
    loopback: Loopback, competition: Competition, data: Path, waits: Waits
) -> None:
    shelf = loopback.shelves[SHELF]
    shelf.faults.extend([Fault(status=503)] * 100)
    with pytest.raises(
        published.SourceFailure, match=f"{NAME} can't be downloaded from 127.0.0.1: .* 503"
    ) as caught:
        prepare(data)
    assert f"put it into {data / ID / 'raw'}" in caught.value.next_step
    assert sum(waits.seconds) <= 300
    shelf.faults.clear()
    shelf.archive = b"<html>Sign in to the network</html>"
    with pytest.raises(published.SourceFailure, match="the downloaded file is not a zip"):
        prepare(data)
    assert asked(loopback, ID) == []
    assert list((data / ID / "published").iterdir()) == []
