"""Demo data of aerial-cactus-identification: thumbnails of dry ground, some with a columnar cactus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.engine.demo_data.writing import bitmap, write_csv, write_zip

Numbers = npt.NDArray[Any]

LABELLED = 3200
UNLABELLED = 400
FAINTEST = 0.85
"""Contrast of the faintest cactus: lower makes some of them look like bushes."""

_SIDE = 32


def write(folder: Path, random: np.random.Generator) -> None:
    """Write train.csv, the two image archives and sample_submission.csv."""
    count = LABELLED + UNLABELLED
    names = [f"{random.bytes(16).hex()}.jpg" for _ in range(count)]
    has_cactus = (random.random(count) < 0.75).astype(int)
    pictures = _pictures(has_cactus, random)
    write_csv(
        folder / "train.csv", pd.DataFrame({"id": names[:LABELLED], "has_cactus": has_cactus[:LABELLED]})
    )
    write_csv(folder / "sample_submission.csv", pd.DataFrame({"id": names[LABELLED:], "has_cactus": 0.5}))
    for part, rows in (("train", range(LABELLED)), ("test", range(LABELLED, count))):
        write_zip(folder / f"{part}.zip", ((f"{part}/{names[row]}", bitmap(pictures[row])) for row in rows))


def _pictures(has_cactus: Numbers, random: np.random.Generator) -> Numbers:
    count = len(has_cactus)
    y, x = np.mgrid[0:_SIDE, 0:_SIDE].astype(np.float32)

    def each(low: float, high: float) -> Numbers:
        """Return one random number for each picture."""
        return random.uniform(low, high, (count, 1, 1)).astype(np.float32)

    ground = each(0.45, 0.7) + 0.04 * _smooth(random.normal(0, 1, (count, _SIDE, _SIDE)).astype(np.float32))
    angle, middle_x, middle_y = each(0, np.pi), each(10, 22), each(10, 22)
    along = (x - middle_x) * np.cos(angle) + (y - middle_y) * np.sin(angle)
    across = -(x - middle_x) * np.sin(angle) + (y - middle_y) * np.cos(angle)
    cactus = np.exp(-((across / each(1.6, 2.6)) ** 2) - (along / each(8, 13)) ** 4)
    # Bushes have a cactus's colour but not its shape, so that colour alone does not solve the task.
    bush = np.exp(-((along / each(2, 6)) ** 2) - (across / each(2, 6)) ** 2)
    present = has_cactus[:, None, None] == 1
    plant = np.where(present, each(FAINTEST, 1) * cactus, each(0, 0.4) * bush * (each(0, 1) < 0.5))
    ribs = 1 + 0.25 * np.sin(across * 3) * present
    colours = []
    for tint, leaf in ((1.0, -0.38), (0.86, -0.18), (0.66, -0.28)):
        noise = random.normal(0, 0.03, (count, _SIDE, _SIDE)).astype(np.float32)
        colours.append(ground * tint + plant * ribs * leaf + noise)
    pictures: Numbers = (np.clip(np.stack(colours, axis=3), 0, 1) * 255).astype(np.uint8)
    return pictures


def _smooth(field: Numbers) -> Numbers:
    for axis in (1, 2):
        field = field + np.roll(field, 1, axis) + np.roll(field, 2, axis) + np.roll(field, 3, axis)
    return field / 4
