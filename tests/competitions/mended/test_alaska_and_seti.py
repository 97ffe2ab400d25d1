"""Mended leaks of hidden messages, whose labels could be reckoned, and of signals, published once before."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mlebench_console.competitions.model import EDITIONS, Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import answers, mends
from tests.competitions.prepared import prepared

ALASKA = "alaska2-image-steganalysis"
SETI = "seti-breakthrough-listen"


@mends(ALASKA, "labels-follow-from-a-known-seed")
def test_hidden_messages_cannot_be_told_from_the_program_alone(tmp_path: Path) -> None:
    def other_photos(raw: Path) -> None:
        for cover in (raw / "Cover").iterdir():
            cover.write_bytes(cover.read_bytes() + b".")

    labels: dict[Edition, list[list[int]]] = {}
    for edition in EDITIONS:
        others = pd.read_csv(prepared_after(other_photos, ALASKA, edition, tmp_path) / "private" / "test.csv")
        labels[edition] = [rows["Label"].tolist() for rows in (answers(ALASKA, edition), others)]
    assert labels["v1"][0] == labels["v1"][1]
    assert labels["corrected"][0] != labels["corrected"][1]
    assert labels["corrected"][0] != labels["v1"][0]


@mends(SETI, "leaky-first-data-published")
def test_the_leaky_first_data_of_seti_are_left_out() -> None:
    assert (prepared(SETI, "v1") / "public" / "old_leaky_data" / "test_labels_old.csv").is_file()
    assert not list((prepared(SETI, "corrected") / "public").rglob("*old*"))
