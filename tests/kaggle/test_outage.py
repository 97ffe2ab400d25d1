"""Kaggle away for an hour, ten minutes of limits and another token, on real processes that are killed meanwhile."""

from __future__ import annotations

from pathlib import Path

from engine.places import Places
from tests.kaggle.loopback import Loopback
from tests.kaggle.outage import Outage

NAMES = (
    "aerial-cactus-identification",
    "leaf-classification",
    "spaceship-titanic",
    "spooky-author-identification",
)


def test_datasets_come_through_an_outage_exactly_and_without_one_request_too_many(
    loopback: Loopback, places: Places, clean_environment: Path
) -> None:
    outage = Outage(loopback, places, NAMES, clean_environment / ".kaggle" / "access_token", seed=3)
    assert outage.play() == [], outage.kills
    assert {"engine", "worker", "console"} >= set(outage.kills) and len(outage.kills) >= 2
