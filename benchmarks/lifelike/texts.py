"""Tables of texts and of names, and of directions: made at random, as long as the real ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

Chance = np.random.Generator
Tables = tuple[pd.DataFrame, pd.DataFrame]

_FORMULA = np.array(list("0123456789()-,+/CHNOSFbcht"))


def _hashes(chance: Chance, count: int, digits: int) -> list[str]:
    text = chance.bytes(count * digits // 2).hex()
    return [text[start : start + digits] for start in range(0, count * digits, digits)]


def _cut(parts: Iterable[str], sizes: np.ndarray, between: str = "") -> list[str]:
    """Parts put together, so many at a time."""
    found = iter(parts)
    return [between.join([next(found) for _ in range(size)]) for size in sizes.tolist()]


def _tables(key: str, ids: Iterable[object], column: str, true: list[str], told: list[str]) -> Tables:
    frame = pd.DataFrame({key: list(ids)})
    return frame.assign(**{column: true}), frame.assign(**{column: told})


def _edited(chance: Chance, texts: list[str], letters: np.ndarray) -> list[str]:
    """Return each text with a few stretches of letters replaced by others, of another length at times."""
    places = chance.random((len(texts), 4))
    count = chance.integers(0, 5, len(texts))
    sizes = chance.integers(0, 4, (len(texts), 4))
    filled = "".join(chance.choice(letters, 1 << 12))
    edited = []
    for text, row, edits, cut in zip(texts, places.tolist(), count.tolist(), sizes.tolist(), strict=True):
        for place, size in zip(row[:edits], cut, strict=False):
            at = int(place * len(text))
            start = int(place * (len(filled) - 4))
            text = text[:at] + filled[start : start + size] + text[at + 1 :]
        edited.append(text)
    return edited


def formulas(chance: Chance) -> Tables:
    """Return names of molecules of some hundred letters, of which a good model misses some."""
    rows = 484_837
    sizes = chance.integers(50, 180, rows)
    letters = "".join(chance.choice(_FORMULA, sizes.sum()))
    ends = np.cumsum(sizes).tolist()
    true = ["InChI=1S/" + letters[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
    return _tables("image_id", _hashes(chance, rows, 12), "InChI", true, _edited(chance, true, _FORMULA))


def sentences(chance: Chance) -> Tables:
    """Sentences of 25 words, and the same without one of them or with another one in its place."""
    rows = 303_000
    words = _hashes(chance, 30_000, 4)
    known = [word * (1 + place % 2) for place, word in enumerate(words)]
    chosen = chance.integers(0, len(known), (rows, 25)).tolist()
    gaps = chance.integers(1, 24, rows).tolist()
    true = [" ".join([known[word] for word in row]) for row in chosen]
    told = [
        " ".join([known[word] for word in row[:gap] + [row[0]] * (gap % 2) + row[gap + 1 :]])
        for row, gap in zip(chosen, gaps, strict=True)
    ]
    return _tables("id", range(1, rows + 1), "sentence", true, told)


def tags(chance: Chance) -> Tables:
    """Return one to five of 40,000 tags, half of them told; the answers hold the questions too."""
    rows = 603_420
    known = np.array([f"tag-{word}" for word in _hashes(chance, 40_000, 8)], dtype=object)
    sizes = chance.integers(1, 6, rows)
    # some tags are on every tenth question, most are rare
    drawn = (len(known) * chance.random(sizes.sum()) ** 4).astype(np.intp)
    other = np.where(chance.random(len(drawn)) < 0.5, drawn, chance.integers(0, len(known), len(drawn)))
    true, told = (_cut(known[side].tolist(), sizes, " ") for side in (drawn, other))
    answers, submission = _tables("Id", range(1, rows + 1), "Tags", true, told)
    bodies = np.array([f"<p>{word * 20}</p>" for word in _hashes(chance, 1_000, 8)], dtype=object)
    answers.insert(1, "Title", known[chance.integers(0, len(known), rows)])
    answers.insert(2, "Body", bodies[chance.integers(0, len(bodies), rows)])
    return answers, submission


def purchases(chance: Chance) -> Tables:
    """Twelve articles for each customer, of whom one in twenty is scored."""
    customers, scored = 1_371_980, 68_984
    ids = sorted(_hashes(chance, customers, 64))
    articles = [f"0{number}" for number in range(108_775_015, 108_775_015 + 100_000)]
    lists = [
        " ".join([articles[k] for k in row])
        for row in (len(articles) * chance.random((20_000, 12)) ** 3).astype(np.intp).tolist()
    ]
    told = [lists[k] for k in chance.integers(0, len(lists), customers).tolist()]
    rows = np.sort(chance.choice(customers, scored, replace=False)).tolist()
    sizes = chance.integers(1, 7, scored)
    bought = (len(articles) * chance.random(sizes.sum()) ** 3).astype(np.intp)
    true = _cut([articles[k] for k in bought.tolist()], sizes, " ")
    answers = pd.DataFrame({"customer_id": [ids[row] for row in rows], "prediction": true})
    return answers, pd.DataFrame({"customer_id": ids, "prediction": told})


def spoken_tokens(chance: Chance) -> Tables:
    """Tokens of sentences, of which nine in ten are told right."""
    rows = 992_000
    known = np.array([",", ".", "the", *_hashes(chance, 30_000, 6), *_hashes(chance, 300, 30)], dtype=object)
    drawn = (len(known) * chance.random(rows) ** 3).astype(np.intp)
    told = np.where(chance.random(rows) < 0.9, drawn, chance.integers(0, len(known), rows))
    ids = [f"{row // 14}_{row % 14}" for row in range(rows)]
    return _tables("id", ids, "after", known[drawn].tolist(), known[told].tolist())


def orders_of_cells(chance: Chance) -> Tables:
    """Return the cells of notebooks, and an order where neighbours changed places."""
    rows = 20_000
    sizes = np.clip(chance.lognormal(3.5, 0.6, rows).astype(np.intp), 2, 1000)
    cells = np.array(_hashes(chance, int(sizes.sum()), 8), dtype=object)
    notebook = np.repeat(np.arange(rows), sizes)
    moved = np.lexsort((np.arange(len(cells)) + chance.normal(0, 3, len(cells)), notebook))
    true, told = (_cut(side.tolist(), sizes, " ") for side in (cells, cells[moved]))
    return _tables("id", _hashes(chance, rows, 14), "cell_order", true, told)


def directions(chance: Chance) -> Tables:
    """Directions of neutrinos, told within half a radian."""
    rows = 1_300_000
    true = pd.DataFrame(
        {
            "event_id": np.cumsum(chance.integers(1, 40, rows)),
            "azimuth": 2 * np.pi * chance.random(rows),
            "zenith": np.pi * chance.random(rows),
        }
    )
    told = true.assign(
        azimuth=(true["azimuth"] + chance.normal(0, 0.3, rows)) % (2 * np.pi),
        zenith=np.clip(true["zenith"] + chance.normal(0, 0.3, rows), 0, np.pi),
    )
    return true, told
