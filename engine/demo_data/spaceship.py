"""Demo data of spaceship-titanic: passengers whose outcome depends on spending, sleep and cabin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mlebench_console.engine.demo_data.writing import write_csv

LABELLED = 8693
UNLABELLED = 4277
SIGNAL = 1.2
"""How strongly features determine the outcome: with this value the best possible accuracy is about 0.83."""

_AMENITIES = ("RoomService", "FoodCourt", "ShoppingMall", "Spa", "VRDeck")
_SYLLABLES = "al|ber|cor|da|el|fin|gor|hu|im|jo|ka|lun|mi|nor|ose|pra"


def write(folder: Path, random: np.random.Generator) -> None:
    """Write train.csv, test.csv and sample_submission.csv."""
    table = _passengers(LABELLED + UNLABELLED, random)
    train, test = table.iloc[:LABELLED], table.iloc[LABELLED:]
    write_csv(folder / "train.csv", train)
    write_csv(folder / "test.csv", test.drop(columns="Transported"))
    write_csv(folder / "sample_submission.csv", test[["PassengerId"]].assign(Transported=False))


def _passengers(count: int, random: np.random.Generator) -> pd.DataFrame:
    group = np.cumsum(random.random(count) < 0.7) + 1
    within = np.arange(count) - np.searchsorted(group, group) + 1
    planet = random.choice(["Earth", "Europa", "Mars"], count, p=[0.54, 0.25, 0.21])
    europa, earth = planet == "Europa", planet == "Earth"
    deck = np.where(
        europa,
        random.choice(list("ABCDE"), count, p=[0.12, 0.37, 0.35, 0.1, 0.06]),
        np.where(
            earth, random.choice(list("EFG"), count, p=[0.1, 0.38, 0.52]), random.choice(list("DEF"), count)
        ),
    )
    side = random.choice(["P", "S"], count)
    asleep = random.random(count) < 0.35
    age = np.clip(random.normal(29, 14, count), 0, 79).round()
    spend = np.exp(random.normal(4.5, 2.0, (count, 5))) * (random.random((count, 5)) < 0.55)
    spend = np.where((asleep | (age < 13))[:, None], 0, spend).round()
    destination = random.choice(["TRAPPIST-1e", "55 Cancri e", "PSO J318.5-22"], count, p=[0.69, 0.21, 0.1])

    level = np.log1p(spend)
    outcome = (
        1.5 * asleep
        + 0.6 * europa
        - 0.3 * earth
        + 0.35 * (side == "S")
        + 0.5 * np.isin(deck, ["B", "C"])
        - 0.25 * level[:, 0]
        - 0.27 * level[:, 3]
        - 0.25 * level[:, 4]
        # Effects that trees can model and linear models can't: dining counts for some planets, youth up to an age.
        + np.where(europa, 0.32, 0.05) * level[:, 1]
        + 0.06 * level[:, 2]
        + 0.9 * ((age < 13) & ~europa)
        + 0.4 * (destination == "55 Cancri e")
    )
    chance = 1 / (1 + np.exp(-SIGNAL * (outcome - np.median(outcome))))
    table = pd.DataFrame(
        {
            "PassengerId": [f"{g:04d}_{w:02d}" for g, w in zip(group, within, strict=True)],
            "HomePlanet": planet,
            "CryoSleep": asleep,
            "Cabin": [f"{d}/{n}/{s}" for d, n, s in zip(deck, group // 7, side, strict=True)],
            "Destination": destination,
            "Age": age,
            "VIP": random.random(count) < 0.02,
            **{name: spend[:, place] for place, name in enumerate(_AMENITIES)},
            "Name": _names(count, random),
        }
    )
    for name in table.columns[1:]:
        table[name] = table[name].astype(object).where(random.random(count) > 0.02)
    return table.assign(Transported=random.random(count) < chance)


def _names(count: int, random: np.random.Generator) -> list[str]:
    pieces = random.choice(_SYLLABLES.split("|"), (count, 4))
    return [f"{a}{b} {c}{d}".title() for a, b, c, d in pieces]
