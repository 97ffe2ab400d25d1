"""Kaggle away for an hour, ten minutes of limits and another token, on real processes that are killed meanwhile."""

from __future__ import annotations

from pathlib import Path

from mlebench_console.engine.places import Places
from tests.kaggle.loopback import Loopback
from tests.kaggle.outage import Outage

NAMES = ("spaceship-titanic", "spooky-author-identification")
# More of them by `make soak ARGS="--kaggle"`, on all competitions.
MOST_KILLS = 3
# It kills the engine first, then a worker, then the console.
SEED = 5


def test_datasets_come_through_an_outage_exactly_and_without_one_request_too_many(
    loopback: Loopback, places: Places, clean_environment: Path
) -> None:
    token = clean_environment / ".kaggle" / "access_token"
    outage = Outage(loopback, places, NAMES, token, seed=SEED, speed=1_200.0, most_kills=MOST_KILLS)
    assert outage.play() == [], outage.kills
    assert "engine" in outage.kills
