"""Each defect that edition corrected mends, shown in both editions, for competitions of signals and their like."""

from __future__ import annotations

import io
import json
import math
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.io import loadmat, savemat

from competitions import registry
from competitions.judging import Judgement, judge
from competitions.model import EDITIONS, Edition
from engine import prepare_competition
from foundation.problems import DataProblem
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, grade_in_both, sample, table, with_cell
from tests.competitions.prepared import prepared

SOUNDS = "freesound-audio-tagging-2019"
BRAIN = "hms-harmful-brain-activity-classification"
ICE = "icecube-neutrinos-in-deep-ice"
PHONEMES = "ml2021spring-hw2"
GESTURES = "multi-modal-gesture-recognition"
CONTACTS = "nfl-player-contact-detection"
LUNGS = "osic-pulmonary-fibrosis-progression"
VOLCANO = "predict-volcanic-eruptions-ingv-oe"
DRIVES = "smartphone-decimeter-2022"
RNA = "stanford-covid-vaccine"
QUESTIONS = "tensorflow2-question-answering"


@pytest.mark.parametrize(
    ("competition_id", "column", "value"),
    [
        (SOUNDS, "Bark", "loud"),
        (SOUNDS, "Bark", None),
        (SOUNDS, "Bark", math.inf),
        (BRAIN, "lpd_vote", "some"),
        (BRAIN, "lpd_vote", -1),
        (BRAIN, "lpd_vote", 2),
        (PHONEMES, "ClassId", None),
        (PHONEMES, "ClassId", "sh"),
        (PHONEMES, "ClassId", 1.5),
        (CONTACTS, "contact", None),
        (CONTACTS, "contact", "yes"),
        (CONTACTS, "contact", 0.5),
        (VOLCANO, "time_to_eruption", None),
        (VOLCANO, "time_to_eruption", math.inf),
        (VOLCANO, "time_to_eruption", "soon"),
        (DRIVES, "LatitudeDegrees", "north"),
        (RNA, "reactivity", None),
        (RNA, "reactivity", math.inf),
        (RNA, "reactivity", "high"),
        (QUESTIONS, "PredictionString", "1:x"),
    ],
)
def test_what_made_the_grader_crash_is_refused_by_row(
    competition_id: str, column: str, value: object, tmp_path: Path
) -> None:
    for judgement in grade_in_both(competition_id, with_cell(competition_id, column, value), tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 1:")
        assert column in judgement.message


# freesound


@pytest.mark.parametrize("extra", [True, False])
def test_a_class_too_many_or_too_few_is_refused_by_name(extra: bool, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = sample(SOUNDS, edition)
        return submission.assign(Thunder=0) if extra else submission.drop(columns="Bark")

    for judgement in grade_in_both(SOUNDS, make, tmp_path):
        assert judgement.outcome == "rejected"
        assert ("Thunder" if extra else "Bark") in judgement.message


def test_test_clips_have_names_that_cannot_be_looked_up() -> None:
    old, new = (set(answers(SOUNDS, edition)["fname"]) for edition in EDITIONS)
    assert not old & new
    shown = {path.name for path in (prepared(SOUNDS, "corrected") / "public" / "test").iterdir()}
    assert shown == new == set(sample(SOUNDS, "corrected")["fname"])
    assert old <= {path.name for path in (prepared(SOUNDS) / "public" / "test").iterdir()}


def test_renamed_clips_keep_their_sounds_and_labels() -> None:
    def by_sound(edition: Edition) -> dict[bytes, list[int]]:
        folder = prepared(SOUNDS, edition) / "public" / "test"
        rows = answers(SOUNDS, edition).set_index("fname")
        return {(folder / name).read_bytes(): row.tolist() for name, row in rows.iterrows()}

    assert by_sound("v1") == by_sound("corrected")


def test_a_missing_label_archive_is_told_with_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataProblem, match=r"FSDKaggle2019\.meta\.zip is missing") as caught:
        prepared_after(lambda raw: (raw / "FSDKaggle2019.meta.zip").unlink(), SOUNDS, "v1", tmp_path)
    assert "zenodo" in caught.value.next_step


def test_an_unpacked_label_archive_serves_as_well_and_stays(tmp_path: Path) -> None:
    def unpack(raw: Path) -> None:
        with zipfile.ZipFile(raw / "FSDKaggle2019.meta.zip") as archive:
            archive.extractall(raw)
        (raw / "FSDKaggle2019.meta.zip").unlink()

    folder = prepared_after(unpack, SOUNDS, "v1", tmp_path)
    assert (folder / "private/test.csv").read_bytes() == (prepared(SOUNDS) / "private/test.csv").read_bytes()
    assert (tmp_path / "raw-v1" / "FSDKaggle2019.meta").is_dir()
    assert not (folder / "public" / "FSDKaggle2019.meta").exists()


# hms


def test_a_window_is_named_and_may_stand_anywhere(tmp_path: Path) -> None:
    def shuffled_gold(edition: Edition) -> pd.DataFrame:
        gold = pd.read_csv(prepared(BRAIN, edition) / "private/gold_submission.csv")
        return gold.iloc[::-1]

    v1, corrected = grade_in_both(BRAIN, shuffled_gold, tmp_path)
    assert v1.score is not None and v1.score > 0.1
    assert corrected.score == pytest.approx(0, abs=1e-12)
    rows = table(BRAIN, "corrected", "public/test.csv")
    assert rows["label_id"].is_unique
    assert {"eeg_label_offset_seconds", "spectrogram_label_offset_seconds"} <= set(rows.columns)
    assert not [name for name in rows.columns if name.endswith("_vote") or name == "expert_consensus"]


def test_a_missing_share_is_refused_instead_of_rewarded(tmp_path: Path) -> None:
    def certain(edition: Edition) -> pd.DataFrame:
        submission = pd.read_csv(prepared(BRAIN, edition) / "private/gold_submission.csv")
        votes = [name for name in submission.columns if name.endswith("_vote")]
        shares = submission[votes].to_numpy()
        best = np.where(shares == shares.max(axis=1, keepdims=True), 1.0, np.nan)
        best[np.nansum(best, axis=1) > 1] = [1, *[0] * 5]
        return submission.assign(**dict(zip(votes, best.T, strict=True)))

    v1, corrected = grade_in_both(BRAIN, certain, tmp_path)
    assert v1.outcome == "scored"
    assert corrected.outcome == "rejected" and "is missing" in corrected.message


def test_a_further_column_that_is_not_zero_is_refused(tmp_path: Path) -> None:
    for value in ("words", 0.5):
        v1, _ = grade_in_both(
            BRAIN, lambda edition, value=value: sample(BRAIN, edition).assign(x=value), tmp_path
        )
        assert v1.outcome == "rejected"


def test_a_recording_with_windows_in_train_and_test_is_refused(tmp_path: Path) -> None:
    def one_recording(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        rows.assign(eeg_id=rows["eeg_id"].iloc[0]).to_csv(raw / "train.csv", index=False)

    with pytest.raises(DataProblem, match="several spectrograms"):
        prepared_after(one_recording, BRAIN, "v1", tmp_path)


# ml2021


def speech(folder: Path, utterances: int = 30, length: int = 20) -> Path:
    """Raw data of overlapping windows, whose first number of each frame tells its utterance."""
    raw = folder / "raw" / "timit_11" / "timit_11"
    raw.mkdir(parents=True)
    windows = []
    for utterance in range(utterances):
        frames = np.random.RandomState(utterance).rand(length + 10, 39).astype(np.float32)
        frames[:, 0] = utterance
        windows += [frames[start : start + 11].ravel() for start in range(length)]
    np.save(raw / "train_11.npy", np.array(windows))
    np.save(raw / "train_label_11.npy", np.array([str(row % 39) for row in range(len(windows))]))
    np.save(raw / "test_11.npy", np.zeros((200, 429), dtype=np.float32))
    return folder / "raw"


def test_whole_utterances_are_held_out(tmp_path: Path) -> None:
    raw = speech(tmp_path)
    shared = {}
    for edition in EDITIONS:
        folder = prepare_competition(PHONEMES, data_dir=tmp_path / "data", raw=raw, edition=edition)
        parts = [
            np.load(folder / "public" / "timit_11" / "timit_11" / f"{part}_11.npy")[:, 0]
            for part in ("train", "test")
        ]
        shared[edition] = len(set(parts[0]) & set(parts[1]))
        assert sum(map(len, parts)) == 600
        assert len(pd.read_csv(folder / "private" / "answers.csv")) == len(parts[1])
    assert shared["v1"] > 20
    assert shared["corrected"] == 0


def test_labels_that_are_too_few_are_refused(tmp_path: Path) -> None:
    raw = speech(tmp_path)
    np.save(raw / "timit_11" / "timit_11" / "train_label_11.npy", np.array(["1", "2"]))
    with pytest.raises(DataProblem, match=r"train_label_11\.npy"):
        prepare_competition(PHONEMES, data_dir=tmp_path / "data", raw=raw)


# multi-modal gestures


def recording(labels: list[tuple[str, int]] | None) -> bytes:
    """A recording with labels, or with a data file of another format."""
    data = io.BytesIO()
    if labels is None:
        data.write(b"\x89HDF labels")
    else:
        kind = [("Name", object), ("Begin", object)]
        savemat(data, {"Video": {"NumFrames": 40, "Labels": np.array(labels, dtype=kind)}})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Sample00004_audio.wav", b"sound")
        archive.writestr("Sample00004_data.mat", data.getvalue())
    return packed.getvalue()


def replace_recording(content: bytes) -> Callable[[Path], None]:
    """A change of the raw data that leaves one recording of the held-out archive, with this content."""

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


def test_recordings_to_predict_carry_no_labels(tmp_path: Path) -> None:
    change = replace_recording(recording([("vattene", 3), ("basta", 20)]))
    held = {}
    for edition in EDITIONS:
        names, members = published(prepared_after(change, GESTURES, edition, tmp_path))
        video = loadmat(io.BytesIO(members["Sample00004_data.mat"]), simplify_cells=True)["Video"]
        assert members["Sample00004_audio.wav"] == b"sound"
        assert video["NumFrames"] == 40
        held[edition] = (len(names), np.size(video["Labels"]))
    assert held == {"v1": (3, 2), "corrected": (1, 0)}


def test_data_whose_labels_cannot_be_taken_out_are_left_out(tmp_path: Path) -> None:
    folder = prepared_after(replace_recording(recording(None)), GESTURES, "corrected", tmp_path)
    assert set(published(folder)[1]) == {"Sample00004_audio.wav"}


def test_damaged_data_of_a_recording_are_named(tmp_path: Path) -> None:
    content = recording([("vattene", 3)])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        data = archive.read("Sample00004_data.mat")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("Sample00004_data.mat", data[:-30])
    with pytest.raises(DataProblem, match=r"Sample00004_data\.mat of Sample00004\.zip in training4"):
        prepared_after(replace_recording(packed.getvalue()), GESTURES, "corrected", tmp_path)


def test_no_gesture_is_a_prediction(tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        rows = table(GESTURES, edition, "private/test.csv").sort_values("Id")
        rows.iloc[0, 1] = ""
        return rows

    v1, corrected = grade_in_both(GESTURES, make, tmp_path)
    rows = table(GESTURES, "corrected", "private/test.csv").sort_values("Id")
    lengths = rows["Sequence"].str.split().map(len).tolist()
    assert v1.message.startswith("Row 1: Sequence")
    assert corrected.score == pytest.approx(lengths[0] / sum(lengths))


# nfl


def test_contact_is_yes_or_no(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(CONTACTS, with_cell(CONTACTS, "contact", 2, row=2), tmp_path)
    assert v1.outcome == "scored"
    assert corrected.message == "Row 3: contact 2 is neither 0 nor 1."


# osic


def lungs(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Edition], pd.DataFrame]:
    """A changed submission of the true values, as far as there are some."""

    def make(edition: Edition) -> pd.DataFrame:
        rows = answers(LUNGS, edition)[["Patient_Week", "FVC", "Confidence"]].fillna(2000)
        return change(rows)

    return make


def test_rows_cannot_be_left_out(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(LUNGS, lungs(lambda rows: rows.iloc[:0]), tmp_path)
    assert corrected.outcome == "rejected"
    v1, corrected = grade_in_both(LUNGS, lungs(lambda rows: rows.iloc[1:]), tmp_path)
    assert v1.outcome == "scored"
    assert "rows, expected" in corrected.message


@pytest.mark.parametrize("value", [None, math.inf])
def test_every_capacity_is_a_number(value: float | None, tmp_path: Path) -> None:
    v1, corrected = grade_in_both(LUNGS, lungs(lambda rows: rows.assign(FVC=value)), tmp_path)
    assert v1.outcome == "scored" and v1.score is not None
    assert math.isnan(v1.score) == (value is None)
    assert corrected.message.startswith("Row 1: FVC")


def test_a_repeated_visit_is_refused(tmp_path: Path) -> None:
    def repeated(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([rows, rows], ignore_index=True)

    v1, corrected = grade_in_both(LUNGS, lungs(repeated), tmp_path)
    assert v1.outcome == corrected.outcome == "rejected"
    assert "stands there already" in v1.message


def test_weeks_asked_for_do_not_tell_those_of_the_visits() -> None:
    weeks, visits = {}, {}
    for edition in EDITIONS:
        rows = answers(LUNGS, edition)
        visited = rows[rows["FVC"].notna()]["Weeks"]
        weeks[edition], visits[edition] = (
            (column.min(), column.max()) for column in (rows["Weeks"], visited)
        )
    assert weeks["v1"] == visits["v1"]
    raw = pd.concat(
        [pd.read_csv(prepared(LUNGS) / "public/train.csv")["Weeks"], answers(LUNGS, "v1")["Weeks"]]
    )
    assert weeks["corrected"] == (min(-12, raw.min()), max(133, raw.max()))


def test_of_two_visits_in_one_week_the_first_one_counts(tmp_path: Path) -> None:
    patient = answers(LUNGS, "v1")["Patient"].iloc[0]

    def visit_twice(raw: Path) -> None:
        rows = pd.read_csv(raw / "train.csv")
        again = rows[rows["Patient"] == patient].iloc[[0]].assign(FVC=1)
        pd.concat([rows, again]).to_csv(raw / "train.csv", index=False)

    with pytest.raises(DataProblem, match="two visits in one week"):
        prepared_after(visit_twice, LUNGS, "v1", tmp_path)
    folder = prepared_after(visit_twice, LUNGS, "corrected", tmp_path)
    expected = prepared(LUNGS, "corrected") / "private/test.csv"
    assert (folder / "private/test.csv").read_bytes() == expected.read_bytes()


# volcano


def test_a_segment_cannot_be_repeated(tmp_path: Path) -> None:
    def repeated(edition: Edition) -> pd.DataFrame:
        rows = sample(VOLCANO, edition)
        rows.loc[0, "time_to_eruption"] = answers(VOLCANO, edition)["time_to_eruption"].iloc[0]
        return pd.concat([rows, *[rows.iloc[[0]]] * 100])

    v1, corrected = grade_in_both(VOLCANO, repeated, tmp_path)
    honest, _ = grade_in_both(VOLCANO, lambda edition: repeated(edition).drop_duplicates(), tmp_path)
    assert v1.score is not None and honest.score is not None
    assert v1.score < honest.score / 5
    assert "rows, expected" in corrected.message


def test_values_beyond_all_measure_are_refused(tmp_path: Path) -> None:
    for judgement in grade_in_both(
        VOLCANO, lambda edition: sample(VOLCANO, edition).assign(time_to_eruption=1.7e308), tmp_path
    ):
        assert judgement.outcome == "rejected" and "too large" in judgement.message


# smartphone


def test_the_reference_log_of_test_drives_is_hidden() -> None:
    logs = {
        edition: {
            part: len(list((prepared(DRIVES, edition) / "public" / part).rglob("span_log.nmea")))
            for part in ("train", "test")
        }
        for edition in EDITIONS
    }
    assert logs["v1"]["test"] > 0
    assert logs["corrected"] == {"train": logs["v1"]["train"], "test": 0}


def test_points_are_matched_by_time(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(DRIVES, lambda edition: answers(DRIVES, edition).iloc[::-1], tmp_path)
    assert v1.score is not None and v1.score > 1
    assert corrected.score == 0
    v1, corrected = grade_in_both(
        DRIVES, lambda edition: answers(DRIVES, edition).assign(UnixTimeMillis=0), tmp_path
    )
    assert v1.score == 0
    assert "is not among the ids asked for" in corrected.message


@pytest.mark.parametrize("value", [None, math.inf])
def test_every_place_is_told(value: float | None, tmp_path: Path) -> None:
    v1, corrected = grade_in_both(DRIVES, with_cell(DRIVES, "LatitudeDegrees", value, row=1), tmp_path)
    assert v1.score is not None and math.isnan(v1.score)
    assert corrected.message.startswith("Row 2: LatitudeDegrees")


# openvaccine


def test_rows_in_any_order_are_scored_alike(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        RNA, lambda edition: answers(RNA, edition).sample(frac=1, random_state=1), tmp_path
    )
    assert v1.score is not None and v1.score > 0.1
    assert corrected.score == 0


def test_similar_molecules_stay_together(tmp_path: Path) -> None:
    def make_families(raw: Path) -> None:
        lines = [json.loads(line) for line in (raw / "train.json").read_text().splitlines()]
        for number, line in enumerate(lines):
            rng = np.random.RandomState(number // 4)
            bases = rng.choice(list("ACGU"), len(line["sequence"]))
            bases[number % 4] = "ACGU"[number % 4]  # one base tells the members of a family apart
            line["sequence"] = "".join(bases)
        (raw / "train.json").write_text("".join(json.dumps(line) + "\n" for line in lines))

    shared = {}
    for edition in EDITIONS:
        folder = prepared_after(make_families, RNA, edition, tmp_path)
        parts = [pd.read_json(folder / "public" / f"{name}.json", lines=True) for name in ("train", "test")]
        families = [set(part["sequence"].str[4:]) for part in parts]
        shared[edition] = len(families[0] & families[1])
        assert len(parts[1]) > 0
        if edition == "corrected":
            assert len(parts[1]) <= 0.1 * (len(parts[0]) + len(parts[1])) + 1
    assert shared["v1"] > 0
    assert shared["corrected"] == 0


# questions


def test_rows_rightly_left_out_do_not_count(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(QUESTIONS, lambda edition: sample(QUESTIONS, edition), tmp_path)
    assert v1.score is not None and v1.score > 0.4
    assert corrected.score == 0


def test_f1_of_answers_counts_wrong_and_missing_ones(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    long = {"start_token": 5, "end_token": 9, "candidate_index": 0}
    none = {"start_token": -1, "end_token": -1, "candidate_index": -1}

    def line(id_: int, passage: dict[str, int], word: str) -> str:
        annotation: dict[str, Any] = {"yes_no_answer": word, "long_answer": passage, "short_answers": []}
        return json.dumps({"annotations": [annotation], "example_id": str(id_)}, separators=(",", ":")) + "\n"

    answers.write_text(line(1, long, "YES") + line(2, none, "NONE"))
    submission = tmp_path / "submission.csv"
    submission.write_text("example_id,PredictionString\n1_long,5:9\n1_short,\n2_long,1:2\n2_short,\n")

    def graded(edition: Edition) -> Judgement:
        folder = prepared(QUESTIONS, edition)
        return judge(registry.get(QUESTIONS), submission, prepared=folder, edition=edition, answers=answers)

    assert graded("v1").score == 0.5  # one hit and one rightly blank
    assert graded("corrected").score == pytest.approx(2 / (2 + 1 + 1))  # one hit, one wrong, one missing


def test_preparing_twice_gives_the_same_files(tmp_path: Path) -> None:
    first, second = (prepared_after(lambda raw: None, QUESTIONS, "v1", tmp_path / name) for name in "ab")
    again = prepare_competition(QUESTIONS, data_dir=tmp_path / "a" / "data", raw=tmp_path / "a" / "raw-v1")
    assert again == first
    for path in (path for path in second.rglob("*.jsonl")):
        assert (first / path.relative_to(second)).read_bytes() == path.read_bytes()


def test_keys_keep_their_order_and_ids_become_text(tmp_path: Path) -> None:
    folder = prepared_after(lambda raw: None, QUESTIONS, "v1", tmp_path)
    line = json.loads((folder / "public" / "simplified-nq-test.jsonl").read_text().splitlines()[0])
    assert list(line) == ["example_id", "question_text", "document_text", "long_answer_candidates"]
    assert isinstance(line["example_id"], str)


# icecube


def test_angles_are_numbers(tmp_path: Path) -> None:
    for judgement in grade_in_both(ICE, lambda edition: sample(ICE, edition).assign(azimuth=True), tmp_path):
        assert judgement.message.startswith("azimuth holds something else than numbers")
