"""Evidence made of signs, for tests of what is computed from it."""

from __future__ import annotations

from typing import Any

from mlebench_console.engine.scoreboard.model import Conditions, Evidence, Measure, Trial

LEAF = "leaf-classification"
SPOOKY = "spooky-author-identification"
CACTUS = "aerial-cactus-identification"

_VALID = frozenset({Measure.SUBMISSION, Measure.VALID})
_ABOVE = _VALID | {Measure.ABOVE_MEDIAN}
_EARNED = {
    "G": _ABOVE | {Measure.GOLD, Measure.ANY_MEDAL},
    "+": _ABOVE | {Measure.BRONZE, Measure.ANY_MEDAL},
    "^": _ABOVE,
    "v": _VALID,
    "x": frozenset({Measure.SUBMISSION}),
    "-": frozenset[Measure](),
    ".": None,
}


def evidence(
    name: str, outcomes: dict[str, str], *, seconds: float | None = None, **conditions: Any
) -> Evidence:
    """One sign for each seed: `G + ^ v x -` as on the screens, `.` for one that counts for nothing."""
    trials = tuple(
        Trial(
            competition,
            seed,
            _EARNED[sign],
            score=0.5 if sign in "G+^v" else None,
            seconds=seconds,
            text="" if sign in "G+^v" else "why",
        )
        for competition, signs in outcomes.items()
        for seed, sign in enumerate(signs, start=1)
    )
    return Evidence("own", name, Conditions(**({"edition": "v1"} | conditions)), trials, 1e9)
