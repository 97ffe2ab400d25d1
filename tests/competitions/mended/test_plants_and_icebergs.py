"""Mended defects of photos and radar patches that come in 7z archives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import py7zr

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import held_in_common, mends
from tests.competitions.prepared import prepared
from tests.conformance.trees import VECTORS, digest

PLANTS = "invasive-species-monitoring"
ICEBERGS = "statoil-iceberg-classifier-challenge"


@mends(PLANTS, "archives-without-photos")
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


def patches(folder: Path, part: str, scratch: Path) -> list[dict[str, Any]]:
    """The radar patches of one part."""
    with py7zr.SevenZipFile(folder / f"public/{part}.json.7z") as archive:
        archive.extractall(scratch)
    found: list[dict[str, Any]] = json.loads((scratch / f"{part}.json").read_text())
    return found


@mends(ICEBERGS, "equal-angles-apart")
def test_patches_of_one_angle_stay_together_and_unknown_angles_are_for_training(tmp_path: Path) -> None:
    def repeat(raw: Path) -> None:
        with py7zr.SevenZipFile(raw / "train.json.7z") as archive:
            archive.extractall(raw)
        path = raw / "data/processed/train.json"
        known = json.loads(path.read_text())
        for number, patch in enumerate(known):
            if patch["inc_angle"] != "na":
                patch["inc_angle"] = 30 + number % 12 / 10
        path.write_text(json.dumps(known))
        (raw / "train.json.7z").unlink()
        with py7zr.SevenZipFile(raw / "train.json.7z", "w") as archive:
            archive.write(path, "data/processed/train.json")

    def angles(edition: Edition) -> tuple[set[object], set[object]]:
        folder = prepared_after(repeat, ICEBERGS, edition, tmp_path)
        train, test = (patches(folder, part, tmp_path / edition) for part in ("train", "test"))
        assert [patch["id"] for patch in test] == pd.read_csv(folder / "private/test.csv")["id"].tolist()
        assert not any("is_iceberg" in patch for patch in test)
        unknown[edition] = [sum(patch["inc_angle"] == "na" for patch in part) for part in (train, test)]
        return {patch["inc_angle"] for patch in train}, {patch["inc_angle"] for patch in test}

    unknown: dict[str, list[int]] = {}
    v1, corrected = held_in_common(angles)
    assert v1 > {"na"}
    assert not corrected
    assert unknown["v1"][1] > 0
    assert unknown["corrected"] == [sum(unknown["v1"]), 0]
