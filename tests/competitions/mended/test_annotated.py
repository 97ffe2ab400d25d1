"""Each defect that edition corrected mends, for competitions of annotated images; and targets that are none."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, grade_in_both, sample, with_cell
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector, digest

HERBARIUM_2020 = "herbarium-2020-fgvc7"
HERBARIUM_2021 = "herbarium-2021-fgvc8"
HERBARIUM_2022 = "herbarium-2022-fgvc9"
INATURALIST = "inaturalist-2019-fgvc6"
CAMERAS_2019 = "iwildcam-2019-fgvc6"
CAMERAS_2020 = "iwildcam-2020-fgvc7"
PLANTS = "invasive-species-monitoring"
ICEBERGS = "statoil-iceberg-classifier-challenge"
SPEECH = "tensorflow-speech-recognition-challenge"
WHALE_CALLS = "the-icml-2013-whale-challenge-right-whale-redux"
PRODUCTS = "cdiscount-image-classification-challenge"
PAGES = "denoising-dirty-documents"
BIRDS = "mlsp-2013-birds"

TARGETS = {
    HERBARIUM_2020: "Predicted",
    HERBARIUM_2021: "Predicted",
    HERBARIUM_2022: "Predicted",
    INATURALIST: "predicted",
    CAMERAS_2019: "Category",
    CAMERAS_2020: "Category",
    PLANTS: "invasive",
    ICEBERGS: "is_iceberg",
    SPEECH: "label",
    WHALE_CALLS: "probability",
    PRODUCTS: "category_id",
    PAGES: "value",
    BIRDS: "Probability",
}


def third_target(competition_id: str, value: object) -> Callable[[Edition], pd.DataFrame]:
    """The answers with another target in the third row."""
    return with_cell(competition_id, TARGETS[competition_id], value, row=2, base=answers)


def document(competition_id: str, edition: Edition, name: str) -> Any:
    return json.loads((prepared(competition_id, edition) / name).read_text())


@pytest.mark.parametrize("competition_id", TARGETS)
def test_missing_targets_are_refused_by_row(competition_id: str, tmp_path: Path) -> None:
    for judgement in grade_in_both(competition_id, third_target(competition_id, None), tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 3")


@pytest.mark.parametrize("competition_id", sorted(TARGETS.keys() - {SPEECH}))
def test_words_for_numbers_are_refused_by_row(competition_id: str, tmp_path: Path) -> None:
    for judgement in grade_in_both(competition_id, third_target(competition_id, "oak"), tmp_path):
        assert judgement.outcome == "rejected"
        assert "'oak'" in judgement.message


@pytest.mark.parametrize("competition_id", [HERBARIUM_2021, PAGES])
def test_infinite_targets_are_refused_by_row(competition_id: str, tmp_path: Path) -> None:
    for judgement in grade_in_both(competition_id, third_target(competition_id, "inf"), tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 3")


@pytest.mark.parametrize("competition_id", [CAMERAS_2020, PRODUCTS, INATURALIST])
def test_fractions_of_classes_are_refused(competition_id: str, tmp_path: Path) -> None:
    for judgement in grade_in_both(competition_id, third_target(competition_id, 2.5), tmp_path):
        assert judgement.outcome == "rejected"


@pytest.mark.parametrize("competition_id", [HERBARIUM_2020, HERBARIUM_2021, HERBARIUM_2022, CAMERAS_2019])
def test_fractions_of_classes_are_cut_off_in_v1_only(competition_id: str, tmp_path: Path) -> None:
    def make(edition: Edition) -> pd.DataFrame:
        submission = answers(competition_id, edition)
        return submission.assign(**{TARGETS[competition_id]: submission[TARGETS[competition_id]] + 0.75})

    v1, corrected = grade_in_both(competition_id, make, tmp_path)
    assert v1.score == 1
    assert corrected.outcome == "rejected"
    assert "is not a whole number" in corrected.message


@pytest.mark.parametrize("value", ["1,2,3", "1.0 2", "oak 3", " "])
def test_first_guesses_that_are_no_class_are_refused_by_row(value: str, tmp_path: Path) -> None:
    for judgement in grade_in_both(INATURALIST, third_target(INATURALIST, value), tmp_path):
        assert judgement.outcome == "rejected"
        assert judgement.message.startswith("Row 3")


@pytest.mark.parametrize(("competition_id", "base"), [(HERBARIUM_2020, "nybg2020/"), (HERBARIUM_2021, "")])
def test_no_species_has_more_than_ten_test_images(competition_id: str, base: str, tmp_path: Path) -> None:
    def grow(raw: Path) -> None:
        path = raw / base / "train/metadata.json"
        known = json.loads(path.read_text(encoding="latin-1"))
        image, annotation = known["images"][0], known["annotations"][0]
        content = (raw / base / "train" / image["file_name"]).read_bytes()
        folder = image["file_name"].rpartition("/")[0]
        for number in range(100):
            name = f"{folder}/more{number}.jpg"
            (raw / base / "train" / name).write_bytes(content + bytes([number]))
            known["images"].append({**image, "id": 10**7 + number, "file_name": name})
            known["annotations"].append({**annotation, "id": 10**7 + number, "image_id": 10**7 + number})
        path.write_text(json.dumps(known))

    most = {}
    for edition in EDITIONS:
        folder = prepared_after(grow, competition_id, edition, tmp_path)
        held_out = pd.read_csv(folder / "private/answers.csv")["Predicted"]
        most[edition] = int(held_out.value_counts().max())
        made = [len(list((folder / "public" / base / part).rglob("*.jpg"))) for part in ("train", "test")]
        assert made == [
            len(json.loads((folder / "public" / base / "train/metadata.json").read_text())["images"]),
            len(held_out),
        ]
    assert most["v1"] > 20
    assert most["corrected"] == 10


def test_the_order_of_test_plants_follows_from_their_pictures() -> None:
    test = {edition: prepared(HERBARIUM_2020, edition) / "public/nybg2020/test" for edition in EDITIONS}
    originals = {}
    for edition, folder in test.items():
        records = json.loads((folder / "metadata.json").read_text())["images"]
        contents = [(folder / record["file_name"]).read_bytes() for record in records]
        originals[edition] = contents if edition == "v1" else [content[:-16] for content in contents]
    assert sorted(originals["v1"]) == sorted(originals["corrected"])
    by_digest = sorted(originals["v1"], key=lambda content: hashlib.blake2b(content).hexdigest())
    assert originals["v1"] != by_digest
    assert originals["corrected"] == by_digest


def test_hashes_of_test_plants_cannot_be_looked_up(tmp_path: Path) -> None:
    raw = Vector(VECTORS / HERBARIUM_2020).unpack_raw(tmp_path / "raw")
    known = {digest(path.read_bytes()) for path in raw.rglob("*.jpg")}
    found = {}
    for edition in EDITIONS:
        pictures = (prepared(HERBARIUM_2020, edition) / "public/nybg2020/test/images").rglob("*.jpg")
        found[edition] = {digest(path.read_bytes()) for path in pictures}
    assert found["v1"] < known
    assert found["corrected"].isdisjoint(known)


def test_test_photos_of_species_are_named_anew(tmp_path: Path) -> None:
    members, images = {}, {}
    for edition in EDITIONS:
        public = prepared(INATURALIST, edition) / "public"
        with tarfile.open(public / "test2019.tar.gz") as archive:
            members[edition] = {
                member.name: digest(archive.extractfile(member).read()) for member in archive.getmembers()
            }
        images[edition] = document(INATURALIST, edition, "public/test2019.json")["images"]
        named = [image["file_name"].removeprefix("test2019/") for image in images[edition]]
        assert sorted(named) == sorted(members[edition])
        assert [image["id"] for image in images[edition]] == answers(INATURALIST, edition)["id"].tolist()
    assert Counter(members["v1"].values()) == Counter(members["corrected"].values())
    assert members["v1"].keys().isdisjoint(members["corrected"])
    assert [image["id"] for image in images["corrected"]] == list(range(len(images["corrected"])))
    assert "rights_holder" in images["v1"][0]
    assert not any("rights_holder" in image for image in images["corrected"])


def test_test_photos_keep_their_species_under_new_names() -> None:
    species = {}
    for edition in EDITIONS:
        told = answers(INATURALIST, edition).set_index("id")["predicted"]
        with tarfile.open(prepared(INATURALIST, edition) / "public/test2019.tar.gz") as archive:
            species[edition] = {
                (
                    digest(archive.extractfile(image["file_name"].removeprefix("test2019/")).read()),
                    told[image["id"]],
                )
                for image in document(INATURALIST, edition, "public/test2019.json")["images"]
            }
    assert species["v1"] == species["corrected"]


def test_an_unpacked_folder_of_photos_gives_the_same(tmp_path: Path) -> None:
    def unpack(raw: Path) -> None:
        with tarfile.open(raw / "train_val2019.tar.gz") as archive:
            archive.extractall(raw, filter="data")
        (raw / "train_val2019.tar.gz").unlink()

    folder = prepared_after(unpack, INATURALIST, "v1", tmp_path)
    for name in ("train_val2019.tar.gz", "test2019.tar.gz"):
        held = []
        for base in (folder, prepared(INATURALIST)):
            with tarfile.open(base / "public" / name) as archive:
                held.append({m.name: archive.extractfile(m).read() for m in archive.getmembers()})
        assert held[0] == held[1]


def test_the_sample_does_not_tell_places_in_the_raw_table() -> None:
    assert list(sample(CAMERAS_2019, "v1").columns) == ["Unnamed: 0", "Id", "Category"]
    assert list(sample(CAMERAS_2019, "corrected").columns) == ["Id", "Category"]


def test_the_column_of_older_texts_is_taken_too(tmp_path: Path) -> None:
    v1, corrected = grade_in_both(
        CAMERAS_2020,
        lambda edition: answers(CAMERAS_2020, edition).rename(columns={"Category": "Predicted"}),
        tmp_path,
    )
    assert "'Category' is missing" in v1.message
    assert corrected.score == 1
