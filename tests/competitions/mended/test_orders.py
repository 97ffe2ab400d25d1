"""Test photos whose order told their classes to whoever knows how MLE-bench draws them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlebench_console.competitions.model import EDITIONS
from mlebench_console.competitions.registry import get
from tests.competitions.changed_raw import prepared_after
from tests.competitions.mended.editions import mends

CATS = "dogs-vs-cats-redux-kernels-edition"
PADDY = "paddy-disease-classification"
SEEDLINGS = "plant-seedlings-classification"


def reckoned(trained: list[str], held_out: int) -> list[str]:
    """The classes of test photos in their order, if all were listed class by class and drawn with the known seed.

    Needs nothing but the classes of train photos: each test photo lay between two of them.
    """
    drawn = np.random.RandomState(0).permutation(len(trained) + held_out)
    classes, places = np.array(sorted(trained)), np.sort(drawn[held_out:])
    before = np.searchsorted(places, drawn[:held_out]) - 1
    found: list[str] = classes[np.maximum(before, 0)].tolist()
    return found


def list_by_class(raw: Path) -> None:
    """As Kaggle's table is, which that of the vector is not."""
    table = pd.read_csv(raw / "train.csv", dtype=str)
    table.sort_values("label", kind="stable").to_csv(raw / "train.csv", index=False)


def as_it_is(raw: Path) -> None:
    """No change."""
    assert raw.is_dir()


@pytest.mark.parametrize(
    ("competition_id", "change", "trained", "target"),
    [
        pytest.param(
            CATS,
            as_it_is,
            lambda public: [str(int("dog" in photo.name)) for photo in (public / "train").iterdir()],
            "label",
            marks=mends(CATS, "test-order-can-be-inverted"),
        ),
        pytest.param(
            PADDY,
            list_by_class,
            lambda public: pd.read_csv(public / "train.csv")["label"].tolist(),
            "label",
            marks=mends(PADDY, "test-order-can-be-inverted"),
        ),
        pytest.param(
            SEEDLINGS,
            as_it_is,
            lambda public: [photo.parent.name for photo in (public / "train").rglob("*.png")],
            "species",
            marks=mends(SEEDLINGS, "test-order-can-be-inverted"),
        ),
    ],
)
def test_classes_cannot_be_reckoned_from_the_order_of_test_photos(
    competition_id: str,
    change: Callable[[Path], None],
    trained: Callable[[Path], list[str]],
    target: str,
    tmp_path: Path,
) -> None:
    told = {}
    for edition in EDITIONS:
        folder = prepared_after(change, competition_id, edition, tmp_path)
        truth = pd.read_csv(folder / get(competition_id).answers, dtype=str)[target].tolist()
        guessed = reckoned(trained(folder / "public"), len(truth))
        told[edition] = np.mean([one == other for one, other in zip(truth, guessed, strict=True)])
    assert told["v1"] > 0.8  # all but those between the last of one class and the first of the next
    assert told["corrected"] < 0.6
