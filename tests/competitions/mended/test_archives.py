"""Each defect that edition corrected mends, shown in both editions, for competitions of archives, sounds and orders."""

from __future__ import annotations

import json
import wave
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import py7zr
import pytest

from competitions import registry
from competitions.judging import Judgement, judge
from competitions.model import EDITIONS, Edition
from engine import prepare_competition
from foundation.problems import DataProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, grade_in_both, sample, table
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector, digest

PLANTS = "invasive-species-monitoring"
ICEBERGS = "statoil-iceberg-classifier-challenge"
SPEECH = "tensorflow-speech-recognition-challenge"
WHALE_CALLS = "the-icml-2013-whale-challenge-right-whale-redux"
MOLECULES = "bms-molecular-translation"
BIRDS = "mlsp-2013-birds"
NOTEBOOKS = "AI4Code"


def test_photos_of_plants_are_in_the_archives(tmp_path: Path) -> None:
    expected = json.loads((VECTORS / PLANTS / "prepared_corrected.json").read_text())
    for edition in EDITIONS:
        for name, facts in expected.items():
            target = tmp_path / edition / name
            with py7zr.SevenZipFile(prepared(PLANTS, edition) / name) as archive:
                archive.extractall(target)
            held = {
                path.relative_to(target).as_posix(): digest(path.read_bytes())
                for path in target.rglob("*")
                if path.is_file()
            }
            assert held == (facts["7z"] if edition == "corrected" else {})


def _patches(folder: Path, part: str, scratch: Path) -> list[dict[str, Any]]:
    with py7zr.SevenZipFile(folder / f"public/{part}.json.7z") as archive:
        archive.extractall(scratch)
    patches: list[dict[str, Any]] = json.loads((scratch / f"{part}.json").read_text())
    return patches


def test_patches_of_one_angle_stay_together_and_unknown_angles_are_for_training(tmp_path: Path) -> None:
    def repeat(raw: Path) -> None:
        with py7zr.SevenZipFile(raw / "train.json.7z") as archive:
            archive.extractall(raw)
        path = raw / "data/processed/train.json"
        patches = json.loads(path.read_text())
        for number, patch in enumerate(patches):
            if patch["inc_angle"] != "na":
                patch["inc_angle"] = 30 + number % 12 / 10
        path.write_text(json.dumps(patches))
        (raw / "train.json.7z").unlink()
        with py7zr.SevenZipFile(raw / "train.json.7z", "w") as archive:
            archive.write(path, "data/processed/train.json")

    shared = {}
    for edition in EDITIONS:
        folder = prepared_after(repeat, ICEBERGS, edition, tmp_path)
        train, test = (_patches(folder, part, tmp_path / edition) for part in ("train", "test"))
        angles = [{patch["inc_angle"] for patch in part} for part in (train, test)]
        shared[edition] = angles[0] & angles[1]
        assert [patch["id"] for patch in test] == pd.read_csv(folder / "private/test.csv")["id"].tolist()
        assert not any("is_iceberg" in patch for patch in test)
    assert shared["v1"] >= {"na"}
    assert len(shared["v1"]) > 1
    assert not shared["corrected"]


