"""Each defect of tracked players and phones, volcanoes and molecules that edition corrected mends, in both editions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import (
    answers,
    grade_in_both,
    mends,
    sample,
)

CONTACTS = "nfl-player-contact-detection"
DRIVES = "smartphone-decimeter-2022"
RNA = "stanford-covid-vaccine"
VOLCANO = "predict-volcanic-eruptions-ingv-oe"

# players


@mends(CONTACTS, "further-classes-of-contact")
def test_other_numbers_are_further_classes_in_v1_and_refused_in_corrected(tmp_path: Path) -> None:
    from sklearn.metrics import matthews_corrcoef

    def with_twos(edition: Edition) -> pd.DataFrame:
        rows = answers(CONTACTS, edition)[["contact_id", "contact"]]
        rows.loc[2:8, "contact"] = 2
        return rows

    v1, corrected = grade_in_both(CONTACTS, with_twos, tmp_path)
    several = matthews_corrcoef(answers(CONTACTS, "v1")["contact"], with_twos("v1")["contact"])
    assert v1.score == pytest.approx(several)
    assert corrected.message.startswith("Row 3: contact '2' is neither 0 nor 1.")


# volcanoes


@mends(VOLCANO, "repeated-segments-weigh-more")
def test_a_known_segment_lowers_the_error_by_repetition_in_v1_and_is_refused_in_corrected(
    tmp_path: Path,
) -> None:
    def repeated(edition: Edition) -> pd.DataFrame:
        rows = sample(VOLCANO, edition)
        rows.loc[0, "time_to_eruption"] = answers(VOLCANO, edition)["time_to_eruption"].iloc[0]
        return pd.concat([rows, *[rows.iloc[[0]]] * 100])

    v1, corrected = grade_in_both(VOLCANO, repeated, tmp_path)
    honest, _ = grade_in_both(VOLCANO, lambda edition: repeated(edition).drop_duplicates(), tmp_path)
    assert v1.score is not None
    assert honest.score is not None
    assert v1.score < honest.score / 5
    assert "rows, expected" in corrected.message


# phones


@mends(DRIVES, "reference-log-in-test-drives")
def test_the_reference_log_of_test_drives_is_public_in_v1_and_private_in_corrected(tmp_path: Path) -> None:
    def log_under_another_name(raw: Path) -> None:
        for path in raw.glob("train/*/*/supplemental/span_log.nmea"):
            path.with_name("REFERENCE.NMEA").write_bytes(path.read_bytes())

    logs, truths = {}, {}
    for edition in EDITIONS:
        public = prepared_after(log_under_another_name, DRIVES, edition, tmp_path) / "public"
        files = {part: [path.name for path in (public / part).rglob("*")] for part in ("train", "test")}
        logs[edition] = {
            part: sum(name.lower().endswith(".nmea") for name in names) for part, names in files.items()
        }
        truths[edition] = files["test"].count("ground_truth.csv")
        assert "gnss_log.txt" in files["test"]
    assert logs["v1"]["test"] > 0
    assert logs["corrected"] == {"train": logs["v1"]["train"], "test": 0}
    assert truths == {"v1": 0, "corrected": 0}


# molecules


@mends(RNA, "similar-molecules-on-both-sides")
def test_similar_molecules_are_on_both_sides_in_v1_and_on_one_in_corrected(tmp_path: Path) -> None:
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
        train, test = (
            pd.read_json(folder / "public" / f"{name}.json", lines=True) for name in ("train", "test")
        )
        shared[edition] = len(set(train["sequence"].str[4:]) & set(test["sequence"].str[4:]))
        molecules = len((tmp_path / f"raw-{edition}" / "train.json").read_text().splitlines())
        assert 0 < len(test) <= molecules / 10
    assert shared["v1"] > 0
    assert shared["corrected"] == 0
