"""Raw data that is damaged or not of a piece is refused by name, and nothing half done is left behind."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mlebench_console.foundation.problems import DataProblem
from tests.competitions.changed_raw import prepared_after


def _drop(name: str) -> Callable[[Path], None]:
    return lambda raw: (raw / name).unlink()


def _write(name: str, content: bytes) -> Callable[[Path], None]:
    def change(raw: Path) -> None:
        (raw / name).write_bytes(content)

    return change


def _zip(name: str, member: str, content: bytes) -> Callable[[Path], None]:
    def change(raw: Path) -> None:
        with zipfile.ZipFile(raw / name, "w") as archive:
            archive.writestr(member, content)

    return change


def _table(name: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], None]:
    def rewrite(raw: Path) -> None:
        rows = pd.read_csv(raw / name, dtype=str, keep_default_na=False)
        change(rows).to_csv(raw / name, index=False)

    return rewrite


@pytest.mark.parametrize(
    ("competition_id", "change", "message"),
    [
        (
            "jigsaw-toxic-comment-classification-challenge",
            _zip("test_labels.csv.zip", "test_labels.csv", b"id,toxic\n"),
            "severe_toxic",
        ),
        (
            "jigsaw-toxic-comment-classification-challenge",
            _zip(
                "test_labels.csv.zip",
                "test_labels.csv",
                b"id,toxic,severe_toxic,obscene,threat,insult,identity_hate\nx,0,0,0,0,0,0\n",
            ),
            "its ids are not those of test.csv",
        ),
        (
            "jigsaw-unintended-bias-in-toxicity-classification",
            _table("test_private_expanded.csv", lambda rows: rows.assign(more=1)),
            "46 columns, expected 45",
        ),
        ("new-york-city-taxi-fare-prediction", _drop("GCP-Coupons-Instructions.rtf"), "GCP-Coupons"),
        (
            "new-york-city-taxi-fare-prediction",
            _table("train.csv", lambda rows: rows.assign(key="same")),
            "a key of a test row occurs there twice",
        ),
        (
            "playground-series-s3e18",
            _table("train.csv", lambda rows: rows.assign(more=1)),
            "39 columns, expected 38",
        ),
        (
            "google-quest-challenge",
            _table("train.csv", lambda rows: rows.assign(answer_helpful=0.5)),
            "a rating is the same in all test rows",
        ),
        (
            "google-quest-challenge",
            _table("train.csv", lambda rows: rows.assign(question_type_spelling=0)),
            "no row has a question_type_spelling above zero",
        ),
        (
            "random-acts-of-pizza",
            _write("train.json", b'[{"request_id": '),
            "train.json cannot be read as JSON",
        ),
        ("random-acts-of-pizza", _write("train.json", b'[{"request_id": "a"}]'), "its requests lack fields"),
        ("random-acts-of-pizza", _write("test.json", b"[]"), "test.json is not in the expected form"),
        (
            "champs-scalar-coupling",
            _table("potential_energy.csv", lambda rows: rows[:3]),
            "potential_energy.csv is incomplete",
        ),
        (
            "h-and-m-personalized-fashion-recommendations",
            _table("transactions_train.csv", lambda rows: rows.assign(t_dat="22/09/2020")),
            "transactions_train.csv is not in the expected form",
        ),
        (
            "text-normalization-challenge-english-language",
            _drop("en_test_2.csv.zip"),
            "en_test_2.csv.zip is missing",
        ),
        (
            "billion-word-imputation",
            _zip("train_v2.txt.zip", "train_v2.txt", b"a b c\n\xff\xfe\n"),
            "train_v2.txt.zip is damaged",
        ),
    ],
)
def test_damaged_raw_data_is_refused_by_name(
    competition_id: str, change: Callable[[Path], None], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataProblem) as caught:
        prepared_after(change, competition_id, "v1", tmp_path)
    assert message in str(caught.value)
    assert not (tmp_path / "data" / competition_id / "prepared").exists()
