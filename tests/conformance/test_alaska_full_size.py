"""At its real size, where the labels follow from a fixed seed and the number 5000, ALASKA2 is as it is known."""

from __future__ import annotations

import json
from pathlib import Path

from mlebench_console import prepare_competition
from tests.conformance.trees import VECTORS, digest

ALASKA = "alaska2-image-steganalysis"


def test_the_real_number_of_test_images_gives_the_known_answers(tmp_path: Path) -> None:
    known = json.loads((VECTORS / ALASKA / "full_size.json").read_text())
    rule = known["raw_rule"]
    for folder in rule["dirs"]:
        (tmp_path / "raw" / folder).mkdir(parents=True)
        for number in range(1, rule["n_names"] + 1):
            name = f"{number:05d}.jpg"
            (tmp_path / "raw" / folder / name).write_text(f"{folder}/{name}\n")
    prepared = prepare_competition(ALASKA, data_dir=tmp_path / "data", raw=tmp_path / "raw")
    for name in ("private/test.csv", "public/sample_submission.csv"):
        assert digest((prepared / name).read_bytes()) == known[name]["sha256"]
    files = {
        path.relative_to(prepared / "public").as_posix(): digest(path.read_bytes())
        for path in (prepared / "public").rglob("*.jpg")
    }
    files["sample_submission.csv"] = known["public/sample_submission.csv"]["sha256"]
    listing = "".join(f"{name} {sha}\n" for name, sha in sorted(files.items()))
    assert len(files) == known["public_file_count"]
    assert digest(listing.encode()) == known["public_listing_sha256"]
