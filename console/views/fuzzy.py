"""Finding names by some of their letters."""

from __future__ import annotations

from collections.abc import Iterable


def best(typed: str, names: Iterable[str], *, most: int = 8) -> tuple[str, ...]:
    """The names that have what is typed in them; only if there is none, those with its letters in this order."""
    wanted = typed.lower().replace(" ", "")
    rated = sorted((rate, name) for name in names if (rate := _rate(wanted, name.lower())) is not None)
    return tuple(name for rate, name in rated if rate[0] == rated[0][0][0])[:most]


def _rate(wanted: str, name: str) -> tuple[int, int, int] | None:
    """A smaller rate is closer: the whole as one piece first, then how far the letters are spread."""
    whole = name.find(wanted)
    if whole >= 0:
        return 0, whole, len(name)
    start, place = -1, -1
    for letter in wanted:
        place = name.find(letter, place + 1)
        if place < 0:
            return None
        start = place if start < 0 else start
    return 1, place - start, len(name)
