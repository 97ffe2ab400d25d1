"""Each defect of sounds, brain waves and speech that edition corrected mends, shown in both editions."""

from __future__ import annotations

import io
import socket
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import requests

from mlebench_console import prepare_competition
from mlebench_console.competitions.judging import GradeRequest, judge
from mlebench_console.competitions.model import EDITIONS, Edition
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    grade_in_both,
    mends,
    refusals,
    sample,
    table,
)
from tests.competitions.prepared import prepared

SOUNDS = "freesound-audio-tagging-2019"
BRAIN = "hms-harmful-brain-activity-classification"
PHONEMES = "ml2021spring-hw2"

# sounds


@mends(SOUNDS, "columns-nan-and-inf-crash")
@pytest.mark.parametrize("extra", [True, False])
def test_a_class_too_many_or_too_few_is_refused_by_name(extra: bool, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(SOUNDS, edition)
        return submission.assign(Thunder=0) if extra else submission.drop(columns="Bark")

    for message in refusals(SOUNDS, make, tmp_path):
        assert ("Thunder" if extra else "Bark") in message


@mends(SOUNDS, "test-labels-published")
def test_test_clips_have_their_published_names_in_v1_and_others_in_corrected() -> None:
    published, unknown = (answers(SOUNDS, edition)["fname"].tolist() for edition in EDITIONS)
    v1, corrected = (
        {path.name for path in (prepared(SOUNDS, edition) / "public").rglob("*") if path.is_file()}
        for edition in EDITIONS
    )
    assert set(published) <= v1
    assert not set(published) & corrected
    shown = {path.name for path in (prepared(SOUNDS, "corrected") / "public" / "test").iterdir()}
    assert shown == set(unknown)
    tables = [path.read_text() for path in (prepared(SOUNDS, "corrected") / "public").rglob("*.csv")]
    assert not [name for name in published if any(name in text for text in tables)]
    # nor can the old names be told from the order
    assert unknown == sorted(unknown) == sample(SOUNDS, "corrected")["fname"].tolist()


@mends(SOUNDS, "test-labels-published")
def test_what_lies_beside_the_known_data_is_public_in_v1_and_left_out_in_corrected(tmp_path: Path) -> None:
    beside = ["test.zip", "FSDKaggle2019.doc.zip", "test.csv"]

    def add(raw: Path) -> None:
        for name in beside:
            (raw / name).write_bytes(b"the old names")

    v1, corrected = (
        {path.name for path in (prepared_after(add, SOUNDS, edition, tmp_path) / "public").iterdir()}
        for edition in EDITIONS
    )
    assert v1 - corrected == set(beside)


def test_renamed_clips_keep_their_sounds_and_labels() -> None:
    def by_sound(edition: Edition) -> dict[bytes, list[int]]:
        folder = prepared(SOUNDS, edition) / "public" / "test"
        rows = answers(SOUNDS, edition).set_index("fname")
        return {(folder / str(name)).read_bytes(): row.tolist() for name, row in rows.iterrows()}

    assert by_sound("v1") == by_sound("corrected")


@mends(SOUNDS, "labels-fetched-and-deleted")
@pytest.mark.parametrize("edition", EDITIONS)
def test_a_label_archive_that_cannot_be_downloaded_is_named_with_where_to_get_it(
    edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = requests.Response()
    gone.status_code, gone.raw = 404, io.BytesIO()
    monkeypatch.setattr(requests, "get", lambda *_, **__: gone)
    with pytest.raises(EnvironmentProblem, match=r"FSDKaggle2019\.meta\.zip can't be downloaded") as caught:
        prepared_after(lambda raw: (raw / "FSDKaggle2019.meta.zip").unlink(), SOUNDS, edition, tmp_path)
    assert "zenodo" in caught.value.next_step


@mends(SOUNDS, "labels-fetched-and-deleted")
@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("packed", [True, False])
def test_the_label_archive_that_is_there_serves_without_a_network_and_stays(
    packed: bool, edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unpack(raw: Path) -> None:
        with zipfile.ZipFile(raw / "FSDKaggle2019.meta.zip") as archive:
            archive.extractall(raw)
        (raw / "FSDKaggle2019.meta.zip").unlink()

    def no_network(*_: object) -> None:
        raise AssertionError("preparing reaches for the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    folder = prepared_after(lambda raw: None if packed else unpack(raw), SOUNDS, edition, tmp_path)
    expected = prepared(SOUNDS, edition) / "private/test.csv"
    assert (folder / "private/test.csv").read_bytes() == expected.read_bytes()
    labels = "FSDKaggle2019.meta.zip" if packed else "FSDKaggle2019.meta/test_post_competition.csv"
    assert (tmp_path / f"raw-{edition}" / labels).is_file()
    assert not [path for path in (folder / "public").rglob("*") if "meta" in path.name]


# brain waves


def gold(edition: Edition) -> pd.DataFrame:
    return pd.read_csv(prepared(BRAIN, edition) / "private/gold_submission.csv")


@mends(BRAIN, "windows-share-their-id")
def test_windows_are_paired_by_order_in_v1_and_by_their_own_id_in_corrected(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(BRAIN, lambda edition: gold(edition).iloc[::-1], tmp_path)
    assert v1.score is not None
    assert v1.score > 0.1
    assert corrected.score == pytest.approx(0, abs=1e-12)
    assert not table(BRAIN, "v1", "public/test.csv")["eeg_id"].is_unique
    rows = table(BRAIN, "corrected", "public/test.csv")
    assert rows["label_id"].is_unique
    assert {"eeg_label_offset_seconds", "spectrogram_label_offset_seconds"} <= set(rows.columns)
    assert not [name for name in rows.columns if name.endswith("_vote") or name == "expert_consensus"]


@mends(BRAIN, "missing-shares-rewarded")
def test_missing_shares_beat_the_perfect_answer_in_v1_and_are_refused_in_corrected(tmp_path: Path) -> None:
    def certain(edition: Edition) -> pd.DataFrame:
        submission = gold(edition)
        votes = [name for name in submission.columns if name.endswith("_vote")]
        shares = submission[votes].to_numpy()
        best = np.where(np.arange(len(votes)) == shares.argmax(axis=1)[:, None], 1.0, np.nan)
        return submission.assign(**dict(zip(votes, best.T, strict=True)))

    v1, corrected = grade_in_both(BRAIN, certain, tmp_path)
    perfect, _ = grade_in_both(BRAIN, gold, tmp_path)
    assert perfect.score == pytest.approx(0, abs=1e-12)
    assert v1.score is not None
    assert v1.score < -0.1
    assert corrected.outcome == "rejected"
    assert "is empty" in corrected.message


@mends(BRAIN, "shares-out-of-form-crash")
@pytest.mark.parametrize("value", ["words", 0.5])
def test_a_further_column_that_is_not_zero_is_refused_in_v1_and_not_looked_at_in_corrected(
    value: str | float, tmp_path: Path
) -> None:
    v1, corrected = grade_in_both(BRAIN, lambda edition: gold(edition).assign(further=value), tmp_path)
    assert v1.outcome == "rejected"
    assert v1.message.startswith("Row 1: ")
    assert corrected.score == pytest.approx(0, abs=1e-12)


def test_a_recording_with_windows_in_train_and_test_is_refused(tmp_path: Path) -> None:
    def one_recording(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        rows.assign(eeg_id=rows["eeg_id"].iloc[0]).to_csv(raw / "train.csv", index=False)

    with pytest.raises(DataProblem, match="several spectrograms"):
        prepared_after(one_recording, BRAIN, "v1", tmp_path)


# speech

FEATURES = 39  # of a frame; a window holds eleven frames


def speech(folder: Path, utterances: int = 30, length: int = 20) -> Path:
    """Raw data of overlapping windows with a phoneme for some frames each; the first number tells the utterance."""
    raw = folder / "raw" / "timit_11" / "timit_11"
    raw.mkdir(parents=True)
    windows, labels = [], []
    for utterance in range(utterances):
        frames = np.random.RandomState(utterance).rand(length + 10, FEATURES).astype(np.float32)
        frames[:, 0] = utterance
        windows += [frames[start : start + 11].ravel() for start in range(length)]
        labels += [str(1 + (3 * utterance + start // 7) % 38) for start in range(length)]
    np.save(raw / "train_11.npy", np.array(windows))
    np.save(raw / "train_label_11.npy", np.array(labels))
    np.save(raw / "test_11.npy", np.zeros((200, 11 * FEATURES), dtype=np.float32))
    return folder / "raw"


def read_off(folder: Path) -> pd.DataFrame:
    """Predictions by the label of the train window one frame before or after, 0 where there is none."""
    train, labels, test = (
        np.load(folder / "public/timit_11/timit_11" / f"{name}_11.npy")
        for name in ("train", "train_label", "test")
    )
    known: dict[bytes, str] = {}
    for window, label in zip(train, labels, strict=True):
        known[b"before" + window[FEATURES:].tobytes()] = label
        known[b"after" + window[:-FEATURES].tobytes()] = label
    found = [
        known.get(b"before" + window[:-FEATURES].tobytes())
        or known.get(b"after" + window[FEATURES:].tobytes(), "0")
        for window in test
    ]
    return pd.DataFrame({"Id": range(len(test)), "ClassId": found})


@mends(PHONEMES, "overlapping-windows-on-both-sides", "easier-split-than-the-leaderboards")
def test_labels_can_be_read_off_overlapping_windows_in_v1_and_not_in_corrected(tmp_path: Path) -> None:
    raw = speech(tmp_path)
    scores: dict[Edition, float | None] = {}
    shared: dict[Edition, int] = {}
    for edition in EDITIONS:
        folder = prepare_competition(PHONEMES, data_dir=tmp_path / "data", raw=raw, edition=edition)
        parts = [
            np.load(folder / "public/timit_11/timit_11" / f"{part}_11.npy")[:, 0]
            for part in ("train", "test")
        ]
        shared[edition] = len(set(parts[0]) & set(parts[1]))
        assert sum(map(len, parts)) == 600
        assert len(pd.read_csv(folder / "private" / "answers.csv")) == len(parts[1])
        path = tmp_path / f"{edition}.csv"
        read_off(folder).to_csv(path, index=False)
        scores[edition] = judge(GradeRequest(PHONEMES, path, folder, edition)).score
    assert shared["v1"] > 20
    assert shared["corrected"] == 0
    assert scores["v1"] is not None
    assert scores["v1"] > 0.7
    assert scores["corrected"] == 0


def test_labels_that_are_too_few_are_refused(tmp_path: Path) -> None:
    raw = speech(tmp_path)
    np.save(raw / "timit_11" / "timit_11" / "train_label_11.npy", np.array(["1", "2"]))
    with pytest.raises(DataProblem, match=r"train_label_11\.npy"):
        prepare_competition(PHONEMES, data_dir=tmp_path / "data", raw=raw)
