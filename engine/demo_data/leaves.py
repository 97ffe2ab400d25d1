"""Demo data of leaf-classification: ninety-nine species, ten leaves each, described by 192 numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions import registry
from mlebench_console.engine.demo_data.writing import bitmap, write_zip, write_zipped_csv

Numbers = npt.NDArray[Any]

LEAVES_A_SPECIES = 16
LABELLED_A_SPECIES = 10
NOISE = 0.58
"""Spread of the leaves of one species, relative to the distance of species: a higher value makes the task harder."""

_SIDE = 24


def write(folder: Path, random: np.random.Generator) -> None:
    """Write the two tables, the images and the sample submission, each zipped."""
    # The names are the columns that the grader requires, so they come from the benchmark's facts.
    species = registry.get("leaf-classification").classes
    kind = np.repeat(np.arange(len(species)), LEAVES_A_SPECIES)
    numbers = random.permutation(len(kind)) + 1
    labelled = np.tile(np.arange(LEAVES_A_SPECIES) < LABELLED_A_SPECIES, len(species))
    table = pd.concat(
        [
            pd.DataFrame({"id": numbers, "species": np.array(species, dtype=object)[kind]}),
            _descriptors(kind, len(species), random),
        ],
        axis=1,
    )
    train, test = (table[part].sort_values("id") for part in (labelled, ~labelled))
    write_zipped_csv(folder / "train.csv.zip", train)
    write_zipped_csv(folder / "test.csv.zip", test.drop(columns="species"))
    sample = pd.DataFrame(1 / len(species), index=test.index, columns=list(species))
    write_zipped_csv(folder / "sample_submission.csv.zip", pd.concat([test[["id"]], sample], axis=1))
    pictures = _pictures(kind, len(species), random)
    write_zip(
        folder / "images.zip",
        ((f"images/{numbers[row]}.jpg", bitmap(pictures[row])) for row in np.argsort(numbers)),
    )


def _descriptors(kind: Numbers, species: int, random: np.random.Generator) -> pd.DataFrame:
    parts = []
    for name, scale in (("margin", 0.015), ("shape", 0.0007), ("texture", 0.016)):
        centres = random.normal(0, 1, (species, 64))
        values = centres[kind] * 0.35 + random.normal(0, NOISE, (len(kind), 64))
        columns = [f"{name}{place}" for place in range(1, 65)]
        parts.append(pd.DataFrame((scale * np.exp(0.5 * values)).round(6), columns=columns))
    return pd.concat(parts, axis=1)


def _pictures(kind: Numbers, species: int, random: np.random.Generator) -> Numbers:
    """Draw white leaves on black, with an outline of a few waves that differs between species."""
    waves = random.normal(0, 0.12, (species, 4))[kind] + random.normal(0, 0.02, (len(kind), 4))
    y, x = np.mgrid[-1 : 1 : _SIDE * 1j, -1 : 1 : _SIDE * 1j]
    angle, radius = np.arctan2(y, x), np.hypot(x, y)
    outline = 0.65 + sum(waves[:, wave, None, None] * np.cos((wave + 2) * angle) for wave in range(4))
    grey = np.where(radius < outline, 255, 0).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=3)