@pytest.mark.parametrize("change", ["repeated", "another"])
def test_repeated_patches_are_refused(change: str, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(ICEBERGS, edition)
        more = submission.iloc[:1]
        return pd.concat([submission if change == "repeated" else submission.iloc[1:], more, more])

    for judgement in grade_in_both(ICEBERGS, make, tmp_path):
        assert judgement.outcome == "rejected"


def test_the_twelve_answers_count(tmp_path: Path) -> None:
    v1, corrected = (set(answers(SPEECH, edition)["label"]) for edition in EDITIONS)
    commands = {"yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"}
    assert v1 - commands - {"silence", "unknown"}
    assert v1.isdisjoint({"silence", "unknown"})
    assert {"silence", "unknown"} < corrected <= commands | {"silence", "unknown"}


def test_no_speaker_is_in_both_parts(tmp_path: Path) -> None:
    raw = Vector(VECTORS / SPEECH).unpack_raw(tmp_path / "raw")
    with py7zr.SevenZipFile(raw / "train.7z") as archive:
        archive.extractall(raw)
    clips = [
        path for path in (raw / "train/audio").rglob("*.wav") if path.parent.name != "_background_noise_"
    ]
    spoken = {(clip.parent.name, clip.name) for clip in clips}
    shared = {}
    for edition in EDITIONS:
        kept = {
            (path.parent.name, path.name)
            for path in (prepared(SPEECH, edition) / "public/train/audio").rglob("*.wav")
        }
        speakers = [{name.partition("_")[0] for _, name in part} for part in (spoken & kept, spoken - kept)]
        assert speakers[1]
        shared[edition] = speakers[0] & speakers[1]
    assert shared["v1"]
    assert not shared["corrected"]


def test_held_out_noise_is_cut_into_seconds(tmp_path: Path) -> None:
    def lengthen(raw: Path) -> None:
        with py7zr.SevenZipFile(raw / "train.7z") as archive:
            archive.extractall(raw)
        (raw / "train.7z").unlink()
        for number, path in enumerate(sorted((raw / "train/audio/_background_noise_").glob("*.wav"))):
            with wave.open(str(path), "wb") as noise:
                noise.setparams((1, 2, 16000, 0, "NONE", "not compressed"))
                for second in range(5):
                    noise.writeframes(bytes([number, second]) * 16000)
        with py7zr.SevenZipFile(raw / "train.7z", "w") as archive:
            archive.writeall(raw / "train", "train")

    longest = {}
    for edition in EDITIONS:
        folder = prepared_after(lengthen, SPEECH, edition, tmp_path)
        told = pd.read_csv(folder / "private/test.csv")
        sizes = []
        for name in told["fname"]:
            with wave.open(str(folder / "public/test/audio" / name)) as clip:
                sizes.append(clip.getnframes())
        longest[edition] = max(sizes)
        if edition == "corrected":
            assert [size for size, label in zip(sizes, told["label"], strict=True) if label == "silence"] == [
                16000
            ] * 5
            noise = folder / "public/train/audio/_background_noise_"
            assert len(list(noise.glob("*.wav"))) == 5
    assert longest["v1"] == 80000
    assert longest["corrected"] == 16000


def test_labels_that_are_numbers_are_refused(tmp_path: Path) -> None:
    for judgement in grade_in_both(SPEECH, lambda edition: sample(SPEECH, edition).assign(label=7), tmp_path):
        assert judgement.outcome == "rejected"
        assert "is not text" in judgement.message


def test_an_empty_cell_is_the_empty_text_and_not_the_word_nan(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        return answers(MOLECULES, edition).assign(InChI="")

    v1, corrected = grade_in_both(MOLECULES, make, tmp_path)
    lengths = answers(MOLECULES, "corrected")["InChI"].str.len()
    assert corrected.score == pytest.approx(lengths.mean())
    assert v1.score is not None
    assert v1.score < corrected.score


def test_words_that_stand_for_missing_cells_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("image_id,InChI\na,None1\nb,None2\n")
    submission = tmp_path / "submission.csv"
    submission.write_text("image_id,InChI\nb,None\na,None\n")
    scores = [
        judge(
            registry.get(MOLECULES),
            submission,
            prepared=prepared(MOLECULES, edition),
            edition=edition,
            answers=path,
        ).score
        for edition in EDITIONS
    ]
    assert scores == [4.0, 1.0]


def test_hand_made_examples_of_test_recordings_are_left_out() -> None:
    held = {}
    for edition in EDITIONS:
        public = prepared(BIRDS, edition) / "public"
        folds = table(BIRDS, edition, "public/essential_data/CVfolds_2.txt")
        names = table(BIRDS, edition, "public/essential_data/rec_id2filename.txt").set_index("rec_id")[
            "filename"
        ]
        test = set(names[folds.loc[folds["fold"] == "1", "rec_id"]])
        examples = {path.stem for path in (public / "supplemental_data/segmentation_examples").glob("*.bmp")}
        held[edition] = examples
        assert bool(examples & test) == (edition == "v1")
    assert held["corrected"] < held["v1"]


@pytest.mark.parametrize("change", ["unknown", "repeated"])
def test_cells_that_don_t_belong_are_refused_by_row(change: str, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = answers(NOTEBOOKS, edition)
        cells = submission.loc[4, "cell_order"].split()
        cells[-1] = "ffffffff" if change == "unknown" else cells[0]
        submission.loc[4, "cell_order"] = " ".join(cells)
        return submission

    for judgement in grade_in_both(NOTEBOOKS, make, tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 5")


def test_notebooks_may_be_fewer_than_planned(tmp_path: Path) -> None:
    raw = Vector(VECTORS / NOTEBOOKS).unpack_raw(tmp_path / "raw")
    with pytest.raises(DataProblem, match="expected 20000"):
        prepare_competition(NOTEBOOKS, data_dir=tmp_path / "data", raw=raw)
    folder = prepare_competition(NOTEBOOKS, data_dir=tmp_path / "data", raw=raw, edition="corrected")
    train, test = (len(list((folder / "public" / part).iterdir())) for part in ("train", "test"))
    assert 0 < test <= 0.15 * (train + test) + 1


def judged(competition_id: str, content: str, answers_: str, folder: Path) -> Judgement:
    (folder / "answers.csv").write_text(answers_)
    (folder / "submission.csv").write_text(content)
    return judge(
        registry.get(competition_id),
        folder / "submission.csv",
        prepared=prepared(competition_id),
        answers=folder / "answers.csv",
    )


def test_notebooks_without_an_order_are_not_scored(tmp_path: Path) -> None:
    judgement = judged(NOTEBOOKS, "id,cell_order\na,x\nb,y\n", "id,cell_order\na,x\nb,y\n", tmp_path)
    assert judgement.outcome == "rejected"
    assert "no order to compare" in judgement.message


def test_members_of_zips_keep_their_names() -> None:
    with zipfile.ZipFile(prepared(WHALE_CALLS) / "public/test2.zip") as archive:
        named = [name.removeprefix("test2/") for name in archive.namelist()]
    assert sorted(named) == sorted(answers(WHALE_CALLS, "v1")["clip"])
