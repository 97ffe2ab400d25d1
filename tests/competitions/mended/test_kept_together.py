"""What belongs together is on both sides of the split in v1, and on one side in corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import Edition
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.archived import rewrite, zipped
from tests.competitions.mended.editions import assert_kept_together, mends
from tests.competitions.prepared import prepared

Part = Callable[[Path, str], set[Any]]


@dataclass(frozen=True)
class Case:
    """What is to stay together in a competition.

    Attributes:
        of: the competition.
        defect: that it is apart in v1.
        held: what one part of a prepared folder, `train` or `test`, holds of it.
        change: of the raw data, where the conformance vector has nothing that belongs together.
    """

    of: str
    defect: str
    held: Part
    change: Callable[[Path], None] | None = None


def column(*names: str, change: Callable[[pd.Series], pd.Series] = lambda cells: cells) -> Part:
    """The texts of columns of a public table, joined."""

    def held(folder: Path, part: str) -> set[Any]:
        rows = pd.read_csv(folder / "public" / f"{part}.csv", dtype=str, keep_default_na=False)
        return set(change(rows[list(names)].agg("".join, axis=1)))

    return held


def patients(folder: Path, part: str) -> set[Any]:
    name = "public/train.csv" if part == "train" else "private/test.csv"
    return set(pd.read_csv(folder / name, dtype=str)["PatientID"])


def pictures(pattern: str) -> Part:
    """The bytes of pictures."""
    return lambda folder, part: {
        picture.read_bytes() for picture in (folder / "public" / pattern.format(part=part)).iterdir()
    }


def sentences_of_phrases(folder: Path, part: str) -> set[Any]:
    rows = zipped(folder, f"{part}.tsv", "\t")
    assert part == "train" or list(rows.columns) == ["PhraseId", "SentenceId", "Phrase"]
    return set(rows["SentenceId"])


def spoken_sentences(folder: Path, part: str) -> set[Any]:
    tokens = zipped(folder, f"ru_{'test_2' if part == 'test' else part}.csv")
    return set(tokens.groupby("sentence_id")["before"].agg(" ".join))


def asked_questions(folder: Path, part: str) -> set[Any]:
    assert pd.read_csv(folder / "private" / "test.csv")["question_type_spelling"].nunique() > 1
    return column("question_title", "question_body")(folder, part)


def equal_pictures(folder: str) -> Callable[[Path], None]:
    """Let several pictures in a folder have the same bytes."""

    def change(raw: Path) -> None:
        for number, picture in enumerate(sorted((raw / folder).iterdir())):
            picture.write_bytes(b"picture %d" % (number % 30))

    return change


def share_patients(raw: Path) -> None:
    lesions = pd.read_csv(raw / "train.csv")
    lesions["patient_id"] = [f"IP_{number % 20}" for number in range(len(lesions))]
    lesions.to_csv(raw / "train.csv", index=False)


def say_twice(raw: Path) -> None:
    def again(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.concat(
            [rows, rows.assign(sentence_id=(rows["sentence_id"].astype(int) + 10**6).astype(str))]
        )

    rewrite(raw / "ru_train.csv.zip", "ru_train.csv", again)


def ask_twice(raw: Path) -> None:
    rows = pd.read_csv(raw / "train.csv")
    for name in ("question_title", "question_body"):
        rows[name] = rows[name].iloc[np.arange(len(rows)) // 2 * 2].to_numpy()
    rows.to_csv(raw / "train.csv", index=False)


APTOS = "aptos2019-blindness-detection"
MELANOMA = "siim-isic-melanoma-classification"
CASES = [
    Case("spaceship-titanic", "travel-groups-apart", column("PassengerId", change=lambda ids: ids.str[:4])),
    Case("ranzcr-clip-catheter-line-classification", "patients-in-both-parts", patients),
    Case(APTOS, "equal-photographs-apart", pictures("{part}_images"), equal_pictures("train_images")),
    Case(MELANOMA, "patients-and-duplicates-apart", pictures("jpeg/{part}"), equal_pictures("jpeg/train")),
    Case(MELANOMA, "patients-and-duplicates-apart", column("patient_id"), share_patients),
    Case(
        "movie-review-sentiment-analysis-kernels-only",
        "sentences-on-both-sides",
        sentences_of_phrases,
    ),
    Case(
        "facebook-recruiting-iii-keyword-extraction", "repeated-questions-in-train", column("Title", "Body")
    ),
    Case(
        "text-normalization-challenge-russian-language",
        "equal-sentences-on-both-sides",
        spoken_sentences,
        say_twice,
    ),
    Case("google-quest-challenge", "questions-on-both-sides", asked_questions, ask_twice),
]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=mends(case.of, case.defect), id=f"{case.of}: {case.defect}") for case in CASES],
)
def test_what_belongs_together_is_apart_in_v1_alone(case: Case, tmp_path: Path) -> None:
    def parts(edition: Edition) -> tuple[set[Any], set[Any]]:
        if case.change is None:
            folder = prepared(case.of, edition)
        else:
            folder = prepared_after(case.change, case.of, edition, tmp_path)
        return case.held(folder, "train"), case.held(folder, "test")

    assert_kept_together(parts)


@pytest.mark.parametrize(
    ("competition_id", "test_name"),
    [
        ("spaceship-titanic", "public/test.csv"),
        ("ranzcr-clip-catheter-line-classification", "private/test.csv"),
    ],
)
def test_no_row_is_lost_where_groups_are_kept(competition_id: str, test_name: str) -> None:
    editions: tuple[Edition, ...] = ("v1", "corrected")
    counts = [
        sum(len(pd.read_csv(prepared(competition_id, edition) / name)) for name in names)
        for edition in editions
        for names in [("public/train.csv", test_name)]
    ]
    assert counts[0] == counts[1]
