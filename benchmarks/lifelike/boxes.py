"""Tables of boxes and of points in pictures and in space, with as many guesses as models usually make."""

from __future__ import annotations

import numpy as np
import pandas as pd

Chance = np.random.Generator
Tables = tuple[pd.DataFrame, pd.DataFrame]


def characters(chance: Chance) -> Tables:
    """100 to 280 characters on each of 361 pages; nine in ten are told right, near their middle."""
    codes = [f"U+{0x3041 + place:04X}" for place in range(300)]
    true, told = [], []
    for _ in range(361):
        count = int(chance.integers(100, 280))
        kinds = (300 * chance.random(count) ** 2).astype(np.intp).tolist()
        corners, sizes = chance.integers(0, 2500, (count, 2)), chance.integers(40, 120, (count, 2))
        middles = corners + sizes / 2 + chance.normal(0, 30, (count, 2))
        right = (chance.random(count) < 0.9).tolist()
        boxes = zip(kinds, np.hstack([corners, sizes]).tolist(), strict=True)
        points = zip(kinds, right, middles.tolist(), strict=True)
        true.append(" ".join(f"{codes[kind]} {x} {y} {w} {h}" for kind, (x, y, w, h) in boxes))
        told.append(" ".join(f"{codes[kind if hit else 0]} {x:.1f} {y:.1f}" for kind, hit, (x, y) in points))
    frame = pd.DataFrame({"image_id": [f"page{row:08x}" for row in range(len(true))]})
    return frame.assign(labels=true), frame.assign(labels=told)


def opacities(chance: Chance) -> Tables:
    """Return a kind for each of 606 studies and up to 44 boxes for each of 634 pictures."""
    kinds = ("negative", "typical", "indeterminate", "atypical")
    ids = [f"{row:012x}_study" for row in range(606)]
    true = [f"{kinds[row % 4]} 1 0 0 1 1" for row in range(606)]
    told = [
        " ".join(f"{kind} {confidence:.6f} 0 0 1 1" for kind, confidence in zip(kinds, row, strict=True))
        for row in chance.random((606, 4)).tolist()
    ]
    for row in range(634):
        ids.append(f"{row:012x}_image")
        real = 1000 * chance.random((2, 4)) + [0, 0, 1000, 1000]
        made = 1000 * chance.random((40, 4)) + [0, 0, 1000, 1000]
        guesses = np.vstack([real + chance.normal(0, 60, (2, 4)), made]).tolist()
        cells = [f"opacity 1 {' '.join(f'{number:.5f}' for number in box)}" for box in real.tolist()]
        true.append(" ".join(cells) if row % 2 else "none 1 0 0 1 1")
        confidences = chance.random(len(guesses)).tolist()
        boxes = zip(confidences, guesses, strict=True)
        told.append(
            " ".join(f"opacity {c:.6f} {' '.join(f'{number:.4f}' for number in box)}" for c, box in boxes)
            + f" none {confidences[0]:.5f} 0 0 1 1"
        )
    frame = pd.DataFrame({"id": ids})
    return frame.assign(PredictionString=true), frame.assign(PredictionString=told)


def findings(chance: Chance) -> Tables:
    """Three findings on three in ten of 1,500 pictures, and a hundred guesses for each picture."""
    rows, told = [], []
    for row in range(1_500):
        picture = f"{row:032x}"
        real = []
        if row % 10 < 7:
            rows.append((picture, 14, 0.0, 0.0, 1.0, 1.0))
        else:
            corners = np.floor(1500 * chance.random((3, 2)))
            real = np.hstack([corners, corners + np.floor(50 + 600 * chance.random((3, 2)))]).tolist()
            kinds = sorted(chance.choice(14, 3, replace=False).tolist())
            rows += [(picture, kind, *box) for kind, box in zip(kinds, real, strict=True)]
        corners = 1500 * chance.random((100, 2))
        made = np.hstack([corners, corners + 50 + 600 * chance.random((100, 2))])
        made[: len(real)] = np.reshape(real, (-1, 4)) + chance.normal(0, 40, (len(real), 4))
        guesses = zip(
            chance.integers(0, 14, 100).tolist(), chance.random(100).tolist(), made.tolist(), strict=True
        )
        told.append(
            "14 0.5 0 0 1 1 "
            + " ".join(
                f"{kind} {c:.5f} {' '.join(f'{number:.1f}' for number in box)}" for kind, c, box in guesses
            )
        )
    answers = pd.DataFrame(rows, columns=["image_id", "class_id", "x_min", "y_min", "x_max", "y_max"])
    answers.insert(2, "class_name", "finding")
    answers.insert(3, "rad_id", "R1")
    return answers, pd.DataFrame({"image_id": answers["image_id"].unique(), "PredictionString": told})


def boxes_in_space(chance: Chance) -> Tables:
    """28 road users in each of 4,536 scenes, told within some decimetres, with all the digits of a double."""
    scenes, each = 4_536, 28
    names = ["car"] * 20 + ["pedestrian"] * 4 + ["bicycle", "truck", "other_vehicle", "bus"]
    spread = np.array([120, 120, 1, 0, 0, 0, 6.0])
    least = np.array([1700, 800, -20, 1.9, 4.6, 1.6, -3.0])
    blur = np.array([0.2, 0.2, 0.05, 0.05, 0.2, 0.05, 0.05])
    real = least + spread * chance.random((scenes, each, 7))
    made = real + blur * chance.normal(0, 1, real.shape)
    made[:, :, 3:6] = np.abs(made[:, :, 3:6]) + 0.1
    confidences = chance.random((scenes, each))
    confidences[:] = np.round(confidences, 6)
    true, told = (
        [
            " ".join(
                f"{c!r} {' '.join(map(repr, box))} {name}"
                for c, box, name in zip(row, scene, names, strict=True)
            )
            for row, scene in zip(firsts.tolist(), side.tolist(), strict=True)
        ]
        for firsts, side in ((np.ones_like(confidences), real), (confidences, made))
    )
    frame = pd.DataFrame({"Id": [f"{row:064x}" for row in range(scenes)]})
    return frame.assign(PredictionString=true), frame.assign(PredictionString=told)
