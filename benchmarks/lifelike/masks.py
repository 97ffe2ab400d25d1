"""Tables of masks as runs of pixels: ellipses of the size and number of the real shapes, told a little off."""

from __future__ import annotations

import numpy as np
import pandas as pd

Chance = np.random.Generator
Tables = tuple[pd.DataFrame, pd.DataFrame]

_ORGANS = ("large_bowel", "small_bowel", "stomach")


def _runs(starts: np.ndarray, lengths: np.ndarray) -> str:
    return " ".join(map(str, np.column_stack([starts, lengths]).ravel().tolist()))


def _ellipse(middle: tuple[float, float], radii: tuple[float, float], line: int) -> str:
    """The runs of an ellipse in lines of pixels of that length: its middle and radii across lines and along them."""
    (across, along), (wide, high) = middle, radii
    lines = np.arange(int(np.ceil(across - wide)), int(across + wide) + 1)
    half = (high * np.sqrt(np.clip(1 - ((lines - across) / wide) ** 2, 0, 1))).astype(np.intp)
    return _runs(lines * line + int(along) - half + 1, 2 * half + 1)


def organs(chance: Chance) -> Tables:
    """Three organs in 144 layers on each of 56 days; the model's are shifted by a pixel or three."""
    days, layers, side = 56, 144, 266
    true: list[str] = []
    told: list[str] = []
    ids: list[str] = []
    for day in range(days):
        middles = chance.integers(100, 160, (3, 2))
        for layer in range(layers):
            ids.append(f"case{day}_day{day % 30}_slice_{layer + 1:04d}")
            for organ, (across, along) in enumerate(middles.tolist()):
                if not 40 < layer < 110 or (organ == 2 and layer < 80):
                    true.append("")
                    told.append("")
                    continue
                radius = 12 + 18 * np.sin((layer - 40) / 70 * np.pi)
                middle = across + 5 * np.sin(layer / 9), along + 20 * organ
                true.append(_ellipse(middle, (1.3 * radius, radius), side))
                off = chance.integers(-3, 4, 2).tolist()
                shifted = middle[0] + off[0], middle[1] + off[1]
                told.append(_ellipse(shifted, (1.25 * radius, radius), side))
    frame = pd.DataFrame({"id": np.repeat(ids, 3), "class": _ORGANS * len(ids)})
    answers = frame.assign(predicted=true, image_width=float(side), image_height=float(side))
    return answers, frame.assign(predicted=told)


def glomeruli(chance: Chance) -> Tables:
    """Three slides of 30,000 by 25,000 pixels with 120 round shapes each."""
    high, wide = 30_000, 25_000
    true: list[str] = []
    told: list[str] = []
    for _ in range(3):
        across = 200 * np.arange(1, 121)
        along = chance.integers(1000, high - 1000, 120)
        for cells, off in ((true, 0), (told, 4)):
            shapes = zip(across.tolist(), along.tolist(), strict=True)
            cells.append(" ".join(_ellipse((x, y + off), (80, 150), high) for x, y in shapes))
    frame = pd.DataFrame({"id": ["2f6ecfcdf", "aaa6a05cc", "cb2d976f4"]})
    return (
        frame.assign(encoding=true, width_pixels=wide, height_pixels=high),
        frame.assign(predicted=told),
    )


def contrails(chance: Chance) -> Tables:
    """Thin trails in every second of 1,856 pictures."""
    rows, side = 1_856, 256
    true, told = [], []
    for row in range(rows):
        middle = chance.integers(90, 160, 2).tolist()
        radii = int(chance.integers(20, 80)), int(chance.integers(2, 6))
        true.append("-" if row % 2 else _ellipse(tuple(middle), radii, side))
        told.append("-" if row % 2 else _ellipse((middle[0] + 1, middle[1] + 1), radii, side))
    frame = pd.DataFrame({"record_id": 10**18 + 7919 * np.arange(rows)})
    answers = frame.assign(encoded_pixels=true, height=side, width=side)
    return answers, frame.assign(encoded_pixels=told)


def salt(chance: Chance) -> Tables:
    """Return one shape in three of five of 1,000 small pictures."""
    rows, side = 1_000, 101
    true, told = [], []
    for row in range(rows):
        middle, radii = chance.integers(40, 60, 2).tolist(), chance.integers(5, 40, 2).tolist()
        true.append("" if row % 5 > 2 else _ellipse(tuple(middle), tuple(radii), side))
        told.append("" if row % 5 > 2 else _ellipse((middle[0], middle[1] - 2), tuple(radii), side))
    frame = pd.DataFrame({"id": [f"{row:010x}" for row in range(rows)]})
    return frame.assign(rle_mask=true), frame.assign(rle_mask=told)


def ink(chance: Chance) -> Tables:
    """Return one fragment of 5,249 by 7,606 pixels with 18 strokes in every line."""
    wide, high, strokes = 5_249, 7_606, 18
    places = np.sort(
        np.array([chance.choice(wide // 40, strokes, replace=False) for _ in range(high)]) * 40, axis=1
    )
    starts = (np.arange(high)[:, None] * wide + places + 1).ravel()
    lengths = chance.integers(5, 35, len(starts))
    answers = pd.DataFrame(
        {"Id": ["a"], "Predicted": [_runs(starts, lengths)], "width": [wide], "height": [high]}
    )
    return answers, pd.DataFrame({"Id": ["a"], "Predicted": [_runs(starts + 2, lengths)]})
