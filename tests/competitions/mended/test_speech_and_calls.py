"""Mended defects of spoken words, calls of whales and songs of birds."""

from __future__ import annotations

import wave
import zipfile
from pathlib import Path

import pandas as pd
import py7zr

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, assert_kept_together, mends, table
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector, digest

SPEECH = "tensorflow-speech-recognition-challenge"
WHALE_CALLS = "the-icml-2013-whale-challenge-right-whale-redux"
BIRDS = "mlsp-2013-birds"

NOISE = "_background_noise_"
COMMANDS = {"yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"}


def recordings(folder: Path) -> list[Path]:
    """The recordings of the raw data, taken out."""
    raw = Vector(VECTORS / SPEECH).unpack_raw(folder / "raw")
    with py7zr.SevenZipFile(raw / "train.7z") as archive:
        archive.extractall(folder)
    return sorted((folder / "train/audio").rglob("*.wav"))


@mends(SPEECH, "thirty-words-for-twelve-answers")
def test_the_twelve_answers_count(tmp_path: Path) -> None:
    words = {digest(clip.read_bytes()): clip.parent.name for clip in recordings(tmp_path)}
    told = {}
    for edition in EDITIONS:
        audio = prepared(SPEECH, edition) / "public/test/audio"
        rows = answers(SPEECH, edition)
        clips = [words.get(digest((audio / name).read_bytes()), NOISE) for name in rows["fname"]]
        told[edition] = list(zip(clips, rows["label"], strict=True))
        assert {clip.name for clip in audio.iterdir()} == set(rows["fname"])
    assert all(word == label for word, label in told["v1"])
    assert {label for _, label in told["v1"]} - COMMANDS
    for word, label in told["corrected"]:
        assert label == ("silence" if word == NOISE else word if word in COMMANDS else "unknown")
    assert {"silence", "unknown"} < {label for _, label in told["corrected"]}


@mends(SPEECH, "speakers-in-both-parts")
def test_no_speaker_is_in_both_parts(tmp_path: Path) -> None:
    spoken = {(clip.parent.name, clip.name) for clip in recordings(tmp_path) if clip.parent.name != NOISE}

    def speakers(edition: Edition) -> tuple[set[str], set[str]]:
        audio = prepared(SPEECH, edition) / "public/train/audio"
        kept = {(clip.parent.name, clip.name) for clip in audio.rglob("*.wav")}
        train, test = (
            {name.partition("_")[0] for _, name in part} for part in (spoken & kept, spoken - kept)
        )
        return train, test

    assert_kept_together(speakers)


@mends(SPEECH, "long-noise-as-test-clips")
def test_held_out_noise_is_cut_into_seconds(tmp_path: Path) -> None:
    def lengthen(raw: Path) -> None:
        with py7zr.SevenZipFile(raw / "train.7z") as archive:
            archive.extractall(raw)
        (raw / "train.7z").unlink()
        for number, path in enumerate(sorted((raw / "train/audio" / NOISE).glob("*.wav"))):
            with wave.open(str(path), "wb") as noise:
                noise.setparams((1, 2, 16000, 0, "NONE", "not compressed"))
                for second in range(5):
                    noise.writeframes(bytes([number, second]) * 16000)
        with py7zr.SevenZipFile(raw / "train.7z", "w") as archive:
            archive.writeall(raw / "train", "train")

    lengths: dict[str, dict[str, list[int]]] = {}
    for edition in EDITIONS:
        folder = prepared_after(lengthen, SPEECH, edition, tmp_path)
        lengths[edition] = {}
        for _, name, label in pd.read_csv(folder / "private/test.csv").itertuples():
            with wave.open(str(folder / "public/test/audio" / name)) as clip:
                lengths[edition].setdefault(label, []).append(clip.getnframes())
    assert lengths["v1"][NOISE] == [5 * 16000]
    assert lengths["corrected"]["silence"] == [16000] * 5
    assert len(list((folder / "public/train/audio" / NOISE).glob("*.wav"))) == 5


def test_members_of_zips_keep_their_names() -> None:
    with zipfile.ZipFile(prepared(WHALE_CALLS) / "public/test2.zip") as archive:
        named = [name.removeprefix("test2/") for name in archive.namelist()]
    assert sorted(named) == sorted(answers(WHALE_CALLS, "v1")["clip"])


@mends(BIRDS, "examples-of-test-recordings")
def test_hand_made_examples_of_test_recordings_are_left_out() -> None:
    held = {}
    for edition in EDITIONS:
        public = prepared(BIRDS, edition) / "public"
        folds = table(BIRDS, edition, "public/essential_data/CVfolds_2.txt")
        names = table(BIRDS, edition, "public/essential_data/rec_id2filename.txt").set_index("rec_id")
        test = set(names["filename"][folds.loc[folds["fold"] == "1", "rec_id"]])
        held[edition] = {
            path.stem for path in (public / "supplemental_data/segmentation_examples").glob("*.bmp")
        }
        assert bool(held[edition] & test) == (edition == "v1")
        assert held[edition] - test
    assert held["corrected"] < held["v1"]
