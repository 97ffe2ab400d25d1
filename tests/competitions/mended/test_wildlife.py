"""Mended defects of photos of wild animals and plants: iNaturalist 2019, iWildCam 2019 and 2020."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, mends, sample
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, Vector, digest, unpack_tar

INATURALIST = "inaturalist-2019-fgvc6"
CAMERAS_2019 = "iwildcam-2019-fgvc6"


def members(archive: Path) -> dict[str, str]:
    """The digest of each member of a tar, in the order of the tar."""
    with tarfile.open(archive) as opened:
        held = ((member.name, opened.extractfile(member)) for member in opened.getmembers())
        return {name: digest(content.read()) for name, content in held if content is not None}


def photos(edition: Edition) -> list[dict[str, Any]]:
    """What the public document tells of test photos."""
    document = json.loads((prepared(INATURALIST, edition) / "public/test2019.json").read_text())
    found: list[dict[str, Any]] = document["images"]
    return found


@mends(INATURALIST, "ids-and-photographers-of-test-photos")
def test_test_photos_of_species_are_numbered_anew_and_name_no_photographer(tmp_path: Path) -> None:
    raw = Vector(VECTORS / INATURALIST).unpack_raw(tmp_path / "raw")
    known = {image["id"]: image for image in json.loads((raw / "train2019.json").read_text())["images"]}
    told, held = {}, {}
    for edition in EDITIONS:
        told[edition] = photos(edition)
        held[edition] = members(prepared(INATURALIST, edition) / "public/test2019.tar.gz")
        assert [image["id"] for image in told[edition]] == answers(INATURALIST, edition)["id"].tolist()
        named = [image["file_name"].removeprefix("test2019/") for image in told[edition]]
        assert sorted(named) == sorted(held[edition])
    for image in told["v1"]:
        assert image["rights_holder"] == known[image["id"]]["rights_holder"]
        assert Path(image["file_name"]).name == Path(known[image["id"]]["file_name"]).name
    assert [image["id"] for image in told["corrected"]] == list(range(len(told["corrected"])))
    assert not any("rights_holder" in image for image in told["corrected"])
    assert held["v1"].keys().isdisjoint(held["corrected"])
    assert sorted(held["v1"].values()) == sorted(held["corrected"].values())


def test_test_photos_keep_their_species_under_new_names() -> None:
    species = {}
    for edition in EDITIONS:
        held = members(prepared(INATURALIST, edition) / "public/test2019.tar.gz")
        told = answers(INATURALIST, edition).set_index("id")["predicted"]
        species[edition] = {
            (held[image["file_name"].removeprefix("test2019/")], told[image["id"]])
            for image in photos(edition)
        }
    assert species["v1"] == species["corrected"]


def test_an_unpacked_folder_of_photos_gives_the_same(tmp_path: Path) -> None:
    def unpack(raw: Path) -> None:
        unpack_tar(raw / "train_val2019.tar.gz", raw)
        (raw / "train_val2019.tar.gz").unlink()

    folder = prepared_after(unpack, INATURALIST, "v1", tmp_path)
    for name in ("train_val2019.tar.gz", "test2019.tar.gz"):
        held = [members(base / "public" / name) for base in (folder, prepared(INATURALIST))]
        assert held[0] == held[1]


def test_the_sample_does_not_tell_places_in_the_raw_table() -> None:
    assert list(sample(CAMERAS_2019, "v1").columns) == ["Unnamed: 0", "Id", "Category"]
    assert list(sample(CAMERAS_2019, "corrected").columns) == ["Id", "Category"]
