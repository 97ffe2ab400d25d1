"""Mended defects of the herbaria: how many sheets of a species are held out, and what tells their species."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, mends
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector, digest

HERBARIUM_2020 = "herbarium-2020-fgvc7"
HERBARIUM_2021 = "herbarium-2021-fgvc8"
HERBARIUM_2022 = "herbarium-2022-fgvc9"


@pytest.mark.parametrize(
    ("competition_id", "base"),
    [
        pytest.param(HERBARIUM_2020, "nybg2020/", marks=mends(HERBARIUM_2020, "more-than-ten-per-species")),
        pytest.param(HERBARIUM_2021, "", marks=mends(HERBARIUM_2021, "more-than-ten-per-species")),
    ],
)
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


def species_by_the_recipe(competition_id: str, metadata: str, edition: Edition) -> list[int]:
    """The species of the test sheets as who knows the recipe reckons them, looking at no picture.

    How many of each species are held out follows from how many are left for training.
    """
    document = json.loads((prepared(competition_id, edition) / "public" / metadata).read_text())
    held_out = answers(competition_id, edition)["Predicted"].value_counts()
    species = [
        category
        for category in dict.fromkeys(annotation["category_id"] for annotation in document["annotations"])
        for _ in range(held_out.get(category, 0))
    ]
    random.Random(0).shuffle(species)
    return species


@pytest.mark.parametrize(
    ("competition_id", "metadata"),
    [
        pytest.param(competition_id, metadata, marks=mends(competition_id, "test-order-can-be-inverted"))
        for competition_id, metadata in (
            (HERBARIUM_2020, "nybg2020/train/metadata.json"),
            (HERBARIUM_2021, "train/metadata.json"),
            (HERBARIUM_2022, "train_metadata.json"),
        )
    ],
)
def test_the_order_of_test_plants_cannot_be_reckoned(competition_id: str, metadata: str) -> None:
    can_be_reckoned: dict[Edition, bool] = {"v1": True, "corrected": False}
    for edition, follows in can_be_reckoned.items():
        reckoned = species_by_the_recipe(competition_id, metadata, edition)
        assert (reckoned == answers(competition_id, edition)["Predicted"].tolist()) == follows


@mends(HERBARIUM_2020, "test-order-can-be-inverted")
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


@mends(HERBARIUM_2020, "file-hashes-can-be-looked-up")
def test_hashes_of_test_plants_cannot_be_looked_up(tmp_path: Path) -> None:
    raw = Vector(VECTORS / HERBARIUM_2020).unpack_raw(tmp_path / "raw")
    known = {digest(path.read_bytes()) for path in raw.rglob("*.jpg")}
    found = {}
    for edition in EDITIONS:
        pictures = (prepared(HERBARIUM_2020, edition) / "public/nybg2020/test/images").rglob("*.jpg")
        found[edition] = {digest(path.read_bytes()) for path in pictures}
        assert found[edition]
    assert found["v1"] < known
    assert found["corrected"].isdisjoint(known)
