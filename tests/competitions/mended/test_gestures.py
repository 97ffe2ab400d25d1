"""Each defect of the gesture recordings that edition corrected mends, shown in both editions."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat, savemat

from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import grade_in_both, mends, table

GESTURES = "multi-modal-gesture-recognition"
DATA = "Sample00004_data.mat"
LABELS = np.array([("vattene", 3), ("basta", 20)], dtype=[("Name", object), ("Begin", object)])


def matlab(**variables: object) -> bytes:
    stream = io.BytesIO()
    savemat(stream, variables)
    return stream.getvalue()


def recording(data: bytes, **others: bytes) -> bytes:
    """The zip of a recording with its data file, its sound, and other files by suffix."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Sample00004_audio.wav", b"sound")
        archive.writestr(DATA, data)
        for suffix, content in others.items():
            archive.writestr(f"Sample00004_labels.{suffix}", content)
    return packed.getvalue()


def replace_recording(content: bytes) -> Callable[[Path], None]:
    """A change of the raw data that leaves one recording of the held-out archive, and other files beside it."""

    def change(raw: Path) -> None:
        with tarfile.open(raw / "training4.tar.gz", "w:gz") as archive:
            for name, held in (
                ("./Sample00004.zip", content),
                ("labels.csv", b"0004,1"),
                ("old/Sample1.zip", b""),
            ):
                entry = tarfile.TarInfo(name)
                entry.size = len(held)
                archive.addfile(entry, io.BytesIO(held))

    return change


def published(folder: Path) -> tuple[list[str], dict[str, bytes]]:
    """The members of the public test archive, and those of its recording."""
    with tarfile.open(folder / "public" / "test.tar.gz") as archive:
        names = archive.getnames()
        stream = archive.extractfile(next(name for name in names if name.endswith("004.zip")))
        assert stream is not None
        with zipfile.ZipFile(io.BytesIO(stream.read())) as members:
            return names, {name: members.read(name) for name in members.namelist()}


@mends(GESTURES, "labels-in-the-test-recordings")
def test_recordings_to_predict_carry_their_labels_in_v1_and_none_in_corrected(tmp_path: Path) -> None:
    change = replace_recording(recording(matlab(Video={"NumFrames": 40, "Labels": LABELS})))
    held = {}
    for edition in EDITIONS:
        names, members = published(prepared_after(change, GESTURES, edition, tmp_path))
        video = loadmat(io.BytesIO(members[DATA]), simplify_cells=True)["Video"]
        assert members["Sample00004_audio.wav"] == b"sound"
        assert video["NumFrames"] == 40
        held[edition] = (len(names), np.size(video["Labels"]))
    assert held == {"v1": (3, 2), "corrected": (1, 0)}


@mends(GESTURES, "labels-in-the-test-recordings")
@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (recording(b"\x89HDF vattene"), {"Sample00004_audio.wav"}),
        (recording(matlab(labels="vattene")), {"Sample00004_audio.wav", DATA}),
        (recording(matlab(Video={"Truth": {"Labels": "vattene"}})), {"Sample00004_audio.wav", DATA}),
        (recording(matlab(Video=1), csv=b"vattene", txt=b"vattene"), {"Sample00004_audio.wav", DATA}),
    ],
    ids=["another format", "a variable", "a struct inside", "further files"],
)
def test_labels_that_lie_elsewhere_are_public_in_v1_and_taken_out_in_corrected(
    content: bytes, kept: set[str], tmp_path: Path
) -> None:
    v1, corrected = (
        published(prepared_after(replace_recording(content), GESTURES, edition, tmp_path))[1]
        for edition in EDITIONS
    )
    assert any(b"vattene" in member.replace(b"\0", b"") for member in v1.values())
    assert not any(b"vattene" in member.replace(b"\0", b"") for member in corrected.values())
    assert set(corrected) == kept


def test_archives_of_corrected_tell_no_time(tmp_path: Path) -> None:
    change = replace_recording(recording(matlab(Video={"Labels": LABELS})))
    path = prepared_after(change, GESTURES, "corrected", tmp_path) / "public" / "test.tar.gz"
    assert path.read_bytes()[4:8] == bytes(4)  # gzip's time
    with tarfile.open(path) as archive:
        (member,) = archive.getmembers()
        stream = archive.extractfile(member)
        assert member.mtime == 0
        assert stream is not None
        with zipfile.ZipFile(io.BytesIO(stream.read())) as members:
            assert {info.date_time for info in members.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_damaged_data_of_a_recording_are_named(tmp_path: Path) -> None:
    change = replace_recording(recording(matlab(Video={"Labels": LABELS})[:-30]))
    with pytest.raises(DataProblem, match=r"Sample00004_data\.mat of Sample00004\.zip in training4"):
        prepared_after(change, GESTURES, "corrected", tmp_path)


@mends(GESTURES, "no-gesture-cannot-be-told")
def test_an_empty_list_is_refused_in_v1_and_a_prediction_of_no_gesture_in_corrected(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        rows = table(GESTURES, edition, "private/test.csv").sort_values("Id")
        rows.iloc[0, 1] = ""
        return rows

    v1, corrected = grade_in_both(GESTURES, make, tmp_path)
    rows = table(GESTURES, "corrected", "private/test.csv").sort_values("Id")
    lengths = rows["Sequence"].str.split().map(len).tolist()
    assert v1.message.startswith("Row 1: Sequence")
    assert corrected.score == pytest.approx(lengths[0] / sum(lengths))
