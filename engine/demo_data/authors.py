"""Demo data of spooky-author-identification: gloomy sentences by three imaginary authors.

All authors use the same words, each with other frequencies; sentences are generated, none is quoted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.engine.demo_data.writing import write_zipped_csv

Numbers = npt.NDArray[Any]

LABELLED = 6000
UNLABELLED = 1000
WORD_PREFERENCE = 0.634
"""How much the authors differ in their choice of words: a lower value makes the task harder."""

_AUTHORS = ("EAP", "HPL", "MWS")
_SHARES = (0.4035, 0.2878, 0.3087)
_SLOTS = {
    "opening": "Once|At dusk|Alas|Slowly|That night|In vain|Thereafter|Meanwhile|At length|Still|Even so|Now",
    "adjective": "pale|dim|ancient|cold|silent|hollow|dreadful|gentle|nameless|crooked|weary|solemn|damp|vast|"
    "bitter|faint|frozen|secret|ruined|strange",
    "noun": "tower|harbour|lantern|cellar|garden|mirror|corridor|storm|letter|portrait|bell|marsh|staircase|"
    "island|fever|candle|voice|shadow|orchard|machine|stone|river|window|physician|brother|stranger",
    "verb": "trembled|waited|vanished|whispered|burned|collapsed|listened|returned|faded|wandered|wept|sank|"
    "rose|gleamed|rotted|slept",
    "link": "beyond|beneath|beside|within|without|before|behind|above|along|towards",
    "tail": "and I could not look away|so that all hope left us|as if it had a will|though nobody had called|"
    "while the sea went on|and my heart grew quiet|which I dare not name|for reasons that I never learned|"
    "until the lamps went out|and we spoke of home|as the old charts foretold|with a calm that was not mine",
}
_PLACES = {"opening": 1, "adjective": 6, "noun": 6, "verb": 3, "link": 3, "tail": 1}


def write(folder: Path, random: np.random.Generator) -> None:
    """Write train.zip, test.zip and sample_submission.zip."""
    count = LABELLED + UNLABELLED
    author = random.choice(len(_AUTHORS), count, p=_SHARES)
    numbers = random.permutation(count)
    table = pd.DataFrame(
        {
            "id": [f"id{number:05d}" for number in numbers],
            "text": _passages(author, random),
            "author": np.array(_AUTHORS, dtype=object)[author],
        }
    )
    train, test = table.iloc[:LABELLED], table.iloc[LABELLED:]
    write_zipped_csv(folder / "train.zip", train)
    write_zipped_csv(folder / "test.zip", test.drop(columns="author"))
    priors = dict(zip(_AUTHORS, _SHARES, strict=True))
    write_zipped_csv(folder / "sample_submission.zip", test[["id"]].assign(**priors))


def _passages(author: Numbers, random: np.random.Generator) -> list[str]:
    words = {name: _draw(name, author, places, random) for name, places in _PLACES.items()}
    clauses = random.integers(1, 4, len(author))
    return [
        _passage({name: drawn[row] for name, drawn in words.items()}, clauses[row])
        for row in range(len(author))
    ]


def _draw(slot: str, author: Numbers, places: int, random: np.random.Generator) -> Numbers:
    choices = np.array(_SLOTS[slot].split("|"), dtype=object)
    weights = np.exp(WORD_PREFERENCE * random.normal(0, 1, (len(_AUTHORS), len(choices))))
    bounds = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[author]
    drawn = (random.random((len(author), places, 1)) > bounds[:, None, :]).sum(axis=2)
    chosen: Numbers = choices[np.minimum(drawn, len(choices) - 1)]
    return chosen


def _passage(words: dict[str, Numbers], clauses: int) -> str:
    parts = []
    for place in range(clauses):
        subject = f"the {words['adjective'][2 * place]} {words['noun'][2 * place]} {words['verb'][place]}"
        where = (
            f"{words['link'][place]} the {words['adjective'][2 * place + 1]} {words['noun'][2 * place + 1]}"
        )
        parts.append(f"{subject} {where}")
    return f"{words['opening'][0]} {', and '.join(parts)}, {words['tail'][0]}."
