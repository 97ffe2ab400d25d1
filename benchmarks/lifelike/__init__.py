"""Answers and submissions as large and as varied as real ones, where repeating a vector's rows would mislead."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from benchmarks.lifelike import boxes, masks, texts

Tables = tuple[pd.DataFrame, pd.DataFrame]

MADE: dict[str, Callable[[np.random.Generator], Tables]] = {
    "3d-object-detection-for-autonomous-vehicles": boxes.boxes_in_space,
    "AI4Code": texts.orders_of_cells,
    "billion-word-imputation": texts.sentences,
    "bms-molecular-translation": texts.formulas,
    "facebook-recruiting-iii-keyword-extraction": texts.tags,
    "google-research-identify-contrails-reduce-global-warming": masks.contrails,
    "h-and-m-personalized-fashion-recommendations": texts.purchases,
    "hubmap-kidney-segmentation": masks.glomeruli,
    "icecube-neutrinos-in-deep-ice": texts.directions,
    "kuzushiji-recognition": boxes.characters,
    "siim-covid19-detection": boxes.opacities,
    "text-normalization-challenge-english-language": texts.spoken_tokens,
    "text-normalization-challenge-russian-language": texts.spoken_tokens,
    "tgs-salt-identification-challenge": masks.salt,
    "uw-madison-gi-tract-image-segmentation": masks.organs,
    "vesuvius-challenge-ink-detection": masks.ink,
    "vinbigdata-chest-xray-abnormalities-detection": boxes.findings,
}
"""Per competition what makes its answers and a fairly good submission; ids stand in the same order in both."""
